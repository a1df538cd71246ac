/* y = (x - mean) * inv * scale + bias with mean and inv taken over the axes in the bit set `axes`; any strides.
   t: x, then as flagged scale and bias (bit 0, 1 of `has`) with the dims of x; outputs y and optionally mean and inv, size 1 on `axes`. */
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"
#include "norm/modes.h"

#ifndef FL_HALF_SUMS /* checked once, for both */
fl_status fl_norm_f32_check(const fl_call *c) {
  const fl_norm_f32_params *p = c->params;
  if (c->params_size != sizeof *p || p->mode < 0 || p->mode >= FL_NORM_COUNT || p->has < 0 || p->has > 3) return FL_PLAN_PARAMS;
  if (c->n_in != 1u + (p->has & 1) + (unsigned)(p->has >> 1) || (c->n_out != 1 && c->n_out != 3)) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0];
  for (uint32_t i = 0; i < c->n_in + c->n_out; i++) {
    const fl_tensor *t = c->t[i];
    if (t->dtype != FL_F32 || t->rank != x->rank) return FL_PLAN_PARAMS;
    for (unsigned a = 0; a < x->rank; a++)
      if (t->dims[a] != (i > c->n_in && p->axes >> a & 1 ? 1 : x->dims[a])) return FL_PLAN_PARAMS;
  }
  return FL_OK;
}
#endif

typedef struct { const fl_call *c; uint32_t axes, operands; int64_t n, stat[2], o[4]; int32_t at[FL_MAX_RANK]; } walk;

static void next(walk *w) {
  const fl_tensor *x = w->c->t[0];
  for (unsigned i = x->rank; i-- > 0;) {
    if (!(w->axes >> i & 1)) continue;
    for (uint32_t j = 0; j < w->operands; j++) w->o[j] += w->c->t[j]->strides[i];
    if (++w->at[i] < x->dims[i]) return;
    for (uint32_t j = 0; j < w->operands; j++) w->o[j] -= (int64_t)w->c->t[j]->strides[i] * x->dims[i];
    w->at[i] = 0;
  }
}

static float term(float v, int power) { return power == 2 ? v * v : power == 1 && v < 0.0f ? -v : v; }

/* Sum over the window of v, |v| or v v with v = x - mean: one by one in float16, or in runs of RUN that are added with their rounding
   errors carried along. */
#ifdef FL_HALF_SUMS
static float total(walk *w, float mean, int power) {
  const float *x = w->c->p[0];
  float sum = 0.0f;
  for (int64_t i = 0; i < w->n; i++, next(w)) sum = FL_SUM(sum + term(x[w->o[0]] - mean, power));
  return sum;
}
#else
enum { RUN = 32 };

static float total(walk *w, float mean, int power) {
  const float *x = w->c->p[0];
  float sum = 0.0f, lost = 0.0f;
  for (int64_t i = 0; i < w->n;) {
    float run = 0.0f;
    for (int64_t end = i + RUN < w->n ? i + RUN : w->n; i < end; i++, next(w)) run += term(x[w->o[0]] - mean, power);
    float add = sum + run, part = add - sum;
    if (add - add == 0.0f) lost += (sum - (add - part)) + (run - part);
    sum = add;
  }
  return sum + lost;
}
#endif

static void window(walk *w, const fl_norm_f32_params *p) {
  const fl_call *c = w->c;
  bool centred = p->mode == FL_NORM_VARIANCE || p->mode == FL_NORM_DEVIATION;
  float n = (float)w->n, mean = centred ? total(w, 0.0f, 0) / n : 0.0f;
  float inv = norm_inverse(p, p->mode == FL_NORM_LP1 ? total(w, 0.0f, 1) : total(w, mean, 2), n);
  for (int64_t i = 0; i < w->n; i++, next(w)) {
    float v = (((const float *)c->p[0])[w->o[0]] - mean) * inv;
    if (p->has & 1) v *= ((const float *)c->p[1])[w->o[1]];
    if (p->has & 2) v += ((const float *)c->p[c->n_in - 1])[w->o[c->n_in - 1]];
    ((float *)c->p[c->n_in])[w->o[c->n_in]] = v;
  }
  if (c->n_out == 3) {
    ((float *)c->p[c->n_in + 1])[w->stat[0]] = mean;
    ((float *)c->p[c->n_in + 2])[w->stat[1]] = inv;
  }
}

fl_status fl_norm_f32_generic(const fl_call *c) {
  const fl_norm_f32_params *p = c->params;
  const fl_tensor *x = c->t[0];
  int64_t count = 1, n = 1;
  for (unsigned i = 0; i < x->rank; i++) *(p->axes >> i & 1 ? &n : &count) *= x->dims[i];
  if (n == 0) return FL_OK;
  for (int64_t r = fl_split(count, c->part, c->parts), end = fl_split(count, c->part + 1, c->parts); r < end; r++) {
    walk w = {c, p->axes, c->n_in + 1, n, {0}, {0}, {0}};
    int64_t rest = r;
    for (unsigned i = x->rank; i-- > 0;) {
      if (p->axes >> i & 1) continue;
      int64_t k = rest % x->dims[i];
      rest /= x->dims[i];
      for (uint32_t j = 0; j < w.operands; j++) w.o[j] += k * c->t[j]->strides[i];
      for (uint32_t j = 0; j + 1 < c->n_out; j++) w.stat[j] += k * c->t[c->n_in + 1 + j]->strides[i];
    }
    window(&w, p);
  }
  return FL_OK;
}
