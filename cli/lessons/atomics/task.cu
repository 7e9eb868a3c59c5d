// Counts the pixels of an image by their brightness, 0 to 4095, in 32 bins of 128 each.
__global__ void histogram(int *bins, const int *pixels) {
    int i = blockIdx.x * 256 + threadIdx.x;
    int bin = pixels[i] / 128;
    atomicAdd(&bins[bin], 1);
}
