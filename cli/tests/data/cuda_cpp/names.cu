// Kernels in namespaces, of templates and of C.
namespace math {
template <typename T>
__global__ void scale(T* values, T factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        values[i] = values[i] * factor;
    }
}

template __global__ void scale<float>(float*, float, int);
template __global__ void scale<long long>(long long*, long long, int);
}  // namespace math

namespace {
__device__ float shifted(float value, float by) {
    return value + by;
}
}  // namespace

extern "C" __global__ void shift(float* values, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        values[i] = shifted(values[i], by);
    }
}
