// Transposes `in`, which has `height` rows of `width` floats. A block of 32 x 8 threads is there
// for each 32 x 32 elements of `in`: `blockIdx.x` counts them along a row, `blockIdx.y` downwards.
__global__ void transpose(float *out, const float *in, int width, int height) {
    // A row of 33 words lets both rows and columns go through all banks.
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
    // A thread has four rows, each 8 below the one before. The compiler would write the loop out
    // four times, and the report would have four rows a line. On a GPU, leave the pragma out.
#pragma unroll 1
    for (int row = threadIdx.y; row < 32; row += 8) {
        if (x < width && y + row < height) {
            tile[row][threadIdx.x] = in[(y + row) * width + x];
        }
    }
    // All threads of the block come here, also those beyond the edge.
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32;
#pragma unroll 1
    for (int row = threadIdx.y; row < 32; row += 8) {
        if (x < height && y + row < width) {
            out[(y + row) * height + x] = tile[threadIdx.x][row];
        }
    }
}
