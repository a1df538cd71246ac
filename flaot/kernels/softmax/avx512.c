/* softmax_f32, 16 floats at a time. */
#define FL_VL 16
#include "softmax/vec_softmax.h"

fl_status fl_softmax_f32_avx512(const fl_call *c) { return softmax_run(c); }
