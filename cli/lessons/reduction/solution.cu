// Sums 256 integers. One block has 256 threads.
__global__ void sum(int *out, const int *in) {
    __shared__ int part[8];
    int i = threadIdx.x;

    // Each warp adds up its 32 numbers in registers.
    int value = in[i];
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_down_sync(0xffffffff, value, step);
    }
    if (i % 32 == 0) {
        part[i / 32] = value;
    }
    __syncthreads();

    // The first warp adds up the sums of the 8 warps.
    if (i < 32) {
        value = i < 8 ? part[i] : 0;
        for (int step = 4; step > 0; step /= 2) {
            value += __shfl_down_sync(0xffffffff, value, step);
        }
        if (i == 0) {
            out[0] = value;
        }
    }
}
