/* The portable product with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_matmul_generic fl_matmul_half
#include "matmul/generic.c"
