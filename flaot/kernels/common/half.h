/* float16 and bfloat16 of doubles, rounding to nearest even. */
#ifndef FLAOT_KERNELS_HALF_H
#define FLAOT_KERNELS_HALF_H
#include "core/half.h"

/* Round to odd: so that a second rounding, to fewer bits, is the only one. */
static inline float fl_to_odd(double x) {
  fl_half_bits b;
  b.f = (float)x;
  double back = (double)b.f;
  if (back != x && x == x && (b.u & 1) == 0 && (b.u & 0x7F800000u) != 0x7F800000u) b.u += (back < x) == (x > 0.0) ? 1u : (b.u & 0x7FFFFFFFu ? 0xFFFFFFFFu : 0u);
  return b.f;
}

static inline uint16_t fl_to_bfloat(double x) {
  return fl_float_to_bfloat(fl_to_odd(x), fl_narrowing_of(FL_BF16, FL_ROUNDING_HALF_TO_EVEN, false));
}

static inline uint16_t fl_to_half(double x) {
  return fl_float_to_half(fl_to_odd(x), fl_narrowing_of(FL_F16, FL_ROUNDING_HALF_TO_EVEN, false));
}

#endif
