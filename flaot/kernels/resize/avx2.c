/* resize_f32 and resize_nearest, 8 floats at a time. */
#define FL_VL 8
#include "resize/vec_resize.h"

fl_status fl_resize_f32_avx2(const fl_call *c) { return blend(c); }
fl_status fl_resize_nearest_avx2(const fl_call *c) { return nearest(c); }
