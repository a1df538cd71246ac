/* What the vector convolutions demand of a plan. */
#include "common/activation.h"
#include "conv/image.h"
#include "gen/params.h"

enum { REACH = 1 << 29 }; /* bound on coordinates, so that they fit 32 bits with room to add */

/* The product of the factors; -1 when one is negative or a partial product exceeds 2^31 - 1. */
static int64_t product(const int64_t *factors, int count) {
  int64_t n = 1;
  for (int i = 0; i < count; i++) {
    if (factors[i] < 0 || factors[i] > INT32_MAX) return -1;
    n *= factors[i];
    if (n > INT32_MAX) return -1;
  }
  return n;
}

static bool product_is(int64_t n, const int64_t *factors, int count) { return n >= 0 && product(factors, count) == n; }

static bool floats(const fl_tensor *t, int64_t n) {
  return t->dtype == FL_F32 && t->rank == 1 && t->dims[0] == n && (t->strides[0] == 1 || n <= 1);
}

static bool countable(const fl_tensor *t) {
  int64_t n = 1;
  for (unsigned i = 0; i < t->rank && n <= INT32_MAX; i++) n *= t->dims[i];
  return n <= INT32_MAX;
}

static bool channels_last(const fl_tensor *t) {
  return t->dtype == FL_F32 && (t->rank == 3 || t->rank == 4) && (t->dims[1] <= 1 || t->strides[1] == 1) && countable(t);
}

/* Strides, pads, dilations and kernels of two spatial axes, each {y, x}. */
static bool window_fits(const fl_tensor *y, const int32_t *strides, const int32_t *pads, const int32_t *dilations, const int32_t *kernel) {
  image o = image_of(y);
  int64_t out[2] = {o.h, o.w};
  for (int i = 0; i < 2; i++) {
    if (strides[i] < 1 || pads[i] < 0 || pads[i] > REACH || dilations[i] < 1 || kernel[i] < 1) return false;
    if (out[i] * strides[i] > REACH || (int64_t)kernel[i] * dilations[i] > REACH) return false;
  }
  return (int64_t)kernel[0] * kernel[1] <= 1 << 20;
}

/* Operands x, weights, bias, [residual], [slope] -> y, all images channels last and of the same rank. */
static bool operands_fit(const fl_call *c, int32_t vl, int32_t group, int32_t residual, int32_t act) {
  if ((vl != 8 && vl != 16) || group < 1 || residual >> 1 != 0 || act < 0 || act >= FL_ACT_COUNT || c->n_out != 1) return false;
  if (c->n_in != 3u + (unsigned)residual + (act == FL_ACT_PRELU)) return false;
  const fl_tensor *x = c->t[0], *y = c->t[c->n_in];
  if (!channels_last(x) || !channels_last(y) || x->rank != y->rank || x->dims[0] != y->dims[0]) return false;
  if (x->dims[1] % group || y->dims[1] % group) return false;
  if (residual && (!channels_last(c->t[3]) || !fl_same_dims(c->t[3], y))) return false;
  return true;
}

/* Bias and slope have `padded` channels. */
static bool vectors_fit(const fl_call *c, int64_t padded, int32_t residual, int32_t act) {
  return floats(c->t[2], padded) && (act != FL_ACT_PRELU || floats(c->t[3 + residual], padded));
}

fl_status fl_conv_gemm_f32_check(const fl_call *c) {
  const fl_conv_gemm_f32_params *p = c->params;
  if (c->params_size != sizeof *p || !operands_fit(c, p->vl, p->group, p->residual, p->act)) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *w = c->t[1], *y = c->t[c->n_in];
  if (!window_fits(y, p->strides, p->pads, p->dilations, p->ksize)) return FL_PLAN_PARAMS;
  int64_t ic = x->dims[1] / p->group, taps = (int64_t)p->ksize[0] * p->ksize[1], padded = round_up(y->dims[1] / p->group, p->vl);
  const int64_t sizes[] = {p->group, padded, taps, ic}, vector[] = {p->group, padded};
  if (ic < 1 || !product_is(w->dims[0], sizes, 4) || !floats(w, w->dims[0])) return FL_PLAN_PARAMS;
  if (!product_is(c->t[2]->dims[0], vector, 2) || !vectors_fit(c, c->t[2]->dims[0], p->residual, p->act)) return FL_PLAN_PARAMS;
  if (p->mc < 1 || p->mc > 1 << 16 || p->kc < 1 || p->kc > 1 << 20) return FL_PLAN_PARAMS;
  return gemm_scratch(x->dims[1], taps, p->mc) <= (int64_t)c->scratch_size ? FL_OK : FL_PLAN_PARAMS;
}

fl_status fl_conv_dw_f32_check(const fl_call *c) {
  const fl_conv_dw_f32_params *p = c->params;
  if (c->params_size != sizeof *p || !operands_fit(c, p->vl, 1, p->residual, p->act)) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *w = c->t[1], *y = c->t[c->n_in];
  if (x->dims[1] != y->dims[1] || !window_fits(y, p->strides, p->pads, p->dilations, p->ksize)) return FL_PLAN_PARAMS;
  int64_t padded = round_up(x->dims[1], p->vl);
  const int64_t sizes[] = {p->ksize[0], p->ksize[1], padded};
  if (!product_is(w->dims[0], sizes, 3) || !floats(w, w->dims[0]) || !vectors_fit(c, padded, p->residual, p->act)) return FL_PLAN_PARAMS;
  if (p->band < 1) return FL_PLAN_PARAMS;
  return dw_scratch(x->dims[1], p->ksize, p->strides, image_of(y).w) <= (int64_t)c->scratch_size ? FL_OK : FL_PLAN_PARAMS;
}

fl_status fl_conv_wino_f32_check(const fl_call *c) {
  const fl_conv_wino_f32_params *p = c->params;
  if (c->params_size != sizeof *p || !operands_fit(c, p->vl, 1, p->residual, p->act)) return FL_PLAN_PARAMS;
  if ((p->m != 2 && p->m != 4) || p->tiles < 1 || p->tiles > 1 << 12) return FL_PLAN_PARAMS;
  for (int i = 0; i < 2; i++)
    if (p->pads[i] < 0 || p->pads[i] > REACH) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *u = c->t[1], *y = c->t[c->n_in];
  int64_t padded = round_up(y->dims[1], p->vl);
  const int64_t sizes[] = {p->m + 2, p->m + 2, x->dims[1], padded};
  if (x->dims[1] < 1 || !product_is(u->dims[0], sizes, 4) || !floats(u, u->dims[0])) return FL_PLAN_PARAMS;
  if (!vectors_fit(c, padded, p->residual, p->act)) return FL_PLAN_PARAMS;
  return wino_scratch(x->dims[1], y->dims[1], p->m, p->tiles, p->vl) <= (int64_t)c->scratch_size ? FL_OK : FL_PLAN_PARAMS;
}

fl_status fl_conv_stem_f32_check(const fl_call *c) {
  const fl_conv_stem_f32_params *p = c->params;
  if (c->params_size != sizeof *p || (p->vl != 8 && p->vl != 16) || p->residual != 0 || p->act < 0 || p->act >= FL_ACT_COUNT) return FL_PLAN_PARAMS;
  if (c->n_out != 1 || c->n_in != 3u + (p->act == FL_ACT_PRELU)) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *w = c->t[1], *y = c->t[c->n_in];
  if (p->last >> 1 != 0 || (p->last && !channels_last(x))) return FL_PLAN_PARAMS;
  if (x->dtype != FL_F32 || !channels_last(y) || x->rank != y->rank || x->dims[0] != y->dims[0] || !countable(x)) return FL_PLAN_PARAMS;
  if (!window_fits(y, p->strides, p->pads, p->dilations, p->ksize) || p->dilations[1] != 1) return FL_PLAN_PARAMS;
  image o = image_of(y);
  int64_t padded = round_up(o.c, p->vl), channels = x->dims[1], columns = (o.w > 0 ? o.w - 1 : 0) * p->strides[1] + p->ksize[1];
  const int64_t sizes[] = {channels, p->ksize[0], p->ksize[1], padded};
  if (!product_is(w->dims[0], sizes, 4) || !floats(w, w->dims[0]) || !vectors_fit(c, padded, 0, p->act)) return FL_PLAN_PARAMS;
  if (p->band < 1 || p->band > 1 << 16) return FL_PLAN_PARAMS;
  int64_t rows = stem_rows(p->ksize, p->strides, p->dilations, p->band), pixels = p->band * o.w;
  const int64_t copy[] = {channels, rows, columns}, table[] = {p->band, o.w};
  if (product(copy, 3) < 0 || product(table, 2) < 0) return FL_PLAN_PARAMS;
  return stem_scratch(channels, p->ksize[0], rows, columns, pixels) <= (int64_t)c->scratch_size ? FL_OK : FL_PLAN_PARAMS;
}
