/* Portable LRN with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_lrn_f32_generic fl_lrn_f32_half
#include "lrn/generic.c"
