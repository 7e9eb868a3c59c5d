constexpr int BINS = 64;

__global__ void by_global_atomics(unsigned int* bins, const unsigned char* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&bins[values[i] % BINS], 1u);
    }
}

// Each block counts for itself, and adds its counts to the others'.
__global__ void by_shared_atomics(unsigned int* bins, const unsigned char* values, int n) {
    __shared__ unsigned int own[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        own[bin] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&own[values[i] % BINS], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        atomicAdd(&bins[bin], own[bin]);
    }
}
