/* recurrent_steps, 8 units at a time. */
#define FL_VL 8
#include "recurrent/vec_steps.h"

fl_status fl_recurrent_steps_avx2(const fl_call *c) { return steps_run(c); }
