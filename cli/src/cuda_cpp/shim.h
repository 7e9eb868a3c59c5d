// `run-cu` gives this to clang in place of CUDA's headers, which clang does not bring: the words of
// the language, vector types, and the functions of the device that become one or few instructions.
#pragma once

#define __CUDACC__
#define __CUDACC_RTC__
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
// Code that is inlined from here counts as the line that calls it.
#define SHIM_BOTH __host__ __device__ __forceinline__ __attribute__((nodebug))
#define SHIM static __device__ __forceinline__ __attribute__((nodebug))

#include <stddef.h>
extern "C" __device__ int printf(const char *, ...);

// Vector types of one to four members. Those of two and four are copied as wide as they are aligned,
// where clang by itself copies member by member or in halves.
#define SHIM_WIDE(NAME, TYPE, COUNT, ALIGN)                                                          \
    NAME() = default;                                                                                \
    SHIM_BOTH NAME(const NAME &other) { *this = other; }                                             \
    SHIM_BOTH NAME &operator=(const NAME &other) {                                                   \
        typedef TYPE all __attribute__((ext_vector_type(COUNT), aligned(ALIGN), may_alias));         \
        *(all *)this = *(const all *)&other;                                                         \
        return *this;                                                                                \
    }
#define SHIM_VECTORS(NAME, TYPE, ALIGN2, ALIGN4)                                                     \
    struct NAME##1 {                                                                                 \
        TYPE x;                                                                                      \
    };                                                                                               \
    struct __attribute__((aligned(ALIGN2), trivial_abi)) NAME##2 {                                   \
        TYPE x, y;                                                                                   \
        SHIM_WIDE(NAME##2, TYPE, 2, ALIGN2)                                                          \
        SHIM_BOTH constexpr NAME##2(TYPE x, TYPE y) : x(x), y(y) {}                                  \
    };                                                                                               \
    struct NAME##3 {                                                                                 \
        TYPE x, y, z;                                                                                \
    };                                                                                               \
    struct __attribute__((aligned(ALIGN4), trivial_abi)) NAME##4 {                                   \
        TYPE x, y, z, w;                                                                             \
        SHIM_WIDE(NAME##4, TYPE, 4, ALIGN4)                                                          \
        SHIM_BOTH constexpr NAME##4(TYPE x, TYPE y, TYPE z, TYPE w) : x(x), y(y), z(z), w(w) {}      \
    };                                                                                               \
    static SHIM_BOTH constexpr NAME##1 make_##NAME##1(TYPE x) { return {x}; }                        \
    static SHIM_BOTH constexpr NAME##2 make_##NAME##2(TYPE x, TYPE y) { return {x, y}; }             \
    static SHIM_BOTH constexpr NAME##3 make_##NAME##3(TYPE x, TYPE y, TYPE z) { return {x, y, z}; }  \
    static SHIM_BOTH constexpr NAME##4 make_##NAME##4(TYPE x, TYPE y, TYPE z, TYPE w) {             \
        return {x, y, z, w};                                                                      \
    }
SHIM_VECTORS(char, signed char, 2, 4)
SHIM_VECTORS(uchar, unsigned char, 2, 4)
SHIM_VECTORS(short, short, 4, 8)
SHIM_VECTORS(ushort, unsigned short, 4, 8)
SHIM_VECTORS(int, int, 8, 16)
SHIM_VECTORS(uint, unsigned int, 8, 16)
SHIM_VECTORS(longlong, long long, 16, 16)
SHIM_VECTORS(ulonglong, unsigned long long, 16, 16)
SHIM_VECTORS(float, float, 8, 16)
SHIM_VECTORS(double, double, 16, 16)
#undef SHIM_VECTORS
#undef SHIM_WIDE

struct dim3 {
    unsigned int x, y, z;
    constexpr __host__ __device__ dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};
#include <__clang_cuda_builtin_vars.h>

// Shuffles of 4 and 8 bytes.
#define SHIM_SHUFFLE(NAME, INTRINSIC, CLAMP)                                                         \
    template <typename T>                                                                            \
    SHIM T NAME(unsigned int mask, T value, int lane, int width = 32) {                              \
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle takes 4 or 8 bytes");             \
        int words[sizeof(T) / 4];                                                                    \
        __builtin_memcpy(words, &value, sizeof(T));                                                  \
        for (int &word : words) word = INTRINSIC(mask, word, lane, (32 - width) << 8 | CLAMP);       \
        __builtin_memcpy(&value, words, sizeof(T));                                                  \
        return value;                                                                                \
    }
SHIM_SHUFFLE(__shfl_sync, __nvvm_shfl_sync_idx_i32, 31)
SHIM_SHUFFLE(__shfl_up_sync, __nvvm_shfl_sync_up_i32, 0)
SHIM_SHUFFLE(__shfl_down_sync, __nvvm_shfl_sync_down_i32, 31)
SHIM_SHUFFLE(__shfl_xor_sync, __nvvm_shfl_sync_bfly_i32, 31)
#undef SHIM_SHUFFLE

// Votes, barriers and fences. Before version 16, clang keeps shared variables in registers beyond its
// own barriers, as if no other thread wrote them; an empty assembly that clobbers memory ends that.
#define SHIM_CLOBBER asm volatile("" ::: "memory")
#define SHIM_ORDERED(NAME, CALL)                                                                     \
    SHIM void NAME() {                                                                               \
        SHIM_CLOBBER;                                                                                \
        CALL();                                                                                      \
        SHIM_CLOBBER;                                                                                \
    }
#define SHIM_COUNTED(NAME, CALL)                                                                     \
    SHIM int NAME(int is) {                                                                          \
        SHIM_CLOBBER;                                                                                \
        int all = CALL(is);                                                                          \
        SHIM_CLOBBER;                                                                                \
        return all;                                                                                  \
    }
SHIM_ORDERED(shim_syncthreads, __syncthreads)
SHIM_ORDERED(__threadfence_block, __nvvm_membar_cta)
SHIM_ORDERED(__threadfence, __nvvm_membar_gl)
SHIM_ORDERED(__threadfence_system, __nvvm_membar_sys)
SHIM_COUNTED(__syncthreads_and, __nvvm_bar0_and)
SHIM_COUNTED(__syncthreads_or, __nvvm_bar0_or)
SHIM_COUNTED(__syncthreads_count, __nvvm_bar0_popc)
#define __syncthreads shim_syncthreads
SHIM void __syncwarp(unsigned int mask = ~0u) {
    SHIM_CLOBBER;
    __nvvm_bar_warp_sync(mask);
    SHIM_CLOBBER;
}
#undef SHIM_COUNTED
#undef SHIM_ORDERED
#undef SHIM_CLOBBER
SHIM int __all_sync(unsigned int mask, int is) { return __nvvm_vote_all_sync(mask, is); }
SHIM int __any_sync(unsigned int mask, int is) { return __nvvm_vote_any_sync(mask, is); }
SHIM unsigned int __ballot_sync(unsigned int mask, int is) { return __nvvm_vote_ballot_sync(mask, is); }
SHIM unsigned int __activemask() {
    unsigned int mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}

// Atomics.
#define SHIM_ATOMIC(TYPE, NAME, INTRINSIC)                                                           \
    SHIM TYPE NAME(TYPE *at, TYPE value) { return INTRINSIC(at, value); }
#define SHIM_SIGNLESS(NAME, OPERATION)                                                               \
    SHIM_ATOMIC(int, NAME, OPERATION)                                                                \
    SHIM_ATOMIC(unsigned int, NAME, OPERATION)                                                       \
    SHIM_ATOMIC(long long, NAME, OPERATION)                                                          \
    SHIM_ATOMIC(unsigned long long, NAME, OPERATION)
#define SHIM_ADD(at, value) __atomic_fetch_add(at, value, __ATOMIC_RELAXED)
#define SHIM_SUB(at, value) __atomic_fetch_sub(at, value, __ATOMIC_RELAXED)
#define SHIM_AND(at, value) __atomic_fetch_and(at, value, __ATOMIC_RELAXED)
#define SHIM_OR(at, value) __atomic_fetch_or(at, value, __ATOMIC_RELAXED)
#define SHIM_XOR(at, value) __atomic_fetch_xor(at, value, __ATOMIC_RELAXED)
#define SHIM_EXCHANGE(at, value) __atomic_exchange_n(at, value, __ATOMIC_RELAXED)
#define SHIM_MIN(at, value) __atomic_fetch_min(at, value, __ATOMIC_RELAXED)
#define SHIM_MAX(at, value) __atomic_fetch_max(at, value, __ATOMIC_RELAXED)
SHIM_SIGNLESS(atomicAdd, SHIM_ADD)
SHIM_SIGNLESS(atomicSub, SHIM_SUB)
SHIM_SIGNLESS(atomicAnd, SHIM_AND)
SHIM_SIGNLESS(atomicOr, SHIM_OR)
SHIM_SIGNLESS(atomicXor, SHIM_XOR)
SHIM_SIGNLESS(atomicExch, SHIM_EXCHANGE)
SHIM_SIGNLESS(atomicMin, SHIM_MIN)
SHIM_SIGNLESS(atomicMax, SHIM_MAX)
SHIM_ATOMIC(float, atomicAdd, __nvvm_atom_add_gen_f)
SHIM_ATOMIC(double, atomicAdd, __nvvm_atom_add_gen_d)
SHIM_ATOMIC(unsigned int, atomicInc, __nvvm_atom_inc_gen_ui)
SHIM_ATOMIC(unsigned int, atomicDec, __nvvm_atom_dec_gen_ui)
// The address alone says the type: CUDA's overloads convert the numbers.
template <typename T> struct ShimSame { using Type = T; };
template <typename T>
SHIM T atomicCAS(T *at, typename ShimSame<T>::Type expected, typename ShimSame<T>::Type value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

// Loads through the cache of read-only data, and clocks.
template <typename T>
SHIM T __ldg(const T *at) { return *at; }
SHIM long long clock64() { return __nvvm_read_ptx_sreg_clock64(); }
SHIM int clock() { return __nvvm_read_ptx_sreg_clock(); }

// Integers.
#define SHIM_EXTREMES(RESULT, A, B)                                                                  \
    SHIM constexpr RESULT min(A a, B b) { return (RESULT)b < (RESULT)a ? b : a; }                    \
    SHIM constexpr RESULT max(A a, B b) { return (RESULT)a < (RESULT)b ? b : a; }
SHIM_EXTREMES(int, int, int)
SHIM_EXTREMES(unsigned int, unsigned int, unsigned int)
SHIM_EXTREMES(unsigned int, int, unsigned int)
SHIM_EXTREMES(unsigned int, unsigned int, int)
SHIM_EXTREMES(long, long, long)
SHIM_EXTREMES(unsigned long, unsigned long, unsigned long)
SHIM_EXTREMES(long long, long long, long long)
SHIM_EXTREMES(unsigned long long, unsigned long long, unsigned long long)
#undef SHIM_EXTREMES
SHIM int abs(int x) { return x < 0 ? -x : x; }
SHIM int __popc(unsigned int x) { return __builtin_popcount(x); }
SHIM int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
SHIM int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
SHIM int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
SHIM int __ffs(int x) { return __builtin_ffs(x); }
SHIM int __ffsll(long long x) { return __builtin_ffsll(x); }
SHIM unsigned int __brev(unsigned int x) { return __builtin_bitreverse32(x); }
SHIM unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
SHIM int __mul24(int a, int b) { return __nvvm_mul24_i(a, b); }
SHIM int __mulhi(int a, int b) { return (long long)a * b >> 32; }
SHIM unsigned int __umulhi(unsigned int a, unsigned int b) { return (unsigned long long)a * b >> 32; }

// Bits of floats.
template <typename To, typename From>
SHIM To shim_bits(From from) {
    To to;
    __builtin_memcpy(&to, &from, sizeof(to));
    return to;
}
SHIM int __float_as_int(float x) { return shim_bits<int>(x); }
SHIM unsigned int __float_as_uint(float x) { return shim_bits<unsigned int>(x); }
SHIM float __int_as_float(int x) { return shim_bits<float>(x); }
SHIM float __uint_as_float(unsigned int x) { return shim_bits<float>(x); }
SHIM long long __double_as_longlong(double x) { return shim_bits<long long>(x); }
SHIM double __longlong_as_double(long long x) { return shim_bits<double>(x); }
SHIM float atomicExch(float *at, float value) {
    return __int_as_float(atomicExch((int *)at, __float_as_int(value)));
}

// Floats: what PTX has instructions for.
#define SHIM_FLOATS(NAME)                                                                            \
    SHIM float NAME##f(float x) { return __builtin_##NAME##f(x); }                                   \
    SHIM float NAME(float x) { return __builtin_##NAME##f(x); }                                      \
    SHIM double NAME(double x) { return __builtin_##NAME(x); }
SHIM_FLOATS(sqrt)
SHIM_FLOATS(fabs)
SHIM_FLOATS(floor)
SHIM_FLOATS(ceil)
SHIM_FLOATS(trunc)
SHIM_FLOATS(rint)
#undef SHIM_FLOATS
SHIM float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SHIM double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
SHIM float fminf(float a, float b) { return __builtin_fminf(a, b); }
SHIM double fmin(double a, double b) { return __builtin_fmin(a, b); }
SHIM float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
SHIM double fmax(double a, double b) { return __builtin_fmax(a, b); }
SHIM float min(float a, float b) { return __builtin_fminf(a, b); }
SHIM double min(double a, double b) { return __builtin_fmin(a, b); }
SHIM float max(float a, float b) { return __builtin_fmaxf(a, b); }
SHIM double max(double a, double b) { return __builtin_fmax(a, b); }
SHIM float abs(float x) { return __builtin_fabsf(x); }
SHIM double abs(double x) { return __builtin_fabs(x); }
SHIM float rsqrtf(float x) { return __nvvm_rsqrt_approx_f(x); }
SHIM float __fdividef(float a, float b) { return __nvvm_div_approx_f(a, b); }
SHIM float exp2f(float x) { return __nvvm_ex2_approx_f(x); }
SHIM float __log2f(float x) { return __nvvm_lg2_approx_f(x); }
SHIM float __logf(float x) { return __nvvm_lg2_approx_f(x) * 0.693147182f; }
SHIM float __expf(float x) { return __nvvm_ex2_approx_f(x * 1.44269502f); }
SHIM float __sinf(float x) { return __nvvm_sin_approx_f(x); }
SHIM float __cosf(float x) { return __nvvm_cos_approx_f(x); }

// e to the x as 2 to a whole number, put into the exponent, times 2 to the rest: the steps of
// CUDA's own, so that both compilers give the same bits.
SHIM float expf(float x) {
    float sum = __nvvm_fma_rm_f(__nvvm_saturate_f(__builtin_fmaf(x, 0x1.77313ap-8f, 0.5f)), 252.0f, 0x1.800002p+23f);
    float whole = sum - 0x1.8000fep+23f;
    float rest = __builtin_fmaf(x, 0x1.4ae0cp-26f, __builtin_fmaf(x, 0x1.715476p+0f, -whole));
    return __nvvm_ex2_approx_ftz_f(rest) * __int_as_float(__float_as_int(sum) << 23);
}
SHIM float exp(float x) { return expf(x); }

#undef SHIM_ATOMIC
#undef SHIM_SIGNLESS
#undef SHIM
#undef SHIM_BOTH
