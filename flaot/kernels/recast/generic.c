/* y[i...] = x[i...] in another element type of float32, float16 and bfloat16; any strides. A finite number stays finite: one beyond the
   range becomes the largest, as a mask of -1e9 means "very small" and an infinity in its place would make products NaN. */
#include "core/half.h"

enum { ROOM = 256 }; /* floats between two halves */

static bool is_float(const fl_tensor *t) { return t->dtype == FL_F32 || t->dtype == FL_F16 || t->dtype == FL_BF16; }

fl_status fl_recast_check(const fl_call *c) {
  const fl_recast_params *p = c->params;
  if (c->n_in != 1 || c->n_out != 1 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  if (p->rounding < 0 || p->rounding >= FL_ROUNDING_COUNT || p->flush >> 1 != 0) return FL_PLAN_PARAMS;
  if (!is_float(c->t[0]) || !is_float(c->t[1]) || c->t[0]->dtype == c->t[1]->dtype) return FL_PLAN_PARAMS;
  return fl_same_dims(c->t[0], c->t[1]) ? FL_OK : FL_PLAN_PARAMS;
}

static int64_t offset(const fl_tensor *t, int64_t row, int64_t column) {
  int64_t at = t->rank ? column * t->strides[t->rank - 1] : 0;
  for (unsigned i = t->rank < 1 ? 0 : t->rank - 1; i-- > 0; row /= t->dims[i]) at += row % t->dims[i] * t->strides[i];
  return at;
}

static void saturate(unsigned dtype, const float *x, int64_t xs, uint16_t *y, int64_t ys, int64_t n) {
  uint16_t infinite = dtype == FL_F16 ? 0x7C00 : 0x7F80;
  for (int64_t i = 0; i < n; i++) {
    uint16_t bits = y[i * ys];
    if ((bits & 0x7FFF) == infinite && x[i * xs] - x[i * xs] == 0.0f) y[i * ys] = (uint16_t)(bits - 1);
  }
}

static void narrow(unsigned dtype, fl_narrowing how, const float *x, int64_t xs, uint16_t *y, int64_t ys, int64_t n) {
  fl_narrow_run(dtype, how, x, xs, y, ys, n);
  saturate(dtype, x, xs, y, ys, n);
}

static void run(const fl_call *c, fl_narrowing how, int64_t from, int64_t to, int64_t n) {
  const fl_tensor *x = c->t[0], *y = c->t[1];
  int64_t xs = x->rank ? x->strides[x->rank - 1] : 1, ys = y->rank ? y->strides[y->rank - 1] : 1;
  float room[ROOM];
  if (x->dtype == FL_F32) narrow(y->dtype, how, (const float *)c->p[0] + from, xs, (uint16_t *)c->p[1] + to, ys, n);
  else if (y->dtype == FL_F32) fl_widen_run(x->dtype, (const uint16_t *)c->p[0] + from, xs, (float *)c->p[1] + to, ys, n);
  else {
    fl_widen_run(x->dtype, (const uint16_t *)c->p[0] + from, xs, room, 1, n);
    narrow(y->dtype, how, room, 1, (uint16_t *)c->p[1] + to, ys, n);
  }
}

fl_status fl_recast_generic(const fl_call *c) {
  const fl_recast_params *p = c->params;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  int64_t all = fl_elements(y), inner = y->rank ? y->dims[y->rank - 1] : 1, most = x->dtype == FL_F32 || y->dtype == FL_F32 ? all : ROOM;
  fl_narrowing how = fl_narrowing_of(y->dtype, p->rounding, p->flush != 0);
  for (int64_t n, i = fl_split(all, c->part, c->parts), end = fl_split(all, c->part + 1, c->parts); i < end; i += n) {
    int64_t row = i / inner, column = i % inner;
    n = inner - column < end - i ? inner - column : end - i;
    n = n < most ? n : most;
    run(c, how, offset(x, row, column), offset(y, row, column), n);
  }
  return FL_OK;
}
