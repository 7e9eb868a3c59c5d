// C = A B of n x n matrices.
__global__ void naive(float* c, const float* a, const float* b, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || column >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) {
        sum += a[row * n + k] * b[k * n + column];
    }
    c[row * n + column] = sum;
}

// The same through tiles of 16 x 16; n is a multiple of 16.
__global__ void tiled(float* c, const float* a, const float* b, int n) {
    __shared__ float of_a[16][16], of_b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int tile = 0; tile < n; tile += 16) {
        of_a[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        of_b[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            sum += of_a[threadIdx.y][k] * of_b[k][threadIdx.x];
        }
        __syncthreads();
    }
    c[row * n + column] = sum;
}
