/* Three-axis windows over batch, channels and up to three spatial axes. */
#ifndef FLAOT_KERNELS_POOL_WINDOW_H
#define FLAOT_KERNELS_POOL_WINDOW_H
#include "flaot/kernel.h"

typedef struct fl_plane { /* a rank 3 to 5 tensor with its spatial axes right-aligned to three */
  int64_t n, c, ns, cs;
  int32_t d[3];
  int64_t s[3];
} fl_plane;

static inline fl_plane fl_plane_of(const fl_tensor *t) {
  fl_plane a = {t->dims[0], t->dims[1], t->strides[0], t->strides[1], {1, 1, 1}, {0, 0, 0}};
  for (unsigned i = 2, k = 5u - t->rank; i < t->rank; i++, k++) a.d[k] = t->dims[i], a.s[k] = t->strides[i];
  return a;
}

/* Taps first..last-1 of the window at output position o lie inside the input. */
typedef struct fl_taps { int64_t at; int32_t first, last; } fl_taps; /* at: input position of tap 0, may be negative */

static inline fl_taps fl_taps_of(int64_t o, int32_t stride, int32_t begin, int32_t kernel, int32_t dilation, int32_t size) {
  int64_t at = o * stride - begin;
  int64_t first = at < 0 ? -at : 0, last = at < size ? size - at : 0;
  if (dilation > 1) first = (first + dilation - 1) / dilation, last = (last + dilation - 1) / dilation;
  if (last > kernel) last = kernel;
  if (first > last) first = last;
  fl_taps t = {at, (int32_t)first, (int32_t)last};
  return t;
}

/* Taps of the window that lie inside the input and its padding. */
static inline int32_t fl_taps_padded(int64_t at, int32_t kernel, int32_t dilation, int32_t size, int32_t end) {
  int64_t room = (int64_t)size + end - at, n = room <= 0 ? 0 : (room - 1) / dilation + 1;
  return (int32_t)(n > kernel ? kernel : n);
}

static inline bool fl_window_ok(const int32_t *kernel, const int32_t *stride, const int32_t *dilation, const int32_t *begin, const int32_t *end) {
  for (int i = 0; i < 3; i++)
    if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1 || begin[i] < 0 || end[i] < 0) return false;
  return true;
}
#endif
