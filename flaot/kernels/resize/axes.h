/* Walking a tensor of which two axes ("rows", optional, and "columns") are resized and a third ("inner", optional) is contiguous. */
#ifndef FLAOT_KERNELS_RESIZE_AXES_H
#define FLAOT_KERNELS_RESIZE_AXES_H
#include "flaot/kernel.h"

typedef struct fl_resize {
  int32_t in_rows, out_rows, in_columns, out_columns, inner;
  int64_t xr, xc, xi, yr, yc, yi; /* strides of rows, columns, inner */
  int64_t outer;                  /* product of the other dims */
} fl_resize;

static inline fl_resize fl_resize_of(const fl_tensor *x, const fl_tensor *y, int32_t rows, int32_t columns, int32_t inner) {
  fl_resize g = {1, 1, x->dims[columns], y->dims[columns], 1, 0, x->strides[columns], 1, 0, y->strides[columns], 1, 1};
  if (rows >= 0) g.in_rows = x->dims[rows], g.out_rows = y->dims[rows], g.xr = x->strides[rows], g.yr = y->strides[rows];
  if (inner >= 0) g.inner = x->dims[inner], g.xi = x->strides[inner], g.yi = y->strides[inner];
  for (int32_t i = 0; i < x->rank; i++) g.outer *= i == rows || i == columns || i == inner ? 1 : x->dims[i];
  return g;
}

/* Element offsets of outer position q. */
static inline void fl_resize_at(const fl_tensor *x, const fl_tensor *y, int32_t rows, int32_t columns, int32_t inner, int64_t q, int64_t *xo, int64_t *yo) {
  *xo = *yo = 0;
  for (int32_t i = x->rank; i-- > 0;) {
    if (i == rows || i == columns || i == inner) continue;
    int64_t k = q % x->dims[i];
    q /= x->dims[i], *xo += k * x->strides[i], *yo += k * y->strides[i];
  }
}

/* Axes are distinct and in range, all other dims agree, and the resized axes are not empty. */
static inline bool fl_resize_ok(const fl_tensor *x, const fl_tensor *y, int32_t rows, int32_t columns, int32_t inner) {
  if (x->dtype != y->dtype || x->rank != y->rank || columns < 0 || columns >= x->rank) return false;
  if (rows < -1 || rows >= x->rank || inner < -1 || inner >= x->rank) return false;
  if (rows == columns || inner == columns || (rows >= 0 && rows == inner)) return false;
  for (int32_t i = 0; i < x->rank; i++)
    if (i != rows && i != columns && x->dims[i] != y->dims[i]) return false;
  return true;
}

/* n indices lie in -1..size-1. */
static inline bool fl_resize_indices_ok(const int32_t *index, int64_t n, int32_t size) {
  for (int64_t i = 0; i < n; i++)
    if (index[i] < -1 || index[i] >= size) return false;
  return true;
}
#endif
