/* Y[b..., m, n] = act(alpha sum_k A[b..., m, k] B[b..., k, n] + beta C[b..., m, n] + D[b..., m, n]), any strides: transposition and
   broadcasting are strides. t: A, B, optional C and D, Y, all of one rank and type; act on float32 alone. Sums run over k in order. */
#include "common/activation.h"
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"

#ifndef FL_HALF_SUMS /* checked once, for both */
fl_status fl_matmul_check(const fl_call *c) {
  if (c->n_in < 2 || c->n_in > 4 || c->n_out != 1 || c->params_size != sizeof(fl_matmul_params)) return FL_PLAN_PARAMS;
  const fl_tensor *a = c->t[0], *b = c->t[1], *y = c->t[c->n_in];
  unsigned r = y->rank;
  if (r < 2 || a->rank != r || b->rank != r || a->dtype != y->dtype || b->dtype != y->dtype) return FL_PLAN_PARAMS;
  for (uint32_t i = 2; i < c->n_in; i++)
    if (!fl_same_dims(c->t[i], y) || c->t[i]->dtype != y->dtype) return FL_PLAN_PARAMS;
  for (unsigned i = 0; i + 2 < r; i++)
    if (a->dims[i] != y->dims[i] || b->dims[i] != y->dims[i]) return FL_PLAN_PARAMS;
  if (a->dims[r - 2] != y->dims[r - 2] || b->dims[r - 1] != y->dims[r - 1] || a->dims[r - 1] != b->dims[r - 2]) return FL_PLAN_PARAMS;
  const fl_matmul_params *p = c->params;
  if (p->act < 0 || p->act >= FL_ACT_COUNT || (p->act && y->dtype != FL_F32)) return FL_PLAN_PARAMS;
  bool plain = (p->alpha == 0.0f || p->alpha == 1.0f) && (p->beta == 0.0f || p->beta == 1.0f);
  switch (y->dtype) {
  case FL_F32: case FL_F64: return FL_OK;
  case FL_I32: case FL_I64: case FL_U32: case FL_U64: return plain ? FL_OK : FL_PLAN_PARAMS;
  default: return FL_PLAN_PARAMS;
  }
}
#endif

/* Row `row` of Y in row-major order of all axes but the last; o: element offsets of the operands. */
static void locate(const fl_call *c, int64_t row, int64_t o[5]) {
  const fl_tensor *const *t = c->t;
  uint32_t n = c->n_in + 1;
  unsigned r = t[0]->rank;
  for (uint32_t j = 0; j < n; j++) o[j] = 0;
  for (unsigned i = r - 1; i-- > 0;) {
    int64_t d = t[n - 1]->dims[i], at = row % d;
    row /= d;
    for (uint32_t j = 0; j < n; j++)
      if (!(j == 1 && i == r - 2)) o[j] += at * t[j]->strides[i];
  }
}

enum { COLUMNS = 16 };

#define MATMUL(NAME, T, ACC, ACT, SUM)                                                                                             \
  static void NAME(const fl_call *c, int64_t row) {                                                                              \
    const fl_matmul_params *p = c->params;                                                                                       \
    const fl_tensor *ta = c->t[0], *tb = c->t[1], *ty = c->t[c->n_in];                                                           \
    unsigned r = ty->rank;                                                                                                       \
    int64_t o[5], ak = ta->strides[r - 1], bk = tb->strides[r - 2], bn = tb->strides[r - 1], depth = ta->dims[r - 1];            \
    locate(c, row, o);                                                                                                           \
    const T *a = (const T *)c->p[0] + o[0];                                                                                      \
    for (int64_t n0 = 0; n0 < ty->dims[r - 1]; n0 += COLUMNS) {                                                                  \
      int64_t left = ty->dims[r - 1] - n0, columns = left < COLUMNS ? left : COLUMNS;                                            \
      const T *b = (const T *)c->p[1] + o[1] + n0 * bn;                                                                          \
      ACC sums[COLUMNS] = {0};                                                                                                   \
      if (columns == COLUMNS && bn == 1)                                                                                         \
        for (int64_t k = 0; k < depth; k++)                                                                                      \
          for (int j = 0; j < COLUMNS; j++) sums[j] = SUM(sums[j] + (ACC)a[k * ak] * (ACC)b[k * bk + j]);                                  \
      else                                                                                                                       \
        for (int64_t k = 0; k < depth; k++)                                                                                      \
          for (int64_t j = 0; j < columns; j++) sums[j] = SUM(sums[j] + (ACC)a[k * ak] * (ACC)b[k * bk + j * bn]);                         \
      for (int64_t j = 0; j < columns; j++) {                                                                                    \
        ACC sum = p->alpha == 1.0f ? sums[j] : (ACC)((T)p->alpha * (T)sums[j]);                                                  \
        for (uint32_t i = 2; i < c->n_in; i++) {                                                                                 \
          T add = ((const T *)c->p[i])[o[i] + (n0 + j) * c->t[i]->strides[r - 1]];                                               \
          sum += i > 2 || p->beta == 1.0f ? (ACC)add : (ACC)((T)p->beta * add);                                                  \
        }                                                                                                                        \
        ((T *)c->p[c->n_in])[o[c->n_in] + (n0 + j) * ty->strides[r - 1]] = ACT((T)sum);                                          \
      }                                                                                                                          \
    }                                                                                                                            \
  }
#define ACTIVATE(v) fl_activate(p->act, v, p->act_alpha, p->act_beta, 0.0f)
#define PLAIN(v) (v)
MATMUL(row_f32, float, float, ACTIVATE, FL_SUM)
MATMUL(row_f64, double, double, PLAIN, PLAIN)
MATMUL(row_32, uint32_t, uint32_t, PLAIN, PLAIN)
MATMUL(row_64, uint64_t, uint64_t, PLAIN, PLAIN)

fl_status fl_matmul_generic(const fl_call *c) {
  if (fl_elements(c->t[c->n_in]) == 0) return FL_OK;
  const fl_tensor *y = c->t[c->n_in];
  int64_t rows = 1;
  for (unsigned i = 0; i + 1 < y->rank; i++) rows *= y->dims[i];
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    switch (y->dtype) {
    case FL_F32: row_f32(c, r); break;
    case FL_F64: row_f64(c, r); break;
    case FL_I32: case FL_U32: row_32(c, r); break;
    default: row_64(c, r); break;
    }
  }
  return FL_OK;
}
