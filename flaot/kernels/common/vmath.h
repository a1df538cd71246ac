/* exp, log, sigmoid, tanh, erf on one vector: the polynomials of math.h, one FMA per term. NaN in, NaN out; results that would be
   denormal are 0. Errors are measured in tests/kernels/test_functions.py. */
#ifndef FLAOT_KERNELS_VMATH_H
#define FLAOT_KERNELS_VMATH_H
#include "common/simd.h"

typedef uint32_t vu __attribute__((vector_size(4 * FL_VL))); /* bits of NaN may wrap */

FL_INLINE vf v_exp_core(vf x, vi *n) { /* e^x = result * 2^n */
  vf t = x * 1.44269504f + 12582912.0f, k = t - 12582912.0f; /* 1.5 * 2^23: adding it rounds to the nearest even integer */
  vf r = x - k * 0.693359375f;
  r = r + k * 2.12194440e-4f;
  vf q = 0.0013814467f * r + 0.0083687804f;
  q = q * r + 0.0416683942f; q = q * r + 0.1666652011f; q = q * r + 0.4999999341f;
  *n = (vi)t - 0x4B400000;
  return q * (r * r) + r + 1.0f;
}

FL_INLINE vf v_exp(vf x) {
  vi n;
  vf y = v_exp_core(v_clamp(x, v_set(-87.6f), v_set(88.8f)), &n);
  return y * 2.0f * (vf)((vu)(n + 126) << 23); /* 2^(n-1): n = 128 must reach infinity */
}

FL_INLINE vf v_exp_neg(vf x) { /* x <= 0, as in softmax; exactly 0 below -87 */
  vi n;
  vf y = v_exp_core(v_max(v_set(-87.0f), x), &n);
  return v_select(x < -87.0f, (vf){0}, (vf)((vu)y + ((vu)n << 23)));
}

FL_INLINE vf v_sigmoid(vf x) { return 1.0f / (1.0f + v_exp(-x)); }

FL_INLINE vf v_tanh(vf x) { /* x P(x^2) / Q(x^2) */
  vf c = v_clamp(x, v_set(-9.0f), v_set(9.0f)), s = c * c;
  vf p = -1.2246214792902261e-11f * s + 3.0642480515291598e-08f;
  p = p * s + 2.8031289525365816e-05f; p = p * s + 3.8695068758711300e-03f; p = p * s + 1.3680855533355973e-01f; p = p * s + 1.0f;
  vf q = 1.2890336564769081e-06f * s + 3.9407114536451319e-04f;
  q = q * s + 2.7250152472606412e-02f; q = q * s + 4.7014187622981529e-01f; q = q * s + 1.0f;
  return c * p / q;
}

FL_INLINE vf v_erf(vf x) {
  vf c = v_clamp(x, v_set(-3.92f), v_set(3.92f)), s = c * c;
  vf p = 2.0500783162182607e-06f * s + 2.8488390608000577e-04f;
  p = p * s + 3.7656691774602064e-03f; p = p * s + 5.2748887105801577e-02f; p = p * s + 1.9040767800036329e-01f;
  p = p * s + 1.1283791461340964e+00f;
  vf q = 3.8091683522189930e-05f * s + 1.1625481303288783e-03f;
  q = q * s + 1.4969322228034957e-02f; q = q * s + 1.1410961547802456e-01f; q = q * s + 5.0207715184411494e-01f; q = q * s + 1.0f;
  return c * p / q;
}

FL_INLINE vf v_log(vf x) { /* 0 -> -inf, negative or NaN -> NaN, inf -> inf; denormals count as 0 */
  vi b = (vi)((vu)x - 0x3F3504F3u), e = b >> 23; /* mantissa into [sqrt 1/2, sqrt 2) */
  vf f = (vf)((b & 0x7FFFFF) + 0x3F3504F3) - 1.0f, n = __builtin_convertvector(e, vf), s = f * f;
  vf q = 0.0674663864f * f - 0.116756513f;
  q = q * f + 0.118881632f; q = q * f - 0.124055893f; q = q * f + 0.142195525f; q = q * f - 0.166679961f;
  q = q * f + 0.200021187f; q = q * f - 0.2500001f; q = q * f + 0.333333126f;
  vf y = q * f * s + n * -2.12194440e-4f;
  y = y - 0.5f * s;
  y = y + f;
  y = y + n * 0.693359375f;
  y = v_select(x > 3.4028235e38f, x, y);
  y = v_select(x < 1.17549435e-38f, v_set(-__builtin_inff()), y);
  return v_select(x < 0.0f, v_set(__builtin_nanf("")), v_select(x == x, y, x));
}

/* Lanes added or compared in one fixed order: halves, quarters, ... */
#if FL_VL == 16
FL_INLINE __m256 v_fold_sum(vf v) { return _mm256_add_ps(_mm512_castps512_ps256((__m512)v), _mm512_extractf32x8_ps((__m512)v, 1)); }
FL_INLINE __m256 v_fold_max(vf v) { return _mm256_max_ps(_mm512_castps512_ps256((__m512)v), _mm512_extractf32x8_ps((__m512)v, 1)); }
#else
FL_INLINE __m256 v_fold_sum(vf v) { return (__m256)v; }
FL_INLINE __m256 v_fold_max(vf v) { return (__m256)v; }
#endif
FL_INLINE float v_sum(vf v) {
  __m256 h = v_fold_sum(v);
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
FL_INLINE float v_largest(vf v) {
  __m256 h = v_fold_max(v);
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

#endif
