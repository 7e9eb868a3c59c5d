// Transposes `in`, which has `height` rows of `width` floats. A block of 32 x 8 threads is there
// for each 32 x 32 elements of `in`: `blockIdx.x` counts them along a row, `blockIdx.y` downwards.
__global__ void transpose(float *out, const float *in, int width, int height) {
}
