/* reduce, 8 floats at a time. */
#define FL_VL 8
#include "reduce/vec_reduce.h"

fl_status fl_reduce_avx2(const fl_call *c) { return reduce_run(c); }
