// Grey of RGB, in whole numbers.
__global__ void grey(unsigned char* out, const uchar3* pixels, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uchar3 pixel = pixels[i];
        out[i] = (77 * pixel.x + 150 * pixel.y + 29 * pixel.z) >> 8;
    }
}

// A step of Conway's life on a torus.
__global__ void life(unsigned char* out, const unsigned char* in, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int near = 0;
    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
            if (dx == 0 && dy == 0) continue;
            near += in[(y + dy + height) % height * width + (x + dx + width) % width] & 1;
        }
    }
    int alive = in[y * width + x] & 1;
    out[y * width + x] = near == 3 || (alive && near == 2);
}

// Complex numbers by operators.
struct Complex {
    float re, im;
};

__device__ Complex operator*(Complex a, Complex b) {
    return {fmaf(a.re, b.re, -(a.im * b.im)), fmaf(a.re, b.im, a.im * b.re)};
}

__global__ void squares(Complex* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = values[i] * values[i];
}

// A structure by value.
struct Affine {
    float scale[3];
    float shift[3];
};

__global__ void affine(float3* pixels, Affine affine, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float3 p = pixels[i];
    p.x = fmaf(p.x, affine.scale[0], affine.shift[0]);
    p.y = fmaf(p.y, affine.scale[1], affine.shift[1]);
    p.z = fmaf(p.z, affine.scale[2], affine.shift[2]);
    pixels[i] = p;
}
