/* Portable exp, log, tanh, erf and their like, scalar: fixed polynomials, plain IEEE operations in a fixed order, no libm, no tables.
   Built with -ffp-contract=off they give the same bits on every machine. NaN in, NaN out. Errors are measured in tests. */
#ifndef FLAOT_KERNELS_MATH_H
#define FLAOT_KERNELS_MATH_H
#include <stdint.h>

typedef union fl_bits32 { float f; int32_t i; uint32_t u; } fl_bits32;

static inline float fl_pow2i(int32_t n) { fl_bits32 b; b.i = (n + 127) * 8388608; return b.f; } /* -126 <= n <= 127 */

/* e^x; 0 below -87.6 (results are not denormal), +inf above 88.73. At most 1.2 ulp. */
static inline float fl_expf(float x) {
  if (!(x == x)) return x;
  if (x > 88.73f) return __builtin_inff();
  if (x < -87.33f) return 0.0f;
  float k = x * 1.44269504f + 12582912.0f;
  fl_bits32 t; t.f = k;
  k -= 12582912.0f;
  float r = x - k * 0.693359375f;
  r = r + k * 2.12194440e-4f;
  float q = 0.0013814467f * r + 0.0083687804f;
  q = q * r + 0.0416683942f;
  q = q * r + 0.1666652011f;
  q = q * r + 0.4999999341f;
  float y = q * (r * r) + r + 1.0f;
  int32_t n = t.i - 0x4B400000, half = n / 2;
  return y * fl_pow2i(half) * fl_pow2i(n - half);
}

/* Natural logarithm; denormal x counts as its value. At most 1 ulp. */
static inline float fl_logf(float x) {
  if (!(x > 0.0f)) return x == 0.0f ? -__builtin_inff() : (x == x ? __builtin_nanf("") : x);
  if (x > 3.4028235e38f) return x;
  float scale = 0.0f;
  if (x < 1.17549435e-38f) { x *= 8388608.0f; scale = -23.0f; }
  fl_bits32 v; v.f = x;
  int32_t b = v.i - 0x3F3504F3, e = b >= 0 ? b / 8388608 : -((-b + 8388607) / 8388608);
  fl_bits32 m; m.i = (b - e * 8388608) + 0x3F3504F3;
  float f = m.f - 1.0f, n = (float)e + scale, s = f * f;
  float q = 0.0674663864f * f - 0.116756513f;
  q = q * f + 0.118881632f; q = q * f - 0.124055893f; q = q * f + 0.142195525f; q = q * f - 0.166679961f;
  q = q * f + 0.200021187f; q = q * f - 0.2500001f; q = q * f + 0.333333126f;
  float y = q * f * s + n * -2.12194440e-4f;
  y = y - 0.5f * s;
  y = y + f;
  return y + n * 0.693359375f;
}

#endif
