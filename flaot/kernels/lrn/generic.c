/* y[n,c,...] = x / (bias + alpha / size * sum of squares over nearby channels)^beta, any strides. */
#include "common/math.h"
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"

/* Offsets of row r, where a row is one position on every axis but one. */
static void row_at(const fl_tensor *x, const fl_tensor *y, unsigned axis, int64_t r, int64_t *xo, int64_t *yo) {
  *xo = *yo = 0;
  for (unsigned i = x->rank; i-- > 0;) {
    if (i == axis) continue;
    int64_t k = r % x->dims[i];
    r /= x->dims[i], *xo += k * x->strides[i], *yo += k * y->strides[i];
  }
}

static int64_t rows_of(const fl_tensor *x, unsigned axis) {
  int64_t n = 1;
  for (unsigned i = 0; i < x->rank; i++) n *= i == axis ? 1 : x->dims[i];
  return n;
}

#ifndef FL_HALF_SUMS /* checked once, for both */
static bool same_f32(const fl_call *c) {
  return c->n_in == 1 && c->n_out == 1 && c->t[0]->dtype == FL_F32 && c->t[1]->dtype == FL_F32 && fl_same_dims(c->t[0], c->t[1]);
}

fl_status fl_lrn_f32_check(const fl_call *c) {
  const fl_lrn_f32_params *p = c->params;
  return same_f32(c) && c->params_size == sizeof *p && c->t[0]->rank >= 2 && p->size >= 1 ? FL_OK : FL_PLAN_PARAMS;
}
#endif

fl_status fl_lrn_f32_generic(const fl_call *c) {
  if (fl_elements(c->t[1]) == 0) return FL_OK;
  const fl_lrn_f32_params *p = c->params;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  int64_t rows = rows_of(x, 1), n = x->dims[1], before = (p->size - 1) / 2, after = p->size - 1 - before;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t xo, yo;
    row_at(x, y, 1, r, &xo, &yo);
    const float *in = (const float *)c->p[0] + xo;
    float *out = (float *)c->p[1] + yo;
    for (int64_t i = 0; i < n; i++) {
      float sum = 0.0f;
      for (int64_t k = i > before ? i - before : 0; k < n && k <= i + after; k++) sum = FL_SUM(sum + in[k * x->strides[1]] * in[k * x->strides[1]]);
      out[i * y->strides[1]] = in[i * x->strides[1]] * fl_expf(-p->beta * fl_logf(p->bias + p->alpha / (float)p->size * sum));
    }
  }
  return FL_OK;
}
