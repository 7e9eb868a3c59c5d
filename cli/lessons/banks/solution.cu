// Fills 1024 words of shared memory; then one warp reads 32 of them, which lie `stride` words
// apart. The comments count the bank conflicts of the load of line 10 for each stride.
__global__ void strided(float *out, int stride) {
    __shared__ float words[32 * 32]; // word w lies in bank w % 32
    int lane = threadIdx.x;
    words[threadIdx.y * 32 + lane] = threadIdx.y * 32 + lane; // a bank for each lane: no conflict
    __syncthreads();

    if (threadIdx.y == 0) {
        out[lane] = words[lane * stride]; // lane l wants a word of bank l * stride % 32
    }
}

// Lanes share a bank where their numbers differ by a multiple of 32 / gcd(stride, 32). So a bank
// that is wanted at all serves gcd(stride, 32) words, and each beyond the first is a conflict:
//
// stride          1   2   3  32  33
// gcd(stride, 32) 1   2   1  32   1
// conflicts       0   1   0  31   0
