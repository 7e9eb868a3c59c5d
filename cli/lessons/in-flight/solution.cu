// Two kernels that move no byte in vain, and have enough of them in flight.

// Doubles `n` floats; `n` is a multiple of 4. 264 blocks of 256 threads share them.
__global__ void twice(float *out, const float *in, int n) {
    int threads = gridDim.x * blockDim.x;
    // A load takes 16 bytes, so each wait brings four times as many.
    float4 *to = (float4 *)out;
    const float4 *from = (const float4 *)in;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += threads) {
        float4 four = from[i];
        to[i] = make_float4(2 * four.x, 2 * four.y, 2 * four.z, 2 * four.w);
    }
}

// Transposes `in`, which has rows of `width` floats. A block of 32 x 32 threads is there for two
// tiles of 32 x 32, the second one below the first.
__global__ void turn(float *out, const float *in, int width, int height) {
    __shared__ float tile[2][32][33];
    int x = threadIdx.x, y = threadIdx.y;
    int left = blockIdx.x * 32, top = blockIdx.y * 64;
    // Nothing stands between the two loads, so a thread waits for both at once.
    float upper = in[(top + y) * width + left + x];
    float lower = in[(top + 32 + y) * width + left + x];
    tile[0][y][x] = upper;
    tile[1][y][x] = lower;
    __syncthreads();
    out[(left + y) * height + top + x] = tile[0][x][y];
    out[(left + y) * height + top + 32 + x] = tile[1][x][y];
}
