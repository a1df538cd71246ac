/* Runs and strided tensors of float16 and bfloat16; contiguous runs are loops a compiler turns into vectors. */
#include "core/half.h"

#define RUN(T, R, EXPR)                                                          \
  do {                                                                           \
    if (xs == 1 && ys == 1) for (int64_t i = 0; i < n; i++) { T v = x[i]; y[i] = (R)(EXPR); } \
    else for (int64_t i = 0; i < n; i++) { T v = x[i * xs]; y[i * ys] = (R)(EXPR); }          \
  } while (0)

void fl_widen_run(unsigned dtype, const uint16_t *restrict x, int64_t xs, float *restrict y, int64_t ys, int64_t n) {
  if (dtype == FL_BF16) RUN(uint16_t, float, fl_bfloat_to_float(v));
  else RUN(uint16_t, float, fl_half_to_float(v));
}

void fl_narrow_run(unsigned dtype, fl_narrowing r, const float *restrict x, int64_t xs, uint16_t *restrict y, int64_t ys, int64_t n) {
  if (dtype == FL_BF16) RUN(float, uint16_t, fl_float_to_bfloat(v, r));
  else RUN(float, uint16_t, fl_float_to_half(v, r));
}

typedef struct rows { int64_t count, length, stride; } rows; /* along the last axis, or all of a dense tensor */

static rows rows_of(const fl_tensor *t) {
  int64_t all = fl_elements(t);
  if (t->rank == 0 || fl_is_dense(t)) return (rows){all > 0, all, 1};
  int64_t n = t->dims[t->rank - 1];
  return (rows){n ? all / n : 0, n, t->strides[t->rank - 1]};
}

static int64_t row_offset(const fl_tensor *t, int64_t row) {
  int64_t offset = 0;
  for (unsigned i = t->rank < 1 ? 0 : t->rank - 1; i-- > 0; row /= t->dims[i]) offset += row % t->dims[i] * t->strides[i];
  return offset;
}

void fl_widen(const fl_tensor *t, const void *p, float *out) {
  rows r = rows_of(t);
  for (int64_t i = 0; i < r.count; i++)
    fl_widen_run(t->dtype, (const uint16_t *)p + row_offset(t, i), r.stride, out + i * r.length, 1, r.length);
}

void fl_narrow(const fl_tensor *t, void *p, const float *in, fl_rounding mode, bool flush) {
  rows r = rows_of(t);
  fl_narrowing how = fl_narrowing_of(t->dtype, mode, flush);
  for (int64_t i = 0; i < r.count; i++)
    fl_narrow_run(t->dtype, how, in + i * r.length, 1, (uint16_t *)p + row_offset(t, i), r.stride, r.length);
}
