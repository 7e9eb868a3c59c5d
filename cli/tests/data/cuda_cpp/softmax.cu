// Softmax along rows, a block of 128 threads each.
template <typename Combine>
__device__ float over_block(float value, float* shared, Combine combine) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
        }
        __syncthreads();
    }
    float all = shared[0];
    __syncthreads();
    return all;
}

__global__ void softmax(float* out, const float* in, int columns) {
    __shared__ float shared[128];
    const float* row = in + blockIdx.x * columns;
    float most = -1e30f;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        most = fmaxf(most, row[column]);
    }
    most = over_block(most, shared, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0.0f;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        sum += expf(row[column] - most);
    }
    sum = over_block(sum, shared, [](float a, float b) { return a + b; });
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        out[blockIdx.x * columns + column] = expf(row[column] - most) / sum;
    }
}

// The length of each vector of three numbers.
__global__ void lengths(float* out, const float3* vectors, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float3 v = vectors[i];
        out[i] = sqrtf(fmaf(v.x, v.x, fmaf(v.y, v.y, v.z * v.z)));
    }
}
