/* What the check and the vector variants of gemm_f32 share. */
#ifndef FLAOT_MATMUL_GEMM_H
#define FLAOT_MATMUL_GEMM_H
enum { KC = 384, MC = 192, MAX_VECTORS = 4 };
#endif
