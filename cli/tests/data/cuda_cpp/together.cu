// The last block that ends adds the sums of all.
__device__ unsigned int ended = 0;

__global__ void last_block(int* total, volatile int* sums, const int* values, int n) {
    __shared__ int sum;
    __shared__ bool is_last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sum, values[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicInc(&ended, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int all = 0;
        for (int block = 0; block < gridDim.x; block++) all += sums[block];
        *total = all;
    }
}

// The place of the least value, packed with it into one atomic.
__global__ void least(unsigned long long* packed, const unsigned int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicMin(packed, (unsigned long long)values[i] << 32 | i);
    }
}

// Each warp ends its loop together, by a vote.
__global__ void until_all(int* steps, const int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? values[i] & 255 : 0, count = 0;
    while (__any_sync(0xffffffff, value > 0)) {
        value -= 7;
        count++;
    }
    if (i < n) steps[i] = count;
}

// A lock for each of 8 cells, taken by compare and swap, by one thread a block.
__global__ void locked(int* cells, int* locks) {
    int cell = blockIdx.x % 8;
    if (threadIdx.x == 0) {
        while (atomicCAS(&locks[cell], 0, 1) != 0) {
        }
        __threadfence();
        volatile int* guarded = &cells[cell];
        *guarded = *guarded + blockIdx.x;
        __threadfence();
        atomicExch(&locks[cell], 0);
    }
}
