/* norm_f32, 8 floats at a time. */
#define FL_VL 8
#include "norm/vec_norm.h"

fl_status fl_norm_f32_avx2(const fl_call *c) { return norm_run(c); }
