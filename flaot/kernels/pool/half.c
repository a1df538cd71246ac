/* Portable pooling with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_pool_f32_generic fl_pool_f32_half
#include "pool/generic.c"
