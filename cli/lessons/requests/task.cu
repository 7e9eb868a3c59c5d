// Both kernels copy numbers. You change nothing here: predict the requests of each launch.

// Each thread copies one number.
__global__ void every_thread(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i];
    }
}

// Each second thread copies one number; the others do nothing.
__global__ void second_threads(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 2 == 0) {
        out[i] = in[i];
    }
}
