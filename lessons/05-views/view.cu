// Reads a matrix of 4 x 8 floats through its transpose as a view: shape [8, 4], strides [1, 8].
__global__ void read_view(float *out, const float *in) {
    int r = threadIdx.x / 4, c = threadIdx.x % 4; // in the order of the view, row by row
    out[threadIdx.x] = in[r * 1 + c * 8];
}
