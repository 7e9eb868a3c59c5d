// Accesses of 16 bytes a thread.
__global__ void copy_float4(float4* to, const float4* from, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < quads) {
        to[i] = from[i];
    }
}

// An array of structures, one member of which is used.
struct Particle {
    float x, y, z, mass;
};

__global__ void masses(float* out, const Particle* particles, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = particles[i].mass;
    }
}

// The real numbers of pairs, swapped.
__global__ void swap_pairs(double2* pairs, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double2 pair = pairs[i];
        pairs[i] = make_double2(pair.y, pair.x);
    }
}

// Colours of 4 bytes, summed.
__global__ void brightness(unsigned int* out, const uchar4* pixels, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uchar4 pixel = pixels[i];
        out[i] = pixel.x + pixel.y + pixel.z;
    }
}
