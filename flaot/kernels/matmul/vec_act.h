/* Activations other than the clamp over freshly written rows while they are in cache. */
#ifndef FLAOT_MATMUL_VEC_ACT_H
#define FLAOT_MATMUL_VEC_ACT_H
#include "common/vmath.h"
#include "conv/activation.h"

FL_INLINE vf act_one(const int act, vf v, vf alpha, vf beta) {
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
  default: return v;
  }
}

FL_INLINE void act_rows(const int act, float *y, int64_t ldy, int64_t rows, int64_t n, float alpha, float beta) {
  vf va = v_set(alpha), vb = v_set(beta);
  for (; rows > 0; rows--, y += ldy) {
    int64_t j = 0;
    FL_NO_UNROLL for (; j + FL_VL <= n; j += FL_VL) v_store(y + j, act_one(act, v_load(y + j), va, vb));
    if (j < n) v_store_n(y + j, act_one(act, v_load_n(y + j, (int)(n - j)), va, vb), (int)(n - j));
  }
}

FL_NOINLINE void act_block(int act, float *y, int64_t ldy, int64_t rows, int64_t n, float alpha, float beta) {
  switch (act) {
  case FL_ACT_SIGMOID: act_rows(FL_ACT_SIGMOID, y, ldy, rows, n, alpha, beta); break;
  case FL_ACT_SILU: act_rows(FL_ACT_SILU, y, ldy, rows, n, alpha, beta); break;
  case FL_ACT_HARD_SIGMOID: act_rows(FL_ACT_HARD_SIGMOID, y, ldy, rows, n, alpha, beta); break;
  case FL_ACT_HARD_SWISH: act_rows(FL_ACT_HARD_SWISH, y, ldy, rows, n, alpha, beta); break;
  case FL_ACT_TANH: act_rows(FL_ACT_TANH, y, ldy, rows, n, alpha, beta); break;
  case FL_ACT_GELU: act_rows(FL_ACT_GELU, y, ldy, rows, n, alpha, beta); break;
  case FL_ACT_LEAKY_RELU: act_rows(FL_ACT_LEAKY_RELU, y, ldy, rows, n, alpha, beta); break;
  default: break;
  }
}

#endif
