/* conv_gemm_s8, 8 sums at a time. */
#define FL_VL 8
#include "qlinear/vec_gemm_s8.h"

fl_status fl_conv_gemm_s8_avx2(const fl_call *c) { return gemm(c); }
