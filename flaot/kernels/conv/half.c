/* The portable convolution with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_conv_f32_generic fl_conv_f32_half
#include "conv/generic.c"
