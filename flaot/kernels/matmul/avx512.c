/* gemm_f32, 16 floats at a time. */
#define FL_VL 16
#include "matmul/vec_gemm.h"

fl_status fl_gemm_f32_avx512(const fl_call *c) { return gemm_run(c); }
