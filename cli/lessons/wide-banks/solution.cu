// Transposes `in`, which has `height` rows of `width` doubles. Both are multiples of 32, and a
// block of 32 x 32 threads takes a tile of 32 x 32. The tile turns in shared memory.
__global__ void transpose(double *out, const double *in, int width, int height) {
    __shared__ double tile[32][33]; // the padding is one element, whatever its width
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

// One warp turns 32 elements of 16 bytes around. You change nothing here.
__global__ void neighbours(double2 *out, const double2 *in) {
    __shared__ double2 wide[32];
    int lane = threadIdx.x;
    wide[lane] = in[lane];
    __syncthreads();
    out[lane] = wide[31 - lane];
}
