// Transposes `in`, which has `height` rows of `width` floats. Both are multiples of 32, and a
// block of 32 x 32 threads takes a tile of 32 x 32. The stores run down a column of `out`.
__global__ void transpose(float *out, const float *in, int width, int height) {
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    out[x * height + y] = in[y * width + x];
}
