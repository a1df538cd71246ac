/* Activations other than the clamp over freshly written rows while they are in cache. */
#ifndef FLAOT_MATMUL_VEC_ACT_H
#define FLAOT_MATMUL_VEC_ACT_H
#include "common/epilogue.h"

FL_INLINE void act_rows(const int act, float *y, int64_t ldy, int64_t rows, int64_t n, float alpha, float beta) {
  vf va = v_set(alpha), vb = v_set(beta);
  for (; rows > 0; rows--, y += ldy) {
    int64_t j = 0;
    FL_NO_UNROLL for (; j + FL_VL <= n; j += FL_VL) v_store(y + j, act_one(act, v_load(y + j), va, vb, va));
    if (j < n) v_store_n(y + j, act_one(act, v_load_n(y + j, (int)(n - j)), va, vb, va), (int)(n - j));
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
