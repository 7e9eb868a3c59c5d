// Steps of Collatz's sequence, in a loop that breaks.
__global__ void collatz(int* steps, const int* start, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int value = start[i] + 1;
    int count = 0;
    while (true) {
        if (value == 1 || count == 1000) break;
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        count++;
    }
    steps[i] = count;
}

// Mandelbrot's set: the loop ends at another time in each lane.
__global__ void mandelbrot(int* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int cx = (x * 3 * 4096) / width - 2 * 4096, cy = (y * 2 * 4096) / height - 4096;
    int zx = 0, zy = 0, count = 0;
    for (; count < 50; count++) {
        int xx = (zx * zx) >> 12, yy = (zy * zy) >> 12;
        if (xx + yy > 4 * 4096) break;
        zy = ((2 * zx * zy) >> 12) + cy;
        zx = xx - yy + cx;
    }
    out[y * width + x] = count;
}

// A switch with many cases.
__global__ void choose(int* out, const int* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int value = in[i];
    switch (value % 8) {
        case 0: value += 17; break;
        case 1: value *= 3; break;
        case 2: value -= 5; break;
        case 3: value ^= 0x55; break;
        case 4: value <<= 2; break;
        case 5: value = -value; // and on
        case 6: value += i; break;
        default: value = 0;
    }
    out[i] = value;
}

struct Pair {
    int first;
    int second;
};

// A function that is called, with a structure for its result.
__device__ __noinline__ Pair divided(int a, int b) {
    return {a / b, a % b};
}

__device__ int calls;

__global__ void quotients(Pair* out, const int* a, const int* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = divided(a[i], b[i] + 1);
        atomicAdd(&calls, 1);
    }
}
