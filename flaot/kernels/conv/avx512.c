/* The vector convolutions for AVX-512. */
#define FL_VL 16
#define FL_CONV_GEMM fl_conv_gemm_f32_avx512
#include "conv/vec_gemm.h"
