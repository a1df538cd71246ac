/* y[..., i, ...] along one axis of any strided tensor: subtract the maximum, exponentiate, normalise. Works in place. */
#include "common/math.h"
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"

#ifndef FL_HALF_SUMS /* checked once, for both */
fl_status fl_softmax_f32_check(const fl_call *c) {
  const fl_softmax_f32_params *p = c->params;
  if (c->n_in != 1 || c->n_out != 1 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  if (x->dtype != FL_F32 || y->dtype != FL_F32 || !fl_same_dims(x, y)) return FL_PLAN_PARAMS;
  return p->axis >= 0 && p->axis < x->rank ? FL_OK : FL_PLAN_PARAMS;
}
#endif

static void row(const float *x, int64_t xs, float *y, int64_t ys, int32_t n, bool log) {
  float max = x[0], sum = 0.0f;
  for (int32_t i = 1; i < n; i++) max = x[i * xs] > max ? x[i * xs] : max;
  for (int32_t i = 0; i < n; i++) {
    float d = x[i * xs] - max, e = fl_expf(d);
    y[i * ys] = log ? d : e;
    sum = FL_SUM(sum + e);
  }
  float scale = log ? fl_logf(sum) : 1.0f / sum;
  for (int32_t i = 0; i < n; i++) y[i * ys] = log ? y[i * ys] - scale : y[i * ys] * scale;
}

fl_status fl_softmax_f32_generic(const fl_call *c) {
  const fl_softmax_f32_params *p = c->params;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  unsigned axis = (unsigned)p->axis;
  int64_t rows = 1;
  for (unsigned i = 0; i < x->rank; i++) rows *= i == axis ? 1 : x->dims[i];
  if (x->dims[axis] == 0) return FL_OK;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t rest = r, xo = 0, yo = 0;
    for (unsigned i = x->rank; i-- > 0;) {
      if (i == axis) continue;
      int64_t k = rest % x->dims[i];
      rest /= x->dims[i], xo += k * x->strides[i], yo += k * y->strides[i];
    }
    row((const float *)c->p[0] + xo, x->strides[axis], (float *)c->p[1] + yo, y->strides[axis], x->dims[axis], p->log != 0);
  }
  return FL_OK;
}
