// Stands for the headers that programs of CUDA C++ include, and that no compiler needs for their
// kernels: the integers of <cstdint>, and `assert`.
#ifndef WARPSTRIDE_STANDARD_H
#define WARPSTRIDE_STANDARD_H

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;

namespace std {
using ::int8_t;
using ::uint8_t;
using ::int16_t;
using ::uint16_t;
using ::int32_t;
using ::uint32_t;
using ::int64_t;
using ::uint64_t;
using ::intptr_t;
using ::uintptr_t;
using ::size_t;
}  // namespace std

#ifndef assert
extern "C" __device__ void __assertfail(
    const char *message, const char *file, unsigned int line, const char *function, size_t size);
#define assert(holds) ((holds) ? (void)0 : __assertfail(#holds, __FILE__, __LINE__, __func__, 1))
#endif

#ifndef INT_MAX
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#endif
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

#endif
