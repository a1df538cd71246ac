/* gemm_f32, 8 floats at a time. */
#define FL_VL 8
#include "matmul/vec_gemm.h"

fl_status fl_gemm_f32_avx2(const fl_call *c) { return gemm_run(c); }
