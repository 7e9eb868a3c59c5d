// The other file.
__device__ int offset = 2;
__device__ int twice(int number) { return 2 * number; }
