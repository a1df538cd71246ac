/* The activations that convolutions and products end with, on one vector. */
#ifndef FLAOT_KERNELS_EPILOGUE_H
#define FLAOT_KERNELS_EPILOGUE_H
#include "common/vmath.h"
#include "common/activation.h"

FL_INLINE vf act_one(const int act, vf v, vf alpha, vf beta, vf slope) {
  const vf zero = {0}, one = v_set(1.0f);
  switch (act) {
  case FL_ACT_CLAMP: return v_clamp(v, alpha, beta);
  case FL_ACT_SIGMOID: return v_sigmoid(v);
  case FL_ACT_SILU: return v * v_sigmoid(v);
  case FL_ACT_HARD_SIGMOID: return v_clamp(alpha * v + beta, zero, one);
  case FL_ACT_HARD_SWISH: return v * v_clamp(v * (1.0f / 6.0f) + 0.5f, zero, one);
  case FL_ACT_TANH: return v_tanh(v);
  case FL_ACT_GELU: return 0.5f * v * (1.0f + v_erf(v * 0.70710678f));
  case FL_ACT_LEAKY_RELU: return v_select(v < zero, alpha * v, v);
  case FL_ACT_PRELU: return v_select(v < zero, slope * v, v);
  default: return v;
  }
}

#endif
