/* pool_f32, 16 floats at a time. */
#define FL_VL 16
#include "pool/vec_pool.h"

fl_status fl_pool_f32_avx512(const fl_call *c) { return pool(c); }
