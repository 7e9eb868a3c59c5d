// The word of the tile that holds the element of a row and a column. The tile has 1024 words.
__device__ int place(int row, int column) {
    return row * 32 + column;
}

// Transposes `in`, which has `height` rows of `width` floats. Both are multiples of 32, and a
// block of 32 x 32 threads takes a tile of 32 x 32. The tile turns in shared memory.
__global__ void transpose(float *out, const float *in, int width, int height) {
    extern __shared__ float tile[];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    tile[place(threadIdx.y, threadIdx.x)] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * height + x] = tile[place(threadIdx.x, threadIdx.y)];
}
