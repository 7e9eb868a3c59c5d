// The place of an element in the tile, of which a block has 1024 words: 4096 bytes.
__device__ int place(int row, int column) {
    return row * 32 + (column ^ row);
}

// Transposes a matrix of n x n floats through tiles of 32 x 32. A block has 32 x 32 threads.
__global__ void transpose(const float *in, float *out, int n) {
    extern __shared__ float tile[];

    int column = blockIdx.x * 32 + threadIdx.x;
    int row = blockIdx.y * 32 + threadIdx.y;
    tile[place(threadIdx.y, threadIdx.x)] = in[row * n + column];
    __syncthreads();

    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    out[row * n + column] = tile[place(threadIdx.x, threadIdx.y)];
}
