/* conv_gemm_s8, 16 sums at a time. */
#define FL_VL 16
#include "qlinear/vec_gemm_s8.h"

fl_status fl_conv_gemm_s8_avx512(const fl_call *c) { return gemm(c); }
