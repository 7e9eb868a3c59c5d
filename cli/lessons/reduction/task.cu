// Sums 256 integers. One block has 256 threads.
__global__ void sum(int *out, const int *in) {
    __shared__ int part[256];
    int i = threadIdx.x;
    part[i] = in[i];
    __syncthreads();

    for (int step = 1; step < 256; step *= 2) {
        if (i % (2 * step) == 0) {
            part[i] += part[i + step];
        }
        __syncthreads();
    }

    if (i == 0) {
        out[0] = part[0];
    }
}
