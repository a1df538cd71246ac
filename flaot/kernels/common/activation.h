/* Activations that convolutions and products end with, scalar. NaN stays NaN. */
#ifndef FLAOT_KERNELS_ACTIVATION_H
#define FLAOT_KERNELS_ACTIVATION_H
#include "common/math.h"
#include "gen/params.h"

static inline float fl_clampf(float v, float lo, float hi) {
  v = v < lo ? lo : v;
  return v > hi ? hi : v;
}

static inline float fl_act_tanh(float x) {
  float c = fl_clampf(x, -9.0f, 9.0f), s = c * c;
  float p = -1.2246214792902261e-11f * s + 3.0642480515291598e-08f;
  p = p * s + 2.8031289525365816e-05f; p = p * s + 3.8695068758711300e-03f; p = p * s + 1.3680855533355973e-01f; p = p * s + 1.0f;
  float q = 1.2890336564769081e-06f * s + 3.9407114536451319e-04f;
  q = q * s + 2.7250152472606412e-02f; q = q * s + 4.7014187622981529e-01f; q = q * s + 1.0f;
  return c * p / q;
}

static inline float fl_act_erf(float x) {
  float c = fl_clampf(x, -3.92f, 3.92f), s = c * c;
  float p = 2.0500783162182607e-06f * s + 2.8488390608000577e-04f;
  p = p * s + 3.7656691774602064e-03f; p = p * s + 5.2748887105801577e-02f; p = p * s + 1.9040767800036329e-01f; p = p * s + 1.1283791461340964e+00f;
  float q = 3.8091683522189930e-05f * s + 1.1625481303288783e-03f;
  q = q * s + 1.4969322228034957e-02f; q = q * s + 1.1410961547802456e-01f; q = q * s + 5.0207715184411494e-01f; q = q * s + 1.0f;
  return c * p / q;
}

static inline float fl_activate(int32_t act, float v, float alpha, float beta, float slope) {
  switch (act) {
  case FL_ACT_CLAMP: return fl_clampf(v, alpha, beta);
  case FL_ACT_SIGMOID: return 1.0f / (1.0f + fl_expf(-v));
  case FL_ACT_SILU: return v / (1.0f + fl_expf(-v));
  case FL_ACT_HARD_SIGMOID: return fl_clampf(alpha * v + beta, 0.0f, 1.0f);
  case FL_ACT_HARD_SWISH: return v * fl_clampf(v / 6.0f + 0.5f, 0.0f, 1.0f);
  case FL_ACT_TANH: return fl_act_tanh(v);
  case FL_ACT_GELU: return 0.5f * v * (1.0f + fl_act_erf(v * 0.70710678f));
  case FL_ACT_LEAKY_RELU: return v < 0.0f ? alpha * v : v;
  case FL_ACT_PRELU: return v < 0.0f ? slope * v : v;
  default: return v;
  }
}

#endif
