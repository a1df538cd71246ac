/* The portable transposed convolution with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_conv_transpose_f32_generic fl_conv_transpose_f32_half
#include "conv_transpose/generic.c"
