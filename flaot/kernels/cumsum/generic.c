/* Running sums along one axis of any strided tensor, in index order; works in place. */
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"

#define SUM(NAME, T, U, ROUND)                                                                                \
  static void NAME(const void *x_, int64_t xs, void *y_, int64_t ys, int32_t n, bool exclusive) {             \
    const T *x = x_;                                                                                          \
    T *y = y_;                                                                                                \
    U sum = 0;                                                                                                \
    for (int32_t i = 0; i < n; i++) {                                                                         \
      U before = sum;                                                                                         \
      sum = ROUND(sum + (U)x[i * xs]);                                                                        \
      y[i * ys] = (T)(exclusive ? before : sum);                                                              \
    }                                                                                                         \
  }
#define PLAIN(v) (v)
SUM(sum_f32, float, float, FL_SUM)
SUM(sum_f64, double, double, PLAIN)
SUM(sum_1, uint8_t, uint32_t, PLAIN)
SUM(sum_2, uint16_t, uint32_t, PLAIN)
SUM(sum_4, uint32_t, uint32_t, PLAIN)
SUM(sum_8, uint64_t, uint64_t, PLAIN)

typedef void (*sum_fn)(const void *x, int64_t xs, void *y, int64_t ys, int32_t n, bool exclusive);

static sum_fn find(unsigned dtype) {
  static const sum_fn by[17] = {
    [FL_F32] = sum_f32, [FL_F64] = sum_f64, [FL_U8] = sum_1, [FL_I8] = sum_1, [FL_U16] = sum_2, [FL_I16] = sum_2,
    [FL_U32] = sum_4, [FL_I32] = sum_4, [FL_U64] = sum_8, [FL_I64] = sum_8,
  };
  return dtype > 16 ? 0 : by[dtype];
}

#ifndef FL_HALF_SUMS /* checked once, for both */
fl_status fl_cumsum_check(const fl_call *c) {
  const fl_cumsum_params *p = c->params;
  if (c->n_in != 1 || c->n_out != 1 || c->params_size != sizeof *p || !fl_same_dims(c->t[0], c->t[1])) return FL_PLAN_PARAMS;
  if (c->t[0]->dtype != c->t[1]->dtype || !find(c->t[0]->dtype)) return FL_PLAN_PARAMS;
  return p->axis >= 0 && p->axis < c->t[0]->rank ? FL_OK : FL_PLAN_PARAMS;
}
#endif

fl_status fl_cumsum_generic(const fl_call *c) {
  const fl_cumsum_params *p = c->params;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  int64_t size = (int64_t)fl_dtype_size(x->dtype), rows = 1, axis = p->axis, n = x->dims[axis];
  for (int32_t i = 0; i < x->rank; i++) rows *= i == axis ? 1 : x->dims[i];
  if (n == 0) return FL_OK;
  int64_t xs = x->strides[axis], ys = y->strides[axis], xend = p->reverse ? (n - 1) * xs : 0, yend = p->reverse ? (n - 1) * ys : 0;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t rest = r, xo = xend, yo = yend;
    for (int32_t i = x->rank; i-- > 0;) {
      if (i == axis) continue;
      int64_t k = rest % x->dims[i];
      rest /= x->dims[i], xo += k * x->strides[i], yo += k * y->strides[i];
    }
    find(x->dtype)((const char *)c->p[0] + xo * size, p->reverse ? -xs : xs, (char *)c->p[1] + yo * size, p->reverse ? -ys : ys,
                   (int32_t)n, p->exclusive != 0);
  }
  return FL_OK;
}
