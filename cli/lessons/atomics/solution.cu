// Counts the pixels of an image by their brightness, 0 to 4095, in 32 bins of 128 each.
__global__ void histogram(int *bins, const int *pixels) {
    __shared__ int copy[32];
    if (threadIdx.x < 32) {
        copy[threadIdx.x] = 0;
    }
    __syncthreads();

    int i = blockIdx.x * 256 + threadIdx.x;
    int bin = pixels[i] / 128;
    atomicAdd(&copy[bin], 1);
    __syncthreads();

    if (threadIdx.x < 32) {
        atomicAdd(&bins[threadIdx.x], copy[threadIdx.x]);
    }
}
