// Both kernels transpose: `in` has n rows of n floats, and row x of `out` is column x of `in`.
// You change nothing here: run it, and name the lines that waste.

// The threads of a warp take neighbours of a row of `in`.
__global__ void along_rows(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float value = in[y * n + x];
    out[x * n + y] = value;
}

// The threads of a warp take neighbours of a row of `out`.
__global__ void along_columns(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float value = in[x * n + y];
    out[y * n + x] = value;
}
