/* float16 and bfloat16: bits to float and back, one by one (inline, also for kernels) and by whole strided tensors.
   A NaN stays one and becomes quiet; infinities stay. A finite value beyond the range becomes infinite or the largest finite number as
   the rounding says: floor and toward zero never pass it upwards. */
#ifndef FLAOT_CORE_HALF_H
#define FLAOT_CORE_HALF_H
#include "flaot/kernel.h"
#include "gen/params.h"

typedef int32_t fl_rounding; /* FL_ROUNDING_* */

typedef union fl_half_bits { float f; uint32_t u; } fl_half_bits;

/* By masks, which compilers keep free of branches and so turn into vectors. */
static inline uint32_t fl_pick(bool first, uint32_t a, uint32_t b) {
  uint32_t mask = 0u - (uint32_t)first;
  return (a & mask) | (b & ~mask);
}

static inline float fl_half_to_float(uint16_t h) {
  fl_half_bits b, scale;
  uint32_t magnitude = h & 0x7FFFu;
  scale.u = 0x77800000u; /* 2^112 moves the exponent's bias; denormals become normal on the way */
  b.u = magnitude << 13;
  b.f *= scale.f;
  b.u = fl_pick(magnitude < 0x7C00u, b.u, 0x7F800000u | magnitude << 13);
  b.u |= (uint32_t)(h & 0x8000u) << 16 | fl_pick(magnitude > 0x7C00u, 0x400000u, 0u);
  return b.f;
}

static inline float fl_bfloat_to_float(uint16_t h) {
  fl_half_bits b;
  b.u = (uint32_t)h << 16 | ((h & 0x7FFFu) > 0x7F80u ? 0x400000u : 0u);
  return b.f;
}

/* A rounding as what is added to the magnitude before its low bits are cut off; results below `least` become zero. */
typedef struct fl_narrowing {
  uint32_t base, odd, negative; /* always; when the last bit kept is 1; when the number is negative */
  uint32_t least;
} fl_narrowing;

static inline fl_narrowing fl_narrowing_of(unsigned dtype, fl_rounding mode, bool flush) {
  uint32_t tie = dtype == FL_BF16 ? 0x8000u : 0x1000u, least = !flush ? 0u : dtype == FL_BF16 ? 0x80u : 0x400u;
  fl_narrowing r = {0, 0, 0, least};
  switch (mode) {
  case FL_ROUNDING_HALF_TO_EVEN: r.base = tie - 1, r.odd = 1; break;
  case FL_ROUNDING_HALF_AWAY_FROM_ZERO: r.base = tie; break;
  case FL_ROUNDING_HALF_UP: r.base = tie, r.negative = 0xFFFFFFFFu; break;
  case FL_ROUNDING_FLOOR: r.negative = 2 * tie - 1; break;
  default: break;
  }
  return r;
}

static inline uint16_t fl_float_to_half(float x, fl_narrowing r) {
  fl_half_bits b, low;
  b.f = x;
  uint32_t sign = b.u >> 31, m = b.u & 0x7FFFFFFFu, v;
  low.u = fl_pick(m < 0x38800000u, m, 0x38800000u); /* a denormal result counts 2^-24: 13 bits more, and whether anything lies below them */
  low.f *= 0x1p37f;
  int32_t q = (int32_t)low.f;
  v = (uint32_t)q | ((float)q != low.f);
  v = fl_pick(m < 0x38800000u, v, fl_pick(m < 0x477FFFFFu, m, 0x477FFFFFu) - 0x38000000u);
  v = (v + r.base + (v >> 13 & r.odd) + (r.negative & (0u - sign))) >> 13;
  v = fl_pick(m < 0x7F800000u, v, 0x7C00u | fl_pick(m > 0x7F800000u, 0x200u | (m >> 13 & 0x3FFu), 0u));
  v = fl_pick(v < r.least, 0u, v);
  return (uint16_t)(sign << 15 | v);
}

static inline uint16_t fl_float_to_bfloat(float x, fl_narrowing r) {
  fl_half_bits b;
  b.f = x;
  uint32_t sign = b.u >> 31, m = b.u & 0x7FFFFFFFu;
  uint32_t v = (m + r.base + (m >> 16 & r.odd) + (r.negative & (0u - sign))) >> 16;
  v = fl_pick(m <= 0x7F800000u, v, 0x7FC0u | m >> 16);
  v = fl_pick(v < r.least, 0u, v);
  return (uint16_t)(sign << 15 | v);
}

/* x as the nearest number of the dtype in the sense of mode: what an accumulator of that type holds after an addition. */
static inline float fl_round_half(float x, unsigned dtype, fl_rounding mode, bool flush) {
  fl_narrowing r = fl_narrowing_of(dtype, mode, flush);
  return dtype == FL_BF16 ? fl_bfloat_to_float(fl_float_to_bfloat(x, r)) : fl_half_to_float(fl_float_to_half(x, r));
}

/* n elements at their strides; dtype is FL_F16 or FL_BF16. The runs do not overlap. */
void fl_widen_run(unsigned dtype, const uint16_t *x, int64_t xs, float *y, int64_t ys, int64_t n);
void fl_narrow_run(unsigned dtype, fl_narrowing r, const float *x, int64_t xs, uint16_t *y, int64_t ys, int64_t n);

/* A strided float16 or bfloat16 tensor, p its element (0, ..., 0), to and from row-major floats. */
void fl_widen(const fl_tensor *t, const void *p, float *out);
void fl_narrow(const fl_tensor *t, void *p, const float *in, fl_rounding mode, bool flush);

#endif
