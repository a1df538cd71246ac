/* y[n,m,o] = bias[m] + sum of w[c,m,k] * x[n,c,i] where i * stride + k * dilation - begin = o, for 1 to 3 spatial axes, any strides. */
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"

typedef struct axes { int32_t d[3]; int64_t s[3]; } axes; /* spatial axes, right-aligned */

static axes spatial(const fl_tensor *t) {
  axes a = {{1, 1, 1}, {0, 0, 0}};
  for (unsigned i = 2, k = 5u - t->rank; i < t->rank; i++, k++) a.d[k] = t->dims[i], a.s[k] = t->strides[i];
  return a;
}

#ifndef FL_HALF_SUMS /* checked once, for both */
fl_status fl_conv_transpose_f32_check(const fl_call *c) {
  const fl_conv_transpose_f32_params *p = c->params;
  if (c->n_in < 2 || c->n_in > 3 || c->n_out != 1 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *w = c->t[1], *y = c->t[c->n_in];
  for (uint32_t i = 0; i <= c->n_in; i++)
    if (c->t[i]->dtype != FL_F32) return FL_PLAN_PARAMS;
  if (x->rank < 3 || x->rank > 5 || w->rank != x->rank || y->rank != x->rank || p->group < 1) return FL_PLAN_PARAMS;
  if (x->dims[0] != y->dims[0] || w->dims[0] != x->dims[1] || x->dims[1] % p->group) return FL_PLAN_PARAMS;
  if (y->dims[1] != (int64_t)w->dims[1] * p->group) return FL_PLAN_PARAMS;
  if (c->n_in == 3 && (c->t[2]->rank != 1 || c->t[2]->dims[0] != y->dims[1])) return FL_PLAN_PARAMS;
  for (int i = 0; i < 3; i++)
    if (p->strides[i] < 1 || p->begins[i] < 0 || p->dilations[i] < 1) return FL_PLAN_PARAMS;
  return FL_OK;
}
#endif

/* Input position that reaches output o through tap k along axis a, or -1. */
static int64_t source(const fl_conv_transpose_f32_params *p, int a, int64_t o, int32_t k, int32_t size) {
  int64_t t = o + p->begins[a] - (int64_t)k * p->dilations[a];
  if (t < 0 || t % p->strides[a]) return -1;
  t /= p->strides[a];
  return t < size ? t : -1;
}

typedef struct job {
  const fl_conv_transpose_f32_params *p;
  axes x, w;
  int64_t xc, wc;    /* channel strides */
  int32_t channels;  /* per group */
} job;

static float element(const job *j, const float *x, const float *w, const int64_t *o) {
  float sum = 0.0f;
  for (int32_t a = 0; a < j->w.d[0]; a++) {
    int64_t i0 = source(j->p, 0, o[0], a, j->x.d[0]);
    if (i0 < 0) continue;
    for (int32_t b = 0; b < j->w.d[1]; b++) {
      int64_t i1 = source(j->p, 1, o[1], b, j->x.d[1]);
      if (i1 < 0) continue;
      for (int32_t e = 0; e < j->w.d[2]; e++) {
        int64_t i2 = source(j->p, 2, o[2], e, j->x.d[2]);
        if (i2 < 0) continue;
        const float *xs = x + i0 * j->x.s[0] + i1 * j->x.s[1] + i2 * j->x.s[2];
        const float *ws = w + a * j->w.s[0] + b * j->w.s[1] + e * j->w.s[2];
        for (int32_t c = 0; c < j->channels; c++) sum = FL_SUM(sum + xs[c * j->xc] * ws[c * j->wc]);
      }
    }
  }
  return sum;
}

fl_status fl_conv_transpose_f32_generic(const fl_call *c) {
  if (fl_elements(c->t[c->n_in]) == 0) return FL_OK;
  const fl_conv_transpose_f32_params *p = c->params;
  const fl_tensor *x = c->t[0], *w = c->t[1], *y = c->t[c->n_in];
  axes out = spatial(y);
  job j = {p, spatial(x), spatial(w), x->strides[1], w->strides[0], x->dims[1] / p->group};
  int64_t planes = (int64_t)y->dims[0] * y->dims[1], points = (int64_t)out.d[0] * out.d[1] * out.d[2];
  for (int64_t q = fl_split(planes, c->part, c->parts), end = fl_split(planes, c->part + 1, c->parts); q < end; q++) {
    int64_t n = q / y->dims[1], m = q % y->dims[1], group = m / w->dims[1];
    const float *xs = (const float *)c->p[0] + n * x->strides[0] + group * j.channels * x->strides[1];
    const float *ws = (const float *)c->p[1] + group * j.channels * w->strides[0] + m % w->dims[1] * w->strides[1];
    float *ys = (float *)c->p[c->n_in] + n * y->strides[0] + m * y->strides[1];
    float bias = c->n_in == 3 ? ((const float *)c->p[2])[m * c->t[2]->strides[0]] : 0.0f;
    for (int64_t r = 0; r < points; r++) {
      int64_t o[3] = {r / out.d[2] / out.d[1], r / out.d[2] % out.d[1], r % out.d[2]};
      ys[o[0] * out.s[0] + o[1] * out.s[1] + o[2] * out.s[2]] = bias + element(&j, xs, ws, o);
    }
  }
  return FL_OK;
}
