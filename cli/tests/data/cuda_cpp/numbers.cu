// Double precision.
__global__ void daxpy(double* y, const double* x, double a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + y[i] / 3.0;
    }
}

// Indices of 64 bits, with a stride.
__global__ void strided(unsigned long long* out, const unsigned long long* in, long long n, long long stride) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i * stride < n) {
        out[i] = in[i * stride] * 2654435761ull + (in[i * stride] >> 3);
    }
}

// Integers of 8 and 16 bits.
__global__ void narrow(short* out, const signed char* a, const unsigned short* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = (short)(a[i] * 3 - b[i] / 7);
    }
}

// Bits.
__global__ void bits(unsigned int* out, const unsigned int* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned int x = in[i];
        out[i] = __popc(x) + (__clz(x) << 8) + (__ffs(x) << 16) + (__brev(x) & 0xff000000);
    }
}

// Conversions, with their roundings.
__global__ void rounded(int* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float scaled = in[i] * 1000.0f - 500.0f;
        out[i] = (int)scaled + (int)floorf(scaled) * 3 + (int)ceilf(scaled) * 5 + (int)rintf(scaled) * 7;
    }
}
