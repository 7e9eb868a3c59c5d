// The structures of programs that textbooks and libraries write in CUDA C++, for the software GPU's tests.
//
//     nvcc -ptx -arch=sm_80 programs.cu -o programs-13.5-sm_80.ptx          with -G for the debug builds
//     nvrtc --gpu-architecture=compute_70 of CUDA 12.9                       programs-12.9-sm_70.ptx
//
// The CUDA runtime's headers are not needed.
#ifndef __CUDACC_RTC__
#include <cassert>
#include <cstdio>
#endif

#define KERNEL extern "C" __global__ void

// Transposes: naive, and through a padded tile with a loop over its rows.
KERNEL transpose_naive(const float *in, float *out, int rows, int cols) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < cols && y < rows) out[x * rows + y] = in[y * cols + x];
}

template <typename T> __device__ void transpose_tile(const T *in, T *out, int rows, int cols) {
    __shared__ T tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += blockDim.y)
        if (x < cols && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * cols + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += blockDim.y)
        if (x < rows && y + j < cols) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}
KERNEL transpose_float(const float *in, float *out, int rows, int cols) { transpose_tile(in, out, rows, cols); }
KERNEL transpose_double(const double *in, double *out, int rows, int cols) { transpose_tile(in, out, rows, cols); }

// A sum in shared memory whose size the launch gives, and an inclusive scan of each block.
extern __shared__ int dynamic[];
KERNEL reduce(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    dynamic[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) dynamic[threadIdx.x] += dynamic[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = dynamic[0];
}
KERNEL scan(const int *in, int *out) {
    int *from = dynamic, *to = dynamic + blockDim.x;
    from[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        to[threadIdx.x] = from[threadIdx.x] + (threadIdx.x >= step ? from[threadIdx.x - step] : 0);
        __syncthreads();
        int *swap = from;
        from = to;
        to = swap;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = from[threadIdx.x];
}

// A product of square matrices, tile by tile.
KERNEL matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        left[y][x] = a[row * n + tile + x];
        right[y][x] = b[(tile + y) * n + col];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

// Variables of the module: they keep their values between launches.
__device__ int launches = 40;
__device__ int history[8];
__device__ int primes[6] = {2, 3, 5, 7, 11, 13};
__device__ int *third = &primes[2];
__device__ float weights[2][3] = {{1, 2}, {0.5f}};
__constant__ int powers[5] = {1, 10, 100, 1000, 10000};
struct Node { Node *next; const int *value; short tag; };
extern __device__ Node second;
__device__ Node first = {&second, &primes[4], 7};
__device__ Node second = {nullptr, powers + 0, -7};
KERNEL variables(int *out) {
    int i = threadIdx.x;
    if (i == 0) {
        history[launches & 7] = launches;
        launches++;
    }
    __syncthreads();
    out[i] = primes[i % 6] * powers[i % 5] + *third;
    if (i == 1) {
        int count = 0;
        for (const Node *node = &first; node; node = node->next) count = count * 1000 + *node->value + node->tag;
        out[i] = count;
    }
    if (i == 2) out[i] = (int)(weights[0][1] * 100 + weights[1][0] * 10 + weights[1][2]);
    if (i == 3) out[i] = history[40 & 7] * 100 + launches;
}

// Structs by value, in and out.
struct Pair { int a; double b; char name[5]; };
__device__ __noinline__ Pair bump(Pair pair, int by) {
    pair.a += by;
    pair.b *= 2;
    pair.name[by & 3] = 7;
    return pair;
}
KERNEL structs(int *out, Pair pair, short offset) {
    Pair moved = bump(bump(pair, threadIdx.x), threadIdx.x + 1);
    int sum = 0;
    for (int i = 0; i < 5; i++) sum += moved.name[i];
    out[threadIdx.x] = moved.a + (int)moved.b + sum * 1000 + offset;
}

// Recursion with variables of its own in each activation.
__device__ __noinline__ int fibonacci(int n) {
    int kept[4];
    kept[n & 3] = n;
    if (n < 2) return n;
    int sum = fibonacci(n - 1) + fibonacci(n - 2);
    return sum + kept[n & 3] - n;
}
__device__ int is_odd(int n);
__device__ __noinline__ int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1) * 1; }
__device__ __noinline__ void hanoi(int n, int from, int to, int via, int *moves) {
    if (n == 0) return;
    hanoi(n - 1, from, via, to, moves);
    *moves = *moves * 3 + from - to;
    hanoi(n - 1, via, to, from, moves);
}
__device__ __noinline__ void quicksort(int *data, int low, int high) {
    while (low < high) {
        int pivot = data[(low + high) / 2], i = low, j = high;
        while (i <= j) {
            while (data[i] < pivot) i++;
            while (data[j] > pivot) j--;
            if (i <= j) {
                int swap = data[i];
                data[i++] = data[j];
                data[j--] = swap;
            }
        }
        quicksort(data, low, j);
        low = i;
    }
}
KERNEL recursion(int *out) {
    int i = threadIdx.x, moves = 1, sorted[12];
    hanoi(i % 5, 0, 1, 2, &moves);
    for (int k = 0; k < 12; k++) sorted[k] = (k * 7 + i * 5) % 12;
    quicksort(sorted, 0, 11);
    int order = 0;
    for (int k = 0; k < 12; k++) order += sorted[k] * (k + 1);
    out[i] = fibonacci(i % 11) + 100 * is_even(i) + moves * 1000 + order;
}

// Functions through pointers: different ones in the lanes of a warp, from a table and from an argument.
typedef int (*Operation)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ __noinline__ int power(int a, int b) { return b == 0 ? 1 : a * power(a, b - 1); }
__device__ Operation operations[4] = {add, subtract, multiply, power};
__device__ __noinline__ int fold(Operation operation, const int *values, int n, int start) {
    for (int i = 0; i < n; i++) start = operation(start, values[i]);
    return start;
}
struct Shape { __device__ virtual int area() const = 0; };
struct Square : Shape { int side; __device__ int area() const override { return side * side; } };
struct Rectangle : Shape { int a, b; __device__ int area() const override { return a * b; } };
KERNEL pointers(int *out) {
    int i = threadIdx.x, values[3] = {2, i % 3, 2};
    int result = operations[i & 3](i, 3) + fold(operations[i / 2 & 3], values, 3, 5);
    Square square;
    Rectangle rectangle;
    square.side = i;
    rectangle.a = 3, rectangle.b = i;
    const Shape *shape = i % 5 == 0 ? (const Shape *)&square : &rectangle;
    out[i] = result + 10000 * shape->area();
}

// Switches and other branches that part a warp, early returns, and a barrier in a function.
__device__ __noinline__ int classify(int n) {
    switch (n) {
    case 0: return 3;
    case 1: return n * 7;
    case 2: n += 5;
    case 3: return n - 1;
    case 4: break;
    case 5: return 5 * n;
    case 6: for (int k = 0; k < n; k++) if (k * k > 10) return k;
    case 7: n ^= 21; break;
    case 8: return -n;
    case 9: return n << 3;
    case 10: return n | 64;
    default: return n % 3;
    }
    return n + 1000;
}
__device__ __noinline__ int neighbour(int *shared, int value) {
    shared[threadIdx.x] = value;
    __syncthreads();
    int result = shared[threadIdx.x ^ 1];
    __syncthreads();
    return result;
}
KERNEL branches(int *out, int n) {
    __shared__ int shared[64];
    int i = threadIdx.x, own = classify(i % 13);
    int other = neighbour(shared, own);
    if (i >= n) return;
    int sum = neighbour(shared, other) + other;
    for (int k = 0; k < i % 7; k++) {
        if (k == 3) continue;
        sum += k & 1 ? classify(k) : k;
        if (sum > 2000) break;
    }
    out[i] = sum;
}

// Text and assertions.
KERNEL prints(const char *name, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) printf("%s: thread %2d of block %u, %.3f|%5.1e|%lld%%\n", "print", i, blockIdx.x, i / 4.0, i * 1e10, -1LL * i);
    if (i == 1) printf("plain\n");
}
KERNEL asserts(int *out, int most) {
    out[threadIdx.x] = threadIdx.x;
    assert(threadIdx.x < most);
}

// 64-bit arithmetic, bytes and shorts, unions of vectors.
KERNEL widths(const unsigned char *bytes, long long *out, int n) {
    long long sum = 0;
    unsigned short last = 0;
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
        sum = sum * 31 - bytes[k];
        last = (unsigned short)(last << 3 ^ bytes[k]);
    }
    out[threadIdx.x] = sum / 7 - sum % 5 + last;
}
KERNEL vectors(const float4 *in, float4 *out, int2 *pairs) {
    float4 value = in[threadIdx.x];
    out[threadIdx.x] = make_float4(value.w, value.z, value.y + 1, value.x * 2);
    int2 pair = pairs[threadIdx.x];
    pairs[threadIdx.x] = make_int2(pair.y, pair.x);
}
