// Five kernels with a fault each. The values of most of them are right all the same.

// The step from each element to the one before it; the first element has a step of 1.
__global__ void steps(int *out, const int *in) {
    __shared__ int part[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = in[i];
    int first = i > 0 ? in[i - 1] : in[i] - 1;
    int before = t > 0 ? part[t - 1] : first;
    out[i] = in[i] - before;
}

// Transposes a tile of 32 x 32 floats; a word behind each row keeps columns out of one bank.
__global__ void turn(float *out, const float *in) {
    __shared__ float tile[32 * 32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y * 33 + x] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = tile[x * 33 + y];
}

// Sets the negative ones of `n` floats to 0, where they lie.
__global__ void clamp(float *a, int n) {
    int i = blockIdx.x * 224 + threadIdx.x;
    if (i < n) {
        a[i] = fmaxf(a[i], 0);
    }
}

// Adds up `n` floats, at most 256, in one block of 256 threads.
__global__ void total(float *out, const float *in, int n) {
    __shared__ float part[256];
    int t = threadIdx.x;
    if (t < n) {
        part[t] = in[t];
    }
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
        out[i + 1] = 2 * in[i + 1];
    }
}
