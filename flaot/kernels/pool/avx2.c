/* pool_f32, 8 floats at a time. */
#define FL_VL 8
#include "pool/vec_pool.h"

fl_status fl_pool_f32_avx2(const fl_call *c) { return pool(c); }
