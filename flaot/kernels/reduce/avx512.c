/* reduce, 16 floats at a time. */
#define FL_VL 16
#include "reduce/vec_reduce.h"

fl_status fl_reduce_avx512(const fl_call *c) { return reduce_run(c); }
