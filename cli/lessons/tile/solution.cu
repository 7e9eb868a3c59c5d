// Transposes `in`, which has `height` rows of `width` floats. Both are multiples of 32, and a
// block of 32 x 32 threads takes a tile of 32 x 32. The tile turns in shared memory.
__global__ void transpose(float *out, const float *in, int width, int height) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
