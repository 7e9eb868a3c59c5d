__device__ int counter = 5;
extern "C" __global__ void __launch_bounds__(256) add(int* out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] += counter; }
