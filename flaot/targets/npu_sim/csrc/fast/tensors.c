#include "npu_sim/csrc/fast/tensors.h"

static int64_t columns_of(const fl_tensor *t) { return t->rank ? t->dims[t->rank - 1] : 1; }

int64_t fl_rows(const fl_tensor *t) { return fl_elements(t) / columns_of(t); }

/* The matrix of the last two axes that row `row` is in, from that row on; *offset: elements to its first. */
static fl_matrix matrix_at(const fl_tensor *t, int64_t row, int64_t *offset) {
  int64_t rows = t->rank > 1 ? t->dims[t->rank - 2] : 1, down = t->rank > 1 ? t->strides[t->rank - 2] : 0, batch = row / rows;
  *offset = row % rows * down;
  for (int i = t->rank - 3; i >= 0; batch /= t->dims[i--]) *offset += batch % t->dims[i] * t->strides[i];
  return (fl_matrix){rows - row % rows, columns_of(t), down, t->rank ? t->strides[t->rank - 1] : 1};
}

void fl_rows_widen(const fl_tensor *t, const void *stored, int64_t first, int64_t end, float *dense) {
  for (int64_t row = first, n; row < end; row += n) {
    int64_t offset;
    fl_matrix m = matrix_at(t, row, &offset);
    n = m.rows = m.rows < end - row ? m.rows : end - row;
    fl_plane_widen(t->dtype, &m, (const uint16_t *)stored + offset, dense + (row - first) * m.columns, m.columns, NULL);
  }
}

void fl_rows_narrow(const fl_tensor *t, fl_rounding mode, bool flush, void *stored, int64_t first, int64_t end, const float *dense) {
  for (int64_t row = first, n; row < end; row += n) {
    int64_t offset;
    fl_matrix m = matrix_at(t, row, &offset);
    n = m.rows = m.rows < end - row ? m.rows : end - row;
    fl_plane_narrow(t->dtype, mode, flush, &m, dense + (row - first) * m.columns, m.columns, (uint16_t *)stored + offset);
  }
}

fl_tensor fl_as_stored(const fl_tensor *t, bool *packed) {
  fl_tensor s = *t;
  unsigned done = 0;
  int64_t step = 1;
  for (unsigned at = t->rank; at-- > 0;) { /* the innermost axis first; those of one element are innermost */
    unsigned i = 0;
    while (i < t->rank && ((done >> i & 1) || (t->dims[i] != 1 && t->strides[i] != step))) i++;
    if (i == t->rank) return *packed = false, *t;
    done |= 1u << i, s.dims[at] = t->dims[i], s.strides[at] = (int32_t)step, step *= t->dims[i];
  }
  return *packed = true, s;
}
