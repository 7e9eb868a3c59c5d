// The sum of each block, by a tree in dynamic shared memory.
__global__ void by_shared_memory(float* sums, const float* values, int n) {
    extern __shared__ float partial[];
    unsigned int thread = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + thread;
    partial[thread] = i < n ? values[i] : 0.0f;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (thread < half) {
            partial[thread] += partial[thread + half];
        }
        __syncthreads();
    }
    if (thread == 0) {
        sums[blockIdx.x] = partial[0];
    }
}

__device__ int warp_sum(int value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffff, value, offset);
    }
    return value;
}

// The sum of all, by shuffles within warps, and one atomic a block.
__global__ void by_shuffles(int* total, const int* values, int n) {
    __shared__ int of_warps[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = warp_sum(i < n ? values[i] : 0);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) {
        of_warps[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < blockDim.x / 32 ? of_warps[lane] : 0);
        if (lane == 0) {
            atomicAdd(total, sum);
        }
    }
}

// The largest value, by atomics alone, and by how many threads it was found.
__global__ void largest(int* most, unsigned int* votes, const int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool inside = i < n;
    unsigned int even = __ballot_sync(0xffffffff, inside && values[i] % 2 == 0);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(votes, __popc(even));
    }
    if (inside) {
        atomicMax(most, values[i]);
    }
}
