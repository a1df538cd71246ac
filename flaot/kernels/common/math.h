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

/* Rational function of x^2, error against the true function at most 5 ulp; saturates to +-1 above 9. */
static inline float fl_tanhf(float x) {
  float c = x > 9.0f ? 9.0f : x < -9.0f ? -9.0f : x, s = c * c;
  float p = -1.2246214792902261e-11f * s + 3.0642480515291598e-08f;
  p = p * s + 2.8031289525365816e-05f; p = p * s + 3.8695068758711300e-03f; p = p * s + 1.3680855533355973e-01f; p = p * s + 1.0f;
  float q = 1.2890336564769081e-06f * s + 3.9407114536451319e-04f;
  q = q * s + 2.7250152472606412e-02f; q = q * s + 4.7014187622981529e-01f; q = q * s + 1.0f;
  return c * p / q;
}

/* Likewise; saturates above 3.92. At most 6 ulp. */
static inline float fl_erff(float x) {
  float c = x > 3.92f ? 3.92f : x < -3.92f ? -3.92f : x, s = c * c;
  float p = 2.0500783162182607e-06f * s + 2.8488390608000577e-04f;
  p = p * s + 3.7656691774602064e-03f; p = p * s + 5.2748887105801577e-02f; p = p * s + 1.9040767800036329e-01f;
  p = p * s + 1.1283791461340964e+00f;
  float q = 3.8091683522189930e-05f * s + 1.1625481303288783e-03f;
  q = q * s + 1.4969322228034957e-02f; q = q * s + 1.1410961547802456e-01f; q = q * s + 5.0207715184411494e-01f; q = q * s + 1.0f;
  return c * p / q;
}

static inline float fl_sigmoidf(float x) { return 1.0f / (1.0f + fl_expf(-x)); }

#endif
