/* Portable running sums with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_cumsum_generic fl_cumsum_half
#include "cumsum/generic.c"
