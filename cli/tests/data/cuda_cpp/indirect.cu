#include <cstdint>

__global__ void gather(float* out, const float* in, const int32_t* places, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[places[i] & 1023];
}

// A sparse matrix in compressed rows, times a vector: a thread a row.
__global__ void compressed_rows(float* y, const int* starts, const int* columns, const float* x, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = starts[row]; k < starts[row + 1]; k++) {
        sum += x[columns[k]];
    }
    y[row] = sum;
}

// The first place in a sorted array whose value is not less.
__global__ void lower_bound(int* out, const int* sorted, int len, const int* wanted, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int low = 0, high = len;
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] < wanted[i]) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}

// Xorshift, a generator a thread.
__global__ void generators(uint64_t* states, int steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint64_t state = states[i] + 1;
    for (int step = 0; step < steps; step++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    states[i] = state;
}
