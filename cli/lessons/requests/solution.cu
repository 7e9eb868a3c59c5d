// Both kernels copy numbers. The comments count the load requests of each launch.

// Each thread copies one number.
__global__ void every_thread(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; // 32 neighbouring threads of a block are a warp
    if (i < n) {                                   // true for every lane of these launches
        out[i] = in[i];                            // a warp loads once: one request
    }
}

// Each second thread copies one number; the others do nothing.
__global__ void second_threads(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 2 == 0) { // true for 16 lanes of each warp, so no warp is without one
        out[i] = in[i];        // a warp loads once: one request, whether 32 or 16 lanes are on
    }
}

// check.toml:   a block has 256 / 32 = 8 warps; 4 blocks x 8 warps = 32 requests.
// check-2.toml: a block has 48 / 32 = 1.5 warps, rounded up 2; 20 blocks x 2 warps = 40 requests.
// check-3.toml: 4 blocks x 8 warps = 32 requests, as many as in check.toml, for half of the bytes.
