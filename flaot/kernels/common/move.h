/* Runs of elements moved by size, and reading of index tensors. */
#ifndef FLAOT_KERNELS_MOVE_H
#define FLAOT_KERNELS_MOVE_H
#include "flaot/kernel.h"

#define FL_MOVE(T)                                                                                         \
  do {                                                                                                     \
    const T *x = from;                                                                                     \
    T *y = to;                                                                                             \
    if (xs == 1 && ys == 1) for (int64_t i = 0; i < n; i++) y[i] = x[i];                                   \
    else if (xs == 0 && ys == 1) for (T v = *x, *e = y + n; y < e; y++) *y = v;                            \
    else for (int64_t i = 0; i < n; i++) y[i * ys] = x[i * xs];                                            \
  } while (0)

/* y[i ys] = x[i xs] for n > 0 elements of `size` bytes; the runs do not overlap. */
static inline void fl_move(void *to, int64_t ys, const void *from, int64_t xs, int64_t n, int64_t size) {
  switch (size) {
  case 1: FL_MOVE(uint8_t); break;
  case 2: FL_MOVE(uint16_t); break;
  case 4: FL_MOVE(uint32_t); break;
  default: FL_MOVE(uint64_t);
  }
}

static inline bool fl_is_index(const fl_tensor *t) { return t->dtype == FL_I32 || t->dtype == FL_I64; }

/* Element i of a dense index tensor, counted from the end when negative; -1 when outside an axis of n. */
static inline int64_t fl_index(const fl_tensor *t, const void *p, int64_t i, int64_t n) {
  int64_t k = t->dtype == FL_I64 ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
  if (k < 0 && k >= -n) k += n;
  return k >= 0 && k < n ? k : -1;
}

#endif
