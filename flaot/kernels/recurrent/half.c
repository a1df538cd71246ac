/* Portable recurrent layers with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_recurrent_generic fl_recurrent_half
#include "recurrent/generic.c"
