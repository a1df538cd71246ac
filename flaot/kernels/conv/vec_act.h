/* Activations of FusedConv other than the clamp, applied to freshly written pixels while they are in cache. */
#ifndef FLAOT_CONV_VEC_ACT_H
#define FLAOT_CONV_VEC_ACT_H
#include "common/simd.h"
#include "conv/activation.h"

FL_INLINE vf act_exp(vf x) { /* as fl_expf; NaN passes, results below 1e-38 are 0 */
  vf c = v_clamp(x, v_set(-87.6f), v_set(88.8f)), t = c * 1.44269504f + 12582912.0f, k = t - 12582912.0f;
  vf r = c - k * 0.693359375f;
  r = r + k * 2.12194440e-4f;
  vf q = 0.0013814467f * r + 0.0083687804f;
  q = q * r + 0.0416683942f; q = q * r + 0.1666652011f; q = q * r + 0.4999999341f;
  return (q * (r * r) + r + 1.0f) * 2.0f * (vf)(((vi)t - 0x4B400000 + 126) << 23); /* 2^(n-1): n = 128 must reach infinity */
}

FL_INLINE vf act_sigmoid(vf x) { return 1.0f / (1.0f + act_exp(-x)); }

FL_INLINE vf act_tanh(vf x) { /* x P(x^2) / Q(x^2) */
  vf c = v_clamp(x, v_set(-9.0f), v_set(9.0f)), s = c * c;
  vf p = -1.2246214792902261e-11f * s + 3.0642480515291598e-08f;
  p = p * s + 2.8031289525365816e-05f; p = p * s + 3.8695068758711300e-03f; p = p * s + 1.3680855533355973e-01f; p = p * s + 1.0f;
  vf q = 1.2890336564769081e-06f * s + 3.9407114536451319e-04f;
  q = q * s + 2.7250152472606412e-02f; q = q * s + 4.7014187622981529e-01f; q = q * s + 1.0f;
  return c * p / q;
}

FL_INLINE vf act_erf(vf x) {
  vf c = v_clamp(x, v_set(-3.92f), v_set(3.92f)), s = c * c;
  vf p = 2.0500783162182607e-06f * s + 2.8488390608000577e-04f;
  p = p * s + 3.7656691774602064e-03f; p = p * s + 5.2748887105801577e-02f; p = p * s + 1.9040767800036329e-01f;
  p = p * s + 1.1283791461340964e+00f;
  vf q = 3.8091683522189930e-05f * s + 1.1625481303288783e-03f;
  q = q * s + 1.4969322228034957e-02f; q = q * s + 1.1410961547802456e-01f; q = q * s + 5.0207715184411494e-01f; q = q * s + 1.0f;
  return c * p / q;
}

FL_INLINE vf act_one(const int act, vf v, vf alpha, vf beta, vf slope) {
  const vf zero = {0}, one = v_set(1.0f);
  switch (act) {
  case FL_ACT_CLAMP: return v_clamp(v, alpha, beta);
  case FL_ACT_SIGMOID: return act_sigmoid(v);
  case FL_ACT_SILU: return v * act_sigmoid(v);
  case FL_ACT_HARD_SIGMOID: return v_clamp(alpha * v + beta, zero, one);
  case FL_ACT_HARD_SWISH: return v * v_clamp(v * (1.0f / 6.0f) + 0.5f, zero, one);
  case FL_ACT_TANH: return act_tanh(v);
  case FL_ACT_GELU: return 0.5f * v * (1.0f + act_erf(v * 0.70710678f));
  case FL_ACT_LEAKY_RELU: return v_select(v < zero, alpha * v, v);
  case FL_ACT_PRELU: return v_select(v < zero, slope * v, v);
  default: return v;
  }
}

typedef struct act_rows { float *y; const int64_t *pix; int64_t n; int lanes; float alpha, beta; const float *slope; } act_rows;

FL_INLINE void act_loop(const int act, const act_rows *r) {
  vf alpha = v_set(r->alpha), beta = v_set(r->beta);
  FL_NO_UNROLL for (int j = 0; j < r->lanes; j += FL_VL) {
    int left = r->lanes - j;
    vf slope = act == FL_ACT_PRELU ? v_load(r->slope + j) : alpha;
    FL_NO_UNROLL for (int64_t i = 0; i < r->n; i++) {
      float *p = r->y + r->pix[i] + j;
      if (left >= FL_VL) v_store(p, act_one(act, v_load(p), alpha, beta, slope));
      else v_store_n(p, act_one(act, v_load_n(p, left), alpha, beta, slope), left);
    }
  }
}

/* `lanes` channels from y on, of pixels at y + pix[0..n-1]; slopes are padded to whole vectors. */
FL_NOINLINE void act_apply(int act, const act_rows *r) {
  switch (act) {
  case FL_ACT_CLAMP: act_loop(FL_ACT_CLAMP, r); break;
  case FL_ACT_SIGMOID: act_loop(FL_ACT_SIGMOID, r); break;
  case FL_ACT_SILU: act_loop(FL_ACT_SILU, r); break;
  case FL_ACT_HARD_SIGMOID: act_loop(FL_ACT_HARD_SIGMOID, r); break;
  case FL_ACT_HARD_SWISH: act_loop(FL_ACT_HARD_SWISH, r); break;
  case FL_ACT_TANH: act_loop(FL_ACT_TANH, r); break;
  case FL_ACT_GELU: act_loop(FL_ACT_GELU, r); break;
  case FL_ACT_LEAKY_RELU: act_loop(FL_ACT_LEAKY_RELU, r); break;
  case FL_ACT_PRELU: act_loop(FL_ACT_PRELU, r); break;
  default: break;
  }
}

#endif
