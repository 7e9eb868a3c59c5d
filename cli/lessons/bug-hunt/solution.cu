// The five kernels without their faults; a comment names each one.

// The step from each element to the one before it; the first element has a step of 1.
__global__ void steps(int *out, const int *in) {
    __shared__ int part[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = in[i];
    // A thread reads what its neighbour stores.
    __syncthreads();
    int first = i > 0 ? in[i - 1] : in[i] - 1;
    int before = t > 0 ? part[t - 1] : first;
    out[i] = in[i] - before;
}

// Transposes a tile of 32 x 32 floats; a word behind each row keeps columns out of one bank.
__global__ void turn(float *out, const float *in) {
    // The place of row 31 and column 31 is 31 * 33 + 31, which is 1054.
    __shared__ float tile[32 * 33];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y * 33 + x] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = tile[x * 33 + y];
}

// Sets the negative ones of `n` floats to 0, where they lie.
__global__ void clamp(float *a, int n) {
    // With 224, two blocks had each 32 elements in common.
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) {
        a[i] = fmaxf(a[i], 0);
    }
}

// Adds up `n` floats, at most 256, in one block of 256 threads.
__global__ void total(float *out, const float *in, int n) {
    __shared__ float part[256];
    int t = threadIdx.x;
    // The sum takes all 256 words, also those behind the last float.
    part[t] = t < n ? in[t] : 0;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (t < step) {
            part[t] += part[t + step];
        }
    }
    if (t == 0) {
        *out = part[0];
    }
}

// Doubles `n` floats. A thread takes two neighbours.
__global__ void twice(float *out, const float *in, int n) {
    int i = 2 * (blockIdx.x * 256 + threadIdx.x);
    if (i < n) {
        out[i] = 2 * in[i];
        // The last thread has one element where `n` is odd.
        if (i + 1 < n) {
            out[i + 1] = 2 * in[i + 1];
        }
    }
}
