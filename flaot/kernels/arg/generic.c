/* Positions of extreme values along one axis, any strides. NaN never wins a comparison, so the first element stands in for all-NaN rows. */
#include "flaot/kernel.h"
#include "gen/params.h"

static bool known(unsigned dtype) {
  switch (dtype) {
  case FL_F32: case FL_F64: case FL_I32: case FL_I64: case FL_I8: case FL_U8: return true;
  default: return false;
  }
}

static bool same_but(const fl_tensor *x, const fl_tensor *y, int32_t axis) {
  if (x->rank != y->rank || axis < 0 || axis >= x->rank) return false;
  for (int32_t i = 0; i < x->rank; i++)
    if (i != axis && x->dims[i] != y->dims[i]) return false;
  return true;
}

/* Offset in t of the row-th line along axis. */
static int64_t line(const fl_tensor *t, unsigned axis, int64_t row) {
  int64_t offset = 0;
  for (unsigned i = t->rank; i-- > 0;) {
    if (i == axis) continue;
    offset += row % t->dims[i] * t->strides[i], row /= t->dims[i];
  }
  return offset;
}

static int64_t lines(const fl_tensor *t, unsigned axis) {
  int64_t n = 1;
  for (unsigned i = 0; i < t->rank; i++) n *= i == axis ? 1 : t->dims[i];
  return n;
}

fl_status fl_arg_check(const fl_call *c) {
  const fl_arg_params *p = c->params;
  if (c->n_in != 1 || c->n_out != 1 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  if (!known(x->dtype) || y->dtype != FL_I64 || !same_but(x, y, p->axis)) return FL_PLAN_PARAMS;
  return x->dims[p->axis] > 0 && y->dims[p->axis] == 1 ? FL_OK : FL_PLAN_PARAMS;
}

#define ARG(T)                                                                                              \
  {                                                                                                         \
    const T *x = (const T *)c->p[0] + xo;                                                                   \
    for (int32_t i = 1; i < n; i++) {                                                                       \
      T v = x[i * xs], b = x[best * xs];                                                                    \
      if ((p->min ? v < b : v > b) || (p->last && v == b)) best = i;                                        \
    }                                                                                                       \
  }

fl_status fl_arg_generic(const fl_call *c) {
  const fl_arg_params *p = c->params;
  const fl_tensor *tx = c->t[0], *ty = c->t[1];
  unsigned axis = (unsigned)p->axis;
  int32_t n = tx->dims[axis];
  int64_t xs = tx->strides[axis], rows = lines(tx, axis);
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t xo = line(tx, axis, r), best = 0;
    switch (tx->dtype) {
    case FL_F32: ARG(float) break;
    case FL_F64: ARG(double) break;
    case FL_I32: ARG(int32_t) break;
    case FL_I64: ARG(int64_t) break;
    case FL_I8: ARG(int8_t) break;
    default: ARG(uint8_t) break;
    }
    ((int64_t *)c->p[1])[line(ty, axis, r)] = best;
  }
  return FL_OK;
}

fl_status fl_topk_check(const fl_call *c) {
  const fl_topk_params *p = c->params;
  if (c->n_in != 1 || c->n_out != 2 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *y = c->t[1], *i = c->t[2];
  if (!known(x->dtype) || y->dtype != x->dtype || i->dtype != FL_I64 || !fl_same_dims(y, i)) return FL_PLAN_PARAMS;
  return same_but(x, y, p->axis) && y->dims[p->axis] <= x->dims[p->axis] ? FL_OK : FL_PLAN_PARAMS;
}

/* A heap of k (value, index) pairs whose root comes last in the wanted order; the order is total, as indices differ. */
#define TOPK(T, NAME)                                                                                       \
  typedef struct { T *v; int64_t *i, vs, is; bool min; } heap_##NAME;                                       \
  static bool before_##NAME(const heap_##NAME *h, T a, int64_t ai, T b, int64_t bi) {                       \
    if (a != a || b != b) return a != a && b != b ? ai < bi : h->min ? b != b : a != a;                     \
    return a == b ? ai < bi : h->min ? a < b : a > b;                                                       \
  }                                                                                                         \
  static void sink_##NAME(const heap_##NAME *h, int64_t at, int64_t k, T v, int64_t i) {                    \
    for (int64_t kid; (kid = 2 * at + 1) < k; at = kid) {                                                   \
      if (kid + 1 < k && before_##NAME(h, h->v[kid * h->vs], h->i[kid * h->is], h->v[(kid + 1) * h->vs], h->i[(kid + 1) * h->is])) kid++; \
      if (!before_##NAME(h, v, i, h->v[kid * h->vs], h->i[kid * h->is])) break;                             \
      h->v[at * h->vs] = h->v[kid * h->vs], h->i[at * h->is] = h->i[kid * h->is];                           \
    }                                                                                                       \
    h->v[at * h->vs] = v, h->i[at * h->is] = i;                                                             \
  }                                                                                                         \
  static void NAME(const T *x, int64_t xs, int64_t n, int64_t k, const heap_##NAME *h) {                    \
    for (int64_t j = 0; j < k; j++) h->v[j * h->vs] = x[j * xs], h->i[j * h->is] = j;                       \
    for (int64_t j = k / 2; j-- > 0;) sink_##NAME(h, j, k, h->v[j * h->vs], h->i[j * h->is]);               \
    for (int64_t j = k; j < n; j++)                                                                         \
      if (before_##NAME(h, x[j * xs], j, h->v[0], h->i[0])) sink_##NAME(h, 0, k, x[j * xs], j);             \
    for (int64_t j = k - 1; j > 0; j--) {                                                                   \
      T v = h->v[j * h->vs];                                                                                \
      int64_t i = h->i[j * h->is];                                                                          \
      h->v[j * h->vs] = h->v[0], h->i[j * h->is] = h->i[0];                                                 \
      sink_##NAME(h, 0, j, v, i);                                                                           \
    }                                                                                                       \
  }
TOPK(float, top_f32)
TOPK(double, top_f64)
TOPK(int32_t, top_i32)
TOPK(int64_t, top_i64)
TOPK(int8_t, top_i8)
TOPK(uint8_t, top_u8)

#define ROW(T, NAME)                                                                                        \
  {                                                                                                         \
    heap_##NAME h = {(T *)c->p[1] + yo, (int64_t *)c->p[2] + io, ys, is, p->smallest != 0};                 \
    NAME((const T *)c->p[0] + xo, tx->strides[axis], tx->dims[axis], k, &h);                                \
  }

fl_status fl_topk_generic(const fl_call *c) {
  const fl_topk_params *p = c->params;
  const fl_tensor *tx = c->t[0], *ty = c->t[1], *ti = c->t[2];
  unsigned axis = (unsigned)p->axis;
  int64_t k = ty->dims[axis], rows = k ? lines(tx, axis) : 0, ys = ty->strides[axis], is = ti->strides[axis];
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t xo = line(tx, axis, r), yo = line(ty, axis, r), io = line(ti, axis, r);
    switch (tx->dtype) {
    case FL_F32: ROW(float, top_f32) break;
    case FL_F64: ROW(double, top_f64) break;
    case FL_I32: ROW(int32_t, top_i32) break;
    case FL_I64: ROW(int64_t, top_i64) break;
    case FL_I8: ROW(int8_t, top_i8) break;
    default: ROW(uint8_t, top_u8) break;
    }
  }
  return FL_OK;
}
