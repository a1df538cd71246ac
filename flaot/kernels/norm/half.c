/* Portable normalisations with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_norm_f32_generic fl_norm_f32_half
#include "norm/generic.c"
