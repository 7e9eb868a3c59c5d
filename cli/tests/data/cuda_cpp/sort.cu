// Bitonic sort of 256 numbers by one block, in dynamic shared memory.
__global__ void bitonic(int* values) {
    extern __shared__ int shared[];
    int i = threadIdx.x;
    shared[i] = values[i];
    __syncthreads();
    for (int size = 2; size <= blockDim.x; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            int other = i ^ stride;
            if (other > i) {
                bool up = (i & size) == 0;
                int a = shared[i], b = shared[other];
                if ((a > b) == up) {
                    shared[i] = b;
                    shared[other] = a;
                }
            }
            __syncthreads();
        }
    }
    values[i] = shared[i];
}

// Each thread sorts 8 numbers in an array of its own.
__global__ void insertion(int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int own[8];
    for (int k = 0; k < 8; k++) {
        int value = values[8 * i + k], at = k;
        while (at > 0 && own[at - 1] > value) {
            own[at] = own[at - 1];
            at--;
        }
        own[at] = value;
    }
    for (int k = 0; k < 8; k++) values[8 * i + k] = own[k];
}
