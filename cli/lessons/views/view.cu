// Reads row 0 of a transpose through its view: the matrix has 32 x 32 floats, and the view has
// strides [1, 32].
__global__ void read_row(float *out, const float *in) {
    int c = threadIdx.x; // along the row, in the view's order
    out[c] = in[0 * 1 + c * 32];
}
