/* The portable contraction with sums kept in float16. */
#define FL_HALF_SUMS
#define fl_contract_generic fl_contract_half
#include "einsum/generic.c"
