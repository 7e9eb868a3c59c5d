// One file of a program whose kernel calls a function of another file.
#include <cstdio>

extern __device__ int twice(int number);
extern __device__ int offset;

__global__ void kernel(int *out) { *out = twice(20) + offset; }

int main() {
    int *device, host = 0;
    cudaMalloc(&device, sizeof host);
    kernel<<<1, 1>>>(device);
    cudaError_t result = cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost);
    if (result != cudaSuccess || host != 42) {
        std::printf("%d after %s\n", host, cudaGetErrorName(result));
        return 1;
    }
    std::printf("linked is right\n");
    return 0;
}
