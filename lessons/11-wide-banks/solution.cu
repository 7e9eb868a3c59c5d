// Transposes a matrix of n x n doubles through tiles of 32 x 32. A block has 32 x 32 threads.
__global__ void transpose(const double *in, double *out, int n) {
    __shared__ double tile[32][33]; // one element more, whatever its width

    int column = blockIdx.x * 32 + threadIdx.x;
    int row = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[row * n + column];
    __syncthreads();

    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    out[row * n + column] = tile[threadIdx.x][threadIdx.y];
}

// One warp reads 32 neighbours of 16 bytes. You change nothing here.
__global__ void neighbours(const double2 *in, double2 *out) {
    __shared__ double2 wide[32];
    int lane = threadIdx.x;
    wide[lane] = in[lane];
    __syncthreads();
    out[lane] = wide[31 - lane];
}
