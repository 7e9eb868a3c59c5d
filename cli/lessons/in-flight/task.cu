// Two kernels that move no byte in vain, and wait for most of their time.

// Doubles `n` floats; `n` is a multiple of 4. 264 blocks of 256 threads share them.
__global__ void twice(float *out, const float *in, int n) {
    int threads = gridDim.x * blockDim.x;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        out[i] = 2 * in[i];
    }
}

// Transposes `in`, which has rows of `width` floats. A block of 32 x 32 threads is there for two
// tiles of 32 x 32, the second one below the first.
__global__ void turn(float *out, const float *in, int width, int height) {
    __shared__ float tile[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    int left = blockIdx.x * 32, top = blockIdx.y * 64;
#pragma unroll 1
    for (int end = top + 64; top < end; top += 32) {
        tile[y][x] = in[(top + y) * width + left + x];
        __syncthreads();
        out[(left + y) * height + top + x] = tile[x][y];
        __syncthreads();
    }
}
