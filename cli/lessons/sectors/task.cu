// Copies elements 1 to n - 1. Element 0 is the same in both arrays.
__global__ void copy_body(float *out, const float *in, int n) {
    int i = 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i];
    }
}
