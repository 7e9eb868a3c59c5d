constexpr int RADIUS = 3;
constexpr int BLOCK = 128;

// The sum of each element and its neighbours, through shared memory with halos.
__global__ void line(int* out, const int* in, int n) {
    __shared__ int near[BLOCK + 2 * RADIUS];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    int at = threadIdx.x + RADIUS;
    near[at] = i < n ? in[i] : 0;
    if (threadIdx.x < RADIUS) {
        near[at - RADIUS] = i >= RADIUS ? in[i - RADIUS] : 0;
        near[at + BLOCK] = i + BLOCK < n ? in[i + BLOCK] : 0;
    }
    __syncthreads();
    if (i >= n) {
        return;
    }
    int sum = 0;
    for (int offset = -RADIUS; offset <= RADIUS; offset++) {
        sum += near[at + offset];
    }
    out[i] = sum;
}

// A step of the heat equation on the inner points of a plane.
__global__ void heat(float* __restrict__ out, const float* __restrict__ in, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    int i = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[i] = in[i];
        return;
    }
    out[i] = 0.25f * ((in[i - 1] + in[i + 1]) + (in[i - width] + in[i + width]));
}

// A filter whose weights are in constant memory.
__constant__ float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

__global__ void blur(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 5; k++) {
        int j = min(max(i + k - 2, 0), n - 1);
        sum = fmaf(weights[k], in[j], sum);
    }
    out[i] = sum;
}
