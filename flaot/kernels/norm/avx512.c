/* norm_f32, 16 floats at a time. */
#define FL_VL 16
#include "norm/vec_norm.h"

fl_status fl_norm_f32_avx512(const fl_call *c) { return norm_run(c); }
