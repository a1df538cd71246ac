/* Sums of portable kernels are kept in float, or in float16 where half.c compiles the same source with FL_HALF_SUMS: then FL_SUM rounds
   half to even after every addition, in the order of the loops. Each product is exact in float. */
#ifndef FLAOT_KERNELS_SUM_H
#define FLAOT_KERNELS_SUM_H
#ifdef FL_HALF_SUMS
#include "core/half.h"
#define FL_SUM(sum) fl_round_half(sum, FL_F16, FL_ROUNDING_HALF_TO_EVEN, false)
#else
#define FL_SUM(sum) (sum)
#endif

#endif
