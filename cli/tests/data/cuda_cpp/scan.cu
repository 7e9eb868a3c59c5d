// Prefix sums of each block, by Hillis and Steele's steps between two buffers.
__global__ void hillis_steele(int* out, const int* in) {
    __shared__ int buffers[2][256];
    int thread = threadIdx.x, from = 0;
    int i = blockIdx.x * 256 + thread;
    buffers[0][thread] = in[i];
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        int sum = buffers[from][thread];
        if (thread >= step) {
            sum += buffers[from][thread - step];
        }
        from = 1 - from;
        buffers[from][thread] = sum;
        __syncthreads();
    }
    out[i] = buffers[from][thread];
}

// Prefix sums of each warp, by shuffles.
__global__ void warps(long long* out, const int* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31;
    int sum = in[i];
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(0xffffffff, sum, step);
        if (lane >= step) sum += other;
    }
    out[i] = sum;
}

// The sum of each warp in all of its lanes, by shuffles crosswise.
__global__ void butterfly(float* out, const float* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = in[i];
    for (int mask = 16; mask > 0; mask >>= 1) {
        sum += __shfl_xor_sync(0xffffffff, sum, mask);
    }
    out[i] = sum;
}
