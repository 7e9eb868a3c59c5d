// Access patterns of every kind that the software GPU counts, for scripts/counters measure. `patterns.ptx` beside this file is
// what nvcc makes of it; `patterns-h100.json` is what an H100 counted.
//
// Two families cover addresses: `*_map_*` takes a slot for each lane of one warp, 4 bits each, and a mask of lanes;
// `*_at_*` computes an index from the thread's number. The rest are textbook kernels, control flow, atomics, and local memory.

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
struct alignas(16) quad { u32 x, y, z, w; };

__device__ u32 lane() { return threadIdx.x & 31; }
__device__ u32 thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ u32 mix(u32 x) {
    x ^= x >> 16;
    x *= 0x7feb352d;
    x ^= x >> 15;
    x *= 0x846ca68b;
    return x ^ x >> 16;
}
// Lane's 4 bits of two words, as a place: the upper half's lie `apart` further.
__device__ u32 slot(u64 low, u64 high, u32 apart) {
    u32 nibble = ((lane() < 16 ? low : high) >> 4 * (lane() & 15)) & 15;
    return nibble + (lane() < 16 ? 0 : apart);
}
// A strided, permuted, grouped or random place.
__device__ u32 at(u32 t, u32 flip, u32 group, int stride, int start, u32 seed, u32 range) {
    return seed ? mix(t + seed) % range : (u32)((int)((t ^ flip) >> group) * stride + start);
}

__device__ u32 fold(u8 v) { return v; }
__device__ u32 fold(u16 v) { return v; }
__device__ u32 fold(u32 v) { return v; }
__device__ u32 fold(u64 v) { return (u32)v ^ (u32)(v >> 32); }
__device__ u32 fold(quad v) { return v.x ^ v.y ^ v.z ^ v.w; }
__device__ void of(u32 v, u8& to) { to = v; }
__device__ void of(u32 v, u16& to) { to = v; }
__device__ void of(u32 v, u32& to) { to = v; }
__device__ void of(u32 v, u64& to) { to = v; }
__device__ void of(u32 v, quad& to) { to = quad{v, v, v, v}; }

// Volatile assembly, so that accesses to memory of one thread alone stay.
__device__ void lds(u32 at, u8& v) { u32 w; asm volatile("ld.volatile.shared.u8 %0, [%1];" : "=r"(w) : "r"(at)); v = w; }
__device__ void lds(u32 at, u16& v) { asm volatile("ld.volatile.shared.u16 %0, [%1];" : "=h"(v) : "r"(at)); }
__device__ void lds(u32 at, u32& v) { asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v) : "r"(at)); }
__device__ void lds(u32 at, u64& v) { asm volatile("ld.volatile.shared.u64 %0, [%1];" : "=l"(v) : "r"(at)); }
__device__ void lds(u32 at, quad& v) {
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
}
__device__ void sts(u32 at, u8 v) { asm volatile("st.volatile.shared.u8 [%0], %1;" ::"r"(at), "r"((u32)v)); }
__device__ void sts(u32 at, u16 v) { asm volatile("st.volatile.shared.u16 [%0], %1;" ::"r"(at), "h"(v)); }
__device__ void sts(u32 at, u32 v) { asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at), "r"(v)); }
__device__ void sts(u32 at, u64 v) { asm volatile("st.volatile.shared.u64 [%0], %1;" ::"r"(at), "l"(v)); }
__device__ void sts(u32 at, quad v) {
    asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
}

#define MAP u32 mask, u64 low, u64 high, u32 apart, int stride, int start
#define PLACE (slot(low, high, apart) * stride + start)
#define AT u32 mask, u32 flip, u32 group, int stride, int start, u32 seed, u32 range
#define WHERE at(thread(), flip, group, stride, start, seed, range)
#define ON (mask >> lane() & 1)

template <class T> __device__ void global_load(const T* a, u32* o, bool on, u32 i) {
    u32 v = 0;
    if (on) v = fold(a[i]);
    if (v == 99) o[0] = v;
}
template <class T> __device__ void global_store(T* a, bool on, u32 i) {
    T v;
    of(i, v);
    if (on) a[i] = v;
}
template <class T> __device__ void shared_load(u32* o, bool on, u32 i) {
    __shared__ alignas(16) u8 tile[32768];
    T v;
    of(0, v);
    if (on) lds((u32)__cvta_generic_to_shared(tile) + i * sizeof(T), v);
    if (fold(v) == 12345) o[0] = 1;
}
template <class T> __device__ void shared_store(bool on, u32 i) {
    __shared__ alignas(16) u8 tile[32768];
    T v;
    of(i, v);
    if (on) sts((u32)__cvta_generic_to_shared(tile) + i * sizeof(T), v);
}

extern "C" {
#define FAMILY(bytes, T)                                                                                                    \
    __global__ void g_map_ld##bytes(const T* a, u32* o, MAP) { global_load<T>(a, o, ON, PLACE); }                           \
    __global__ void g_map_st##bytes(T* a, MAP) { global_store<T>(a, ON, PLACE); }                                           \
    __global__ void s_map_ld##bytes(u32* o, MAP) { shared_load<T>(o, ON, PLACE); }                                          \
    __global__ void s_map_st##bytes(MAP) { shared_store<T>(ON, PLACE); }                                                    \
    __global__ void g_at_ld##bytes(const T* a, u32* o, AT) { global_load<T>(a, o, ON, WHERE); }                             \
    __global__ void g_at_st##bytes(T* a, AT) { global_store<T>(a, ON, WHERE); }                                             \
    __global__ void s_at_ld##bytes(u32* o, AT) { shared_load<T>(o, ON, WHERE); }                                            \
    __global__ void s_at_st##bytes(AT) { shared_store<T>(ON, WHERE); }
FAMILY(1, u8)
FAMILY(2, u16)
FAMILY(4, u32)
FAMILY(8, u64)
FAMILY(16, quad)

// Atomics at a slot for each lane.
__global__ void g_map_atom(u32* a, u32* o, MAP) {
    u32 old = 0;
    if (ON) old = atomicAdd(a + PLACE, lane());
    if (old == 54321) o[0] = 1;
}
__global__ void g_map_red(u32* a, MAP) {
    if (ON) atomicAdd(a + PLACE, lane());
}
__global__ void s_map_atom(u32* o, MAP) {
    __shared__ u32 tile[8192];
    u32 old = 0;
    if (ON) old = atomicAdd(tile + PLACE, lane());
    if (old == 54321) o[0] = 1;
}

// --- Spellings: cache operators, orderings, vectors of narrow types, generic addresses --------------------------------------
#define SPELLED_LD(name, text)                                                                                              \
    __global__ void ld_##name(const u32* a, u32* o, int stride) {                                                           \
        u32 v;                                                                                                              \
        asm volatile(text " %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(a + thread() * stride)));                   \
        if (v == 12345) o[0] = v;                                                                                           \
    }
SPELLED_LD(nc, "ld.global.nc.u32")
SPELLED_LD(ca, "ld.global.ca.u32")
SPELLED_LD(cg, "ld.global.cg.u32")
SPELLED_LD(cs, "ld.global.cs.u32")
SPELLED_LD(lu, "ld.global.lu.u32")
SPELLED_LD(cv, "ld.global.cv.u32")
SPELLED_LD(no_allocate, "ld.global.L1::no_allocate.u32")
SPELLED_LD(volatile, "ld.volatile.global.u32")
SPELLED_LD(relaxed, "ld.relaxed.gpu.global.u32")
SPELLED_LD(acquire, "ld.acquire.gpu.global.u32")
#define SPELLED_ST(name, text)                                                                                              \
    __global__ void st_##name(u32* a, int stride) {                                                                         \
        asm volatile(text " [%0], %1;" ::"l"(__cvta_generic_to_global(a + thread() * stride)), "r"(thread()));              \
    }
SPELLED_ST(wb, "st.global.wb.u32")
SPELLED_ST(cg, "st.global.cg.u32")
SPELLED_ST(cs, "st.global.cs.u32")
SPELLED_ST(wt, "st.global.wt.u32")
SPELLED_ST(volatile, "st.volatile.global.u32")
SPELLED_ST(release, "st.release.gpu.global.u32")

#define VECTOR2(name, type, T, c, bytes)                                                                                    \
    __global__ void g_##name(const T* a, T* o, int stride) {                                                                \
        T x, y;                                                                                                             \
        asm volatile("ld.global." type " {%0, %1}, [%2];" : "=" c(x), "=" c(y) : "l"(__cvta_generic_to_global((const u8*)a + thread() * stride * bytes))); \
        asm volatile("st.global." type " [%0], {%1, %2};" ::"l"(__cvta_generic_to_global((u8*)o + thread() * stride * bytes)), c(y), c(x)); \
    }                                                                                                                       \
    __global__ void s_##name(T* o, int stride) {                                                                            \
        __shared__ alignas(16) u8 tile[32768];                                                                              \
        u32 where = (u32)__cvta_generic_to_shared(tile) + threadIdx.x * stride * bytes;                                     \
        T x = threadIdx.x, y = stride;                                                                                      \
        asm volatile("st.shared." type " [%0], {%1, %2};" ::"r"(where), c(y), c(x));                                        \
        __syncthreads();                                                                                                    \
        asm volatile("ld.shared." type " {%0, %1}, [%2];" : "=" c(x), "=" c(y) : "r"(where ^ 16));                          \
        if (x + y == 12345) o[0] = x;                                                                                       \
    }
#define VECTOR4(name, type, T, c, bytes)                                                                                    \
    __global__ void g_##name(const T* a, T* o, int stride) {                                                                \
        T x, y, z, w;                                                                                                       \
        asm volatile("ld.global." type " {%0, %1, %2, %3}, [%4];" : "=" c(x), "=" c(y), "=" c(z), "=" c(w) : "l"(__cvta_generic_to_global((const u8*)a + thread() * stride * bytes))); \
        asm volatile("st.global." type " [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global((u8*)o + thread() * stride * bytes)), c(w), c(z), c(y), c(x)); \
    }                                                                                                                       \
    __global__ void s_##name(T* o, int stride) {                                                                            \
        __shared__ alignas(16) u8 tile[32768];                                                                              \
        u32 where = (u32)__cvta_generic_to_shared(tile) + threadIdx.x * stride * bytes;                                     \
        T x = threadIdx.x, y = stride, z = 1, w = 2;                                                                        \
        asm volatile("st.shared." type " [%0], {%1, %2, %3, %4};" ::"r"(where), c(w), c(z), c(y), c(x));                    \
        __syncthreads();                                                                                                    \
        asm volatile("ld.shared." type " {%0, %1, %2, %3}, [%4];" : "=" c(x), "=" c(y), "=" c(z), "=" c(w) : "r"(where ^ 16)); \
        if (x + y + z + w == 12345) o[0] = x;                                                                               \
    }
VECTOR2(v2_u8, "v2.u8", u16, "h", 2)
VECTOR4(v4_u8, "v4.u8", u16, "h", 4)
VECTOR2(v2_u16, "v2.u16", u16, "h", 4)
VECTOR4(v4_u16, "v4.u16", u16, "h", 8)
VECTOR2(v2_u32, "v2.u32", u32, "r", 8)
VECTOR4(v4_u32, "v4.u32", u32, "r", 16)
VECTOR2(v2_u64, "v2.u64", u64, "l", 16)

// Generic addresses: lanes below `split` in shared memory, the others in global memory.
__global__ void generic_ld(const u32* a, u32* o, u32 split, int stride) {
    __shared__ u32 tile[1024];
    const u32* p = lane() < split ? &tile[threadIdx.x * stride & 1023] : a + thread() * stride;
    u32 v;
    asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(p));
    if (v == 12345) o[0] = v;
}
__global__ void generic_st(u32* a, u32 split, int stride) {
    __shared__ u32 tile[1024];
    u32* p = lane() < split ? &tile[threadIdx.x * stride & 1023] : a + thread() * stride;
    asm volatile("st.u32 [%0], %1;" ::"l"(p), "r"(thread()));
}
// Lanes in two allocations.
__global__ void two_buffers(const u32* a, const u32* b, u32* o, u32 mask, int stride) {
    u32 v = (ON ? a : b)[thread() * stride];
    if (v == 12345) o[0] = v;
}
// Two loads side by side that one wider load could do, and four bytes of one word.
__global__ void adjacent_8(const u64* a, u32* o) {
    const u64* p = a + 2 * thread();
    u64 x = p[0], y = p[1];
    if (x + y == 12345) o[0] = 1;
}
__global__ void adjacent_4(const u32* a, u32* o) {
    const u32* p = a + 4 * thread();
    u32 v = p[0] + p[1] + p[2] + p[3];
    if (v == 12345) o[0] = 1;
}
__global__ void adjacent_shared(u32* o) {
    __shared__ alignas(16) u32 tile[1024];
    tile[4 * threadIdx.x] = 1, tile[4 * threadIdx.x + 1] = 2, tile[4 * threadIdx.x + 2] = 3, tile[4 * threadIdx.x + 3] = 4;
    __syncthreads();
    const u32* p = tile + 4 * (threadIdx.x ^ 1);
    u32 v = p[0] + p[1] + p[2] + p[3];
    if (v == 12345) o[0] = 1;
}

// --- Control flow: what PTX branches around, SASS may issue with no lane on ---------------------------------------------------
__global__ void guard_load(const u32* a, u32* o, u32 below) {
    u32 v = 0;
    if (thread() < below) v = a[thread()];
    if (v == 12345) o[0] = v;
}
__global__ void guard_return(const u32* a, u32* o, u32 below) {
    if (thread() >= below) return;
    o[thread()] = a[thread()] + 1;
}
__global__ void guard_both(const u32* a, u32* o, u32 below) {
    if (thread() < below) o[thread()] = a[thread()];
    else o[thread()] = a[thread() + 1];
}
__global__ void guard_shared(u32* o, u32 below) {
    __shared__ u32 tile[1024];
    if (threadIdx.x < below) tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    u32 v = 0;
    if (threadIdx.x < below) v = tile[threadIdx.x ^ 1];
    if (v == 12345) o[0] = v;
}
__global__ void lane_loop(const u32* a, u32* o, u32 n) {
    u32 v = 0;
    for (u32 i = 0; i < lane() % n; i++) v += a[thread() + i * 32];
    if (v == 12345) o[0] = v;
}
__global__ void warp_switch(const u32* a, u32* o) {
    u32 v = 0;
    switch (lane() & 3) {
        case 0: v = a[thread()]; break;
        case 1: v = a[thread() + 64] * 3; break;
        case 2: v = a[thread() + 128] + 7; break;
        default: v = a[thread() + 192] ^ 5;
    }
    o[thread()] = v;
}
__global__ void unrolled(const u32* a, u32* o, int stride) {
    u32 v = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) v += a[thread() * stride + i];
    o[thread()] = v;
}
__global__ void repeated(const u32* a, u32* o) {
    u32 x = a[thread()], y = a[thread() ^ 1], z = a[thread()];
    o[thread()] = x + y * 3 + z * 5;
}
__global__ void stored_then_loaded(u32* a) {
    a[thread()] = 7;
    a[thread() + 1024] = a[thread()] + 1;
}

// --- Local memory -------------------------------------------------------------------------------------------------------------
__global__ void local_words(u32* o, u32 at, u32 step) {
    u32 own[32];
    for (int i = 0; i < 32; i++) own[(i + at) & 31] = i * at;
    o[thread()] = own[(at + lane() * step) & 31];
}
__global__ void local_bytes(u32* o, u32 at, u32 step) {
    u8 own[64];
    for (int i = 0; i < 64; i++) own[(i + at) & 63] = i * at;
    o[thread()] = own[(at + lane() * step) & 63];
}
__global__ void local_quads(u32* o, u32 at, u32 step) {
    quad own[8];
    for (int i = 0; i < 8; i++) of(i * at, own[(i + at) & 7]);
    o[thread()] = fold(own[(at + lane() * step) & 7]);
}
__global__ void local_doubles(u32* o, u32 at, u32 step) {
    u64 own[16];
    for (int i = 0; i < 16; i++) own[(i + at) & 15] = i * at;
    o[thread()] = fold(own[(at + lane() * step) & 15]);
}

// --- Atomics: `used` says whether the old value is looked at ------------------------------------------------------------------
#define ATOMIC(name, T, text, c, zero)                                                                                      \
    __global__ void g_atom_##name(T* a, u32* o, u32 mask, u32 group, int stride) {                                          \
        T old = zero;                                                                                                       \
        if (ON) asm volatile("atom.global." text " %0, [%1], %2;" : "=" c(old) : "l"(__cvta_generic_to_global(a + (thread() >> group) * stride)), c((T)thread()) : "memory"); \
        if (old == (T)54321) o[0] = 1;                                                                                      \
    }                                                                                                                       \
    __global__ void s_atom_##name(u32* o, u32 mask, u32 group, int stride) {                                                \
        __shared__ alignas(16) u8 tile[32768];                                                                              \
        T old = zero;                                                                                                       \
        if (ON) asm volatile("atom.shared." text " %0, [%1], %2;" : "=" c(old) : "r"((u32)__cvta_generic_to_shared(tile) + (u32)((threadIdx.x >> group) * stride * sizeof(T))), c((T)thread()) : "memory"); \
        if (old == (T)54321) o[0] = 1;                                                                                      \
    }                                                                                                                       \
    __global__ void g_dead_##name(T* a, u32 mask, u32 group, int stride) {                                                  \
        [[maybe_unused]] T old;                                                                                             \
        if (ON) asm volatile("atom.global." text " %0, [%1], %2;" : "=" c(old) : "l"(__cvta_generic_to_global(a + (thread() >> group) * stride)), c((T)thread()) : "memory"); \
    }                                                                                                                       \
    __global__ void s_dead_##name(u32 mask, u32 group, int stride) {                                                        \
        __shared__ alignas(16) u8 tile[32768];                                                                              \
        [[maybe_unused]] T old;                                                                                             \
        if (ON) asm volatile("atom.shared." text " %0, [%1], %2;" : "=" c(old) : "r"((u32)__cvta_generic_to_shared(tile) + (u32)((threadIdx.x >> group) * stride * sizeof(T))), c((T)thread()) : "memory"); \
    }
ATOMIC(add_u32, u32, "add.u32", "r", 0)
ATOMIC(add_u64, u64, "add.u64", "l", 0)
ATOMIC(add_f32, float, "add.f32", "f", 0)
ATOMIC(exch_b32, u32, "exch.b32", "r", 0)
ATOMIC(max_s32, u32, "max.s32", "r", 0)
ATOMIC(or_b32, u32, "or.b32", "r", 0)
#define REDUCTION(name, T, text, c)                                                                                         \
    __global__ void g_red_##name(T* a, u32 mask, u32 group, int stride) {                                                   \
        if (ON) asm volatile("red.global." text " [%0], %1;" ::"l"(__cvta_generic_to_global(a + (thread() >> group) * stride)), c((T)thread()) : "memory"); \
    }                                                                                                                       \
    __global__ void s_red_##name(u32 mask, u32 group, int stride) {                                                         \
        __shared__ alignas(16) u8 tile[32768];                                                                              \
        if (ON) asm volatile("red.shared." text " [%0], %1;" ::"r"((u32)__cvta_generic_to_shared(tile) + (u32)((threadIdx.x >> group) * stride * sizeof(T))), c((T)thread()) : "memory"); \
    }
REDUCTION(add_u32, u32, "add.u32", "r")
REDUCTION(add_u64, u64, "add.u64", "l")
REDUCTION(add_f32, float, "add.f32", "f")
__global__ void g_cas(u32* a, u32* o, u32 mask, u32 group, int stride) {
    u32 old = 0;
    if (ON) old = atomicCAS(a + (thread() >> group) * stride, 0, thread());
    if (old == 54321) o[0] = 1;
}
__global__ void s_cas(u32* o, u32 mask, u32 group, int stride) {
    __shared__ u32 tile[8192];
    u32 old = 0;
    if (ON) old = atomicCAS(tile + (threadIdx.x >> group) * stride, 0, thread());
    if (old == 54321) o[0] = 1;
}
__global__ void generic_atom(u32* a, u32* o, u32 split, int stride) {
    __shared__ u32 tile[1024];
    u32* p = lane() < split ? &tile[threadIdx.x * stride & 1023] : a + thread() * stride;
    u32 old;
    asm volatile("atom.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(1) : "memory");
    if (old == 54321) o[0] = 1;
}
// One counter for the whole grid, as CUDA C++ writes it.
__global__ void count_all(u32* a) { atomicAdd(a, 1u); }

// --- Textbook kernels -----------------------------------------------------------------------------------------------------------
__global__ void transpose_naive(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) out[x * height + y] = in[y * width + x];
}
#define TRANSPOSE(name, pitch, T)                                                                                           \
    __global__ void name(const T* in, T* out, int width, int height) {                                                      \
        __shared__ T tile[32][pitch];                                                                                       \
        int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;                                           \
        for (int j = 0; j < 32; j += blockDim.y)                                                                            \
            if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];                  \
        __syncthreads();                                                                                                    \
        x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;                                               \
        for (int j = 0; j < 32; j += blockDim.y)                                                                            \
            if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];                \
    }
TRANSPOSE(transpose_tiled, 32, float)
TRANSPOSE(transpose_padded, 33, float)
TRANSPOSE(transpose_doubles, 33, double)
TRANSPOSE(transpose_bytes, 33, u8)
TRANSPOSE(transpose_quads, 33, quad)
__global__ void transpose_swizzled(const float* in, float* out, int width) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x ^ (threadIdx.y + j)] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (int j = 0; j < 32; j += 8) out[(y + j) * width + x] = tile[threadIdx.x][threadIdx.x ^ (threadIdx.y + j)];
}
__global__ void transpose_small(const float* in, float* out, int width) {
    __shared__ float tile[8][9];
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    out[(blockIdx.x * 8 + threadIdx.y) * width + blockIdx.y * 8 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void copy_grid_stride(const float* in, float* out, int n) {
    for (int i = thread(); i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}
__global__ void copy_vectors(const float4* in, float4* out, int n) {
    for (int i = thread(); i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}
__global__ void copy_coarse(const float* in, float* out) {
#pragma unroll
    for (int i = 0; i < 4; i++) out[blockIdx.x * blockDim.x * 4 + i * blockDim.x + threadIdx.x] = in[blockIdx.x * blockDim.x * 4 + i * blockDim.x + threadIdx.x];
}
struct particle { float x, y, z, mass, age; };
__global__ void array_of_structs(const particle* in, float* out, int n) {
    int i = thread();
    if (i < n) out[i] = in[i].x * in[i].mass + in[i].age;
}
__global__ void saxpy(float* y, const float* x, float a, int n) {
    int i = thread();
    if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void gather(const int* index, const float* in, float* out, int n, u32 range) {
    int i = thread();
    if (i < n) out[i] = in[mix(index[i]) % range];
}
__global__ void scatter(const int* index, const float* in, float* out, int n, u32 range) {
    int i = thread();
    if (i < n) out[mix(index[i]) % range] = in[i];
}
__global__ void matrix_times_vector(const float* m, const float* v, float* out, int rows, int columns) {
    int row = thread();
    if (row >= rows) return;
    float sum = 0;
    for (int j = 0; j < columns; j++) sum += m[row * columns + j] * v[j];
    out[row] = sum;
}
// Reductions, after the steps of a well known talk: interleaved with a remainder, with strides, sequential, and by warp.
__global__ void reduce_interleaved(const float* in, float* out) {
    __shared__ float part[256];
    part[threadIdx.x] = in[thread()];
    __syncthreads();
    for (u32 s = 1; s < blockDim.x; s *= 2) {
        if (threadIdx.x % (2 * s) == 0) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
__global__ void reduce_strided(const float* in, float* out) {
    __shared__ float part[256];
    part[threadIdx.x] = in[thread()];
    __syncthreads();
    for (u32 s = 1; s < blockDim.x; s *= 2) {
        u32 i = 2 * s * threadIdx.x;
        if (i < blockDim.x) part[i] += part[i + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
__global__ void reduce_sequential(const float* in, float* out) {
    __shared__ float part[256];
    part[threadIdx.x] = in[thread()];
    __syncthreads();
    for (u32 s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
__global__ void reduce_warp_unrolled(const float* in, float* out) {
    __shared__ volatile float part[256];
    part[threadIdx.x] = in[thread()];
    __syncthreads();
    for (u32 s = blockDim.x / 2; s > 32; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x < 32) {
#pragma unroll
        for (int s = 32; s > 0; s >>= 1) {
            part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + s];
            __syncwarp();
        }
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
__global__ void reduce_shuffle(const float* in, float* out, int n) {
    __shared__ float part[32];
    float sum = 0;
    for (int i = thread(); i < n; i += gridDim.x * blockDim.x) sum += in[i];
    for (int s = 16; s > 0; s >>= 1) sum += __shfl_down_sync(0xffffffff, sum, s);
    if (lane() == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
        for (int s = 16; s > 0; s >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, s);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}
__global__ void reduce_atomic(const float* in, float* out, int n) {
    float sum = 0;
    for (int i = thread(); i < n; i += gridDim.x * blockDim.x) sum += in[i];
    for (int s = 16; s > 0; s >>= 1) sum += __shfl_down_sync(0xffffffff, sum, s);
    if (lane() == 0) atomicAdd(out, sum);
}
__global__ void scan_hillis_steele(const float* in, float* out) {
    __shared__ float row[2][256];
    int from = 0;
    row[0][threadIdx.x] = in[thread()];
    __syncthreads();
    for (u32 s = 1; s < blockDim.x; s *= 2) {
        float v = row[from][threadIdx.x];
        if (threadIdx.x >= s) v += row[from][threadIdx.x - s];
        row[1 - from][threadIdx.x] = v;
        from = 1 - from;
        __syncthreads();
    }
    out[thread()] = row[from][threadIdx.x];
}
#define SCAN(name, PAD)                                                                                                     \
    __global__ void name(const float* in, float* out) {                                                                     \
        __shared__ alignas(8) float row[512 + 16];                                                                          \
        u32 t = threadIdx.x, n = 2 * blockDim.x, base = blockIdx.x * n, apart = 1;                                          \
        float2 own = make_float2(in[base + 2 * t], in[base + 2 * t + 1]);                                                   \
        row[PAD(2 * t)] = own.x;                                                                                            \
        row[PAD(2 * t + 1)] = own.y;                                                                                        \
        for (u32 d = n >> 1; d > 0; d >>= 1, apart *= 2) {                                                                  \
            __syncthreads();                                                                                                \
            if (t < d) row[PAD(apart * (2 * t + 2) - 1)] += row[PAD(apart * (2 * t + 1) - 1)];                              \
        }                                                                                                                   \
        if (t == 0) row[PAD(n - 1)] = 0;                                                                                    \
        for (u32 d = 1; d < n; d *= 2) {                                                                                    \
            apart >>= 1;                                                                                                    \
            __syncthreads();                                                                                                \
            if (t < d) {                                                                                                    \
                u32 left = PAD(apart * (2 * t + 1) - 1), right = PAD(apart * (2 * t + 2) - 1);                              \
                float v = row[left];                                                                                        \
                row[left] = row[right];                                                                                     \
                row[right] += v;                                                                                            \
            }                                                                                                               \
        }                                                                                                                   \
        __syncthreads();                                                                                                    \
        own = make_float2(row[PAD(2 * t)], row[PAD(2 * t + 1)]);                                                            \
        out[base + 2 * t] = own.x;                                                                                          \
        out[base + 2 * t + 1] = own.y;                                                                                      \
    }
#define PLAIN(i) (i)
#define PADDED(i) ((i) + ((i) >> 5))
SCAN(scan_blelloch, PLAIN)
SCAN(scan_blelloch_padded, PADDED)
__global__ void histogram_shared(const int* in, u32* out, int n, u32 spread) {
    __shared__ u32 bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = thread(); i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[mix(in[i]) % spread], 1u);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
__global__ void histogram_global(const int* in, u32* out, int n, u32 spread) {
    int i = thread();
    if (i < n) atomicAdd(&out[mix(in[i]) % spread], 1u);
}
__global__ void stencil_1d(const float* in, float* out, int n) {
    __shared__ float tile[256 + 6];
    int i = thread(), at = threadIdx.x + 3;
    tile[at] = i < n ? in[i] : 0;
    if (threadIdx.x < 3) {
        tile[at - 3] = i >= 3 ? in[i - 3] : 0;
        tile[at + blockDim.x] = i + (int)blockDim.x < n ? in[i + blockDim.x] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int j = -3; j <= 3; j++) sum += tile[at + j];
    if (i < n) out[i] = sum;
}
__global__ void stencil_2d(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const float* p = in + y * width + x;
    out[y * width + x] = p[0] * 4 - p[-1] - p[1] - p[-width] - p[width];
}
__global__ void matmul_tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        left[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}
// `matmul_tiled` as ptxas changes it: it merges loads of neighbouring words of shared memory, whose alignment it knows.
__global__ void matmul_tiled_merged(const float* a, const float* b, float* c, int n) {
    __shared__ alignas(16) float left[16][16], right[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        left[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        for (int i = 0; i < 16; i += 4) {
            float4 four = *(float4*)&left[threadIdx.y][i];
            sum += four.x * right[i][threadIdx.x];
            sum += four.y * right[i + 1][threadIdx.x];
            sum += four.z * right[i + 2][threadIdx.x];
            sum += four.w * right[i + 3][threadIdx.x];
        }
        __syncthreads();
    }
    c[y * n + x] = sum;
}
__global__ void matmul_naive(const float* a, const float* b, float* c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
}
