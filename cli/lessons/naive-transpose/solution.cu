// Both kernels transpose: `in` has n rows of n floats, and row x of `out` is column x of `in`.
// The comments count the sectors of one warp, whose 32 lanes have one y and neighbouring x.

// The threads of a warp take neighbours of a row of `in`.
__global__ void along_rows(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float value = in[y * n + x]; // 4 bytes apart: 32 x 4 bytes fill 4 sectors of 32 bytes
    out[x * n + y] = value;      // n x 4 = 256 bytes apart: a sector for each lane, 32 sectors
}

// The threads of a warp take neighbours of a row of `out`.
__global__ void along_columns(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float value = in[x * n + y]; // n x 4 = 256 bytes apart: a sector for each lane, 32 sectors
    out[y * n + x] = value;      // 4 bytes apart: 32 x 4 bytes fill 4 sectors of 32 bytes
}

// Both launches have 2 x 8 blocks of 32 x 8 threads: 16 x 8 = 128 warps.
// check.toml:   line 9 wastes; 128 warps x 32 sectors = 4096, and the ideal is 128 x 4 = 512.
// check-2.toml: line 16 wastes, with the same numbers.
