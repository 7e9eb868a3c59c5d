#include <cuda_fp16.h>

// Half precision, by CUDA's own header.
__global__ void halves(__half* out, const __half* a, const __half* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = __hadd(a[i], __float2half(2.0f * __half2float(b[i])));
    }
}
