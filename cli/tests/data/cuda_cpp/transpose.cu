// The ladder of transposes of an n x n matrix, n a multiple of 32, in blocks of 32 x 8 threads.
constexpr int TILE = 32;
constexpr int ROWS = 8;

__global__ void naive(float* out, const float* in, int n) {
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        out[x * n + y + j] = in[(y + j) * n + x];
    }
}

template <int PITCH>
__device__ void through_shared_memory(float* out, const float* in, int n) {
    __shared__ float tile[TILE][PITCH];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
    }
}

__global__ void tiled(float* out, const float* in, int n) {
    through_shared_memory<TILE>(out, in, n);
}

__global__ void padded(float* out, const float* in, int n) {
    through_shared_memory<TILE + 1>(out, in, n);
}

// Each row begins in another bank: column xor row.
__global__ void staggered(float* out, const float* in, int n) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        int row = threadIdx.y + j;
        tile[row][threadIdx.x ^ row] = in[(y + j) * n + x];
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        int column = threadIdx.y + j;
        out[(y + j) * n + x] = tile[threadIdx.x][column ^ threadIdx.x];
    }
}
