/* Portable attention with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_attention_f32_generic fl_attention_f32_half
#include "attention/generic.c"
