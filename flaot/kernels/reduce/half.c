/* Portable reductions with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_reduce_generic fl_reduce_half
#include "reduce/generic.c"
