/* Portable softmax with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_softmax_f32_generic fl_softmax_f32_half
#include "softmax/generic.c"
