// Fills 1024 words of shared memory; then one warp reads 32 of them, which lie `stride` words
// apart. You change nothing here: predict what the load of line 10 counts.
__global__ void strided(float *out, int stride) {
    __shared__ float words[32 * 32];
    int lane = threadIdx.x;
    words[threadIdx.y * 32 + lane] = threadIdx.y * 32 + lane;
    __syncthreads();

    if (threadIdx.y == 0) {
        out[lane] = words[lane * stride];
    }
}
