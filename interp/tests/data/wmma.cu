// Products by wmma of matrices in global memory (g_) and in shared memory (s_), in several layouts, shapes and types.
//
//     nvcc -ptx -O3 -std=c++17 -arch=compute_90 wmma.cu -o wmma.ptx
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
#define K(name, LA, LB, LC, M, N, KK, T, ACC) \
extern "C" __global__ void g_##name(const T* a, const T* b, ACC* c) { \
  wmma::fragment<wmma::matrix_a, M, N, KK, T, wmma::LA> fa; wmma::fragment<wmma::matrix_b, M, N, KK, T, wmma::LB> fb; \
  wmma::fragment<wmma::accumulator, M, N, KK, ACC> fc; wmma::fill_fragment(fc, ACC(0)); \
  wmma::load_matrix_sync(fa, a, 64); wmma::load_matrix_sync(fb, b, 64); wmma::mma_sync(fc, fa, fb, fc); \
  wmma::store_matrix_sync(c, fc, 64, wmma::LC); } \
extern "C" __global__ void s_##name(const T* a, const T* b, ACC* c) { \
  __shared__ T sa[64 * 32], sb[64 * 32]; __shared__ ACC sc[64 * 32]; \
  for (int i = threadIdx.x; i < 64 * 32; i += 32) { sa[i] = a[i]; sb[i] = b[i]; } __syncthreads(); \
  wmma::fragment<wmma::matrix_a, M, N, KK, T, wmma::LA> fa; wmma::fragment<wmma::matrix_b, M, N, KK, T, wmma::LB> fb; \
  wmma::fragment<wmma::accumulator, M, N, KK, ACC> fc; wmma::fill_fragment(fc, ACC(0)); \
  wmma::load_matrix_sync(fa, sa, 64); wmma::load_matrix_sync(fb, sb, 64); wmma::mma_sync(fc, fa, fb, fc); \
  wmma::store_matrix_sync(sc, fc, 64, wmma::LC); __syncthreads(); \
  for (int i = threadIdx.x; i < 64 * 32; i += 32) c[i] = sc[i]; }
K(rrr, row_major, row_major, mem_row_major, 16, 16, 16, half, float)
K(ccc, col_major, col_major, mem_col_major, 16, 16, 16, half, float)
K(rcr, row_major, col_major, mem_row_major, 16, 16, 16, half, float)
K(crc, col_major, row_major, mem_col_major, 16, 16, 16, half, float)
K(hrrr, row_major, row_major, mem_row_major, 16, 16, 16, half, half)
K(hccc, col_major, col_major, mem_col_major, 16, 16, 16, half, half)
K(m32, row_major, col_major, mem_row_major, 32, 8, 16, half, float)
K(m8, row_major, col_major, mem_row_major, 8, 32, 16, half, float)
K(irc, row_major, col_major, mem_row_major, 16, 16, 16, signed char, int)
K(icr, col_major, row_major, mem_col_major, 16, 16, 16, signed char, int)
