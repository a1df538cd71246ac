/* resize_f32 and resize_nearest, 16 floats at a time. */
#define FL_VL 16
#include "resize/vec_resize.h"

fl_status fl_resize_f32_avx512(const fl_call *c) { return blend(c); }
fl_status fl_resize_nearest_avx512(const fl_call *c) { return nearest(c); }
