/* softmax_f32, 8 floats at a time. */
#define FL_VL 8
#include "softmax/vec_softmax.h"

fl_status fl_softmax_f32_avx2(const fl_call *c) { return softmax_run(c); }
