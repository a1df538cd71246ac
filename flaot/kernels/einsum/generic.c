/* y[o...] = sum over s... of the product of all inputs at [o..., s...]; float32, float64, int32 or int64, any strides.
   Integers wrap around. */
#include "common/sum.h"
#include "flaot/kernel.h"

#ifndef FL_HALF_SUMS /* checked once, for both */
fl_status fl_contract_check(const fl_call *c) {
  if (c->n_in < 1 || c->n_out != 1 || c->params_size != 0) return FL_PLAN_PARAMS;
  const fl_tensor *y = c->t[c->n_in], *x = c->t[0];
  if (y->dtype != FL_F32 && y->dtype != FL_F64 && y->dtype != FL_I32 && y->dtype != FL_I64) return FL_PLAN_PARAMS;
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->t[i]->dtype != y->dtype || !fl_same_dims(c->t[i], x)) return FL_PLAN_PARAMS;
  if (y->rank > x->rank) return FL_PLAN_PARAMS;
  for (unsigned i = 0; i < y->rank; i++)
    if (y->dims[i] != x->dims[i]) return FL_PLAN_PARAMS;
  return FL_OK;
}
#endif

/* Element offset of position r over axes first..last-1. */
static int64_t offset(const fl_tensor *t, unsigned first, unsigned last, int64_t r) {
  int64_t at = 0;
  for (unsigned i = last; i-- > first;) at += r % t->dims[i] * t->strides[i], r /= t->dims[i];
  return at;
}

/* U is the type sums wrap in. The innermost summed axis runs in a loop of its own. */
#define DEFINE_SUM(NAME, T, U, SUM)                                                                                               \
  static T NAME(const fl_call *c, const int64_t *base, int64_t outer, unsigned first) {                                          \
    const fl_tensor *x = c->t[0];                                                                                                \
    unsigned last = x->rank;                                                                                                     \
    int32_t n = first < last ? x->dims[last - 1] : 1;                                                                            \
    U sum = 0;                                                                                                                   \
    for (int64_t r = 0; r < outer; r++) {                                                                                        \
      const T *q[FL_MAX_OPERANDS];                                                                                               \
      int64_t s[FL_MAX_OPERANDS];                                                                                                \
      for (uint32_t i = 0; i < c->n_in; i++) {                                                                                   \
        q[i] = (const T *)c->p[i] + base[i] + (first < last ? offset(c->t[i], first, last - 1, r) : 0);                          \
        s[i] = first < last ? c->t[i]->strides[last - 1] : 0;                                                                    \
      }                                                                                                                          \
      for (int32_t k = 0; k < n; k++) {                                                                                          \
        U product = (U)q[0][k * s[0]];                                                                                           \
        for (uint32_t i = 1; i < c->n_in; i++) product *= (U)q[i][k * s[i]];                                                     \
        sum = SUM(sum + product);                                                                                                    \
      }                                                                                                                          \
    }                                                                                                                            \
    return (T)sum;                                                                                                               \
  }
#define PLAIN(v) (v)
DEFINE_SUM(sum_f32, float, float, FL_SUM)
DEFINE_SUM(sum_f64, double, double, PLAIN)
DEFINE_SUM(sum_i32, int32_t, uint32_t, PLAIN)
DEFINE_SUM(sum_i64, int64_t, uint64_t, PLAIN)

fl_status fl_contract_generic(const fl_call *c) {
  const fl_tensor *x = c->t[0], *y = c->t[c->n_in];
  int64_t rows = fl_elements(y), outer = fl_elements(x) != 0;
  for (unsigned i = y->rank; i + 1 < x->rank; i++) outer *= x->dims[i];
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t base[FL_MAX_OPERANDS], to = offset(y, 0, y->rank, r);
    for (uint32_t i = 0; i < c->n_in; i++) base[i] = offset(c->t[i], 0, y->rank, r);
    switch (y->dtype) {
    case FL_F32: ((float *)c->p[c->n_in])[to] = sum_f32(c, base, outer, y->rank); break;
    case FL_F64: ((double *)c->p[c->n_in])[to] = sum_f64(c, base, outer, y->rank); break;
    case FL_I32: ((int32_t *)c->p[c->n_in])[to] = sum_i32(c, base, outer, y->rank); break;
    default: ((int64_t *)c->p[c->n_in])[to] = sum_i64(c, base, outer, y->rank); break;
    }
  }
  return FL_OK;
}
