/* Activations of FusedConv other than the clamp, applied to freshly written pixels while they are in cache. */
#ifndef FLAOT_CONV_VEC_ACT_H
#define FLAOT_CONV_VEC_ACT_H
#include "common/epilogue.h"

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
