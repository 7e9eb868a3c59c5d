// Transposes a matrix of n x n floats through tiles of 32 x 32. A block has 32 x 32 threads.
__global__ void transpose(const float *in, float *out, int n) {
    __shared__ float tile[32][32];

    int column = blockIdx.x * 32 + threadIdx.x;
    int row = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[row * n + column];
    __syncthreads();

    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    out[row * n + column] = tile[threadIdx.x][threadIdx.y];
}
