// A function of a header, whose line the compiler keeps where it is inlined.
__device__ __forceinline__ float load(const float* p, int i) {
    return p[i];
}
