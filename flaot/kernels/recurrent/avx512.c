/* recurrent_steps, 16 units at a time. */
#define FL_VL 16
#include "recurrent/vec_steps.h"

fl_status fl_recurrent_steps_avx512(const fl_call *c) { return steps_run(c); }
