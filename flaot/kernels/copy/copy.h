/* The walk of the copy kernel. The last two axes are a block of `nj` rows of `ni` elements; the other axes are an odometer. */
#ifndef FLAOT_KERNELS_COPY_H
#define FLAOT_KERNELS_COPY_H
#include "flaot/kernel.h"

typedef struct copy_2d {
  int64_t nj, xj, yj; /* rows: count, strides in elements */
  int64_t ni, xi, yi; /* columns */
} copy_2d;

typedef void (*fl_copy_block)(const void *x, void *y, const copy_2d *b);

enum { COPY_TILE = 16 };

/* Rows of contiguous elements, a transposed block in tiles, or anything else. */
#define COPY_BLOCK(NAME, T)                                                                       \
  static inline void NAME(const void *x_, void *y_, const copy_2d *b) {                           \
    const T *x = x_;                                                                              \
    T *y = y_;                                                                                    \
    int64_t tile = b->xj == 1 && b->xi != 1 ? COPY_TILE : b->ni;                                  \
    for (int64_t i0 = 0; i0 < b->ni; i0 += tile) {                                                \
      int64_t n = b->ni - i0 < tile ? b->ni - i0 : tile;                                          \
      for (int64_t j = 0; j < b->nj; j++) {                                                       \
        const T *from = x + j * b->xj + i0 * b->xi;                                               \
        T *to = y + j * b->yj + i0 * b->yi;                                                       \
        if (b->xi == 1 && b->yi == 1)                                                             \
          for (int64_t i = 0; i < n; i++) to[i] = from[i];                                        \
        else                                                                                      \
          for (int64_t i = 0; i < n; i++) to[i * b->yi] = from[i * b->xi];                        \
      }                                                                                           \
    }                                                                                             \
  }

COPY_BLOCK(copy_1, uint8_t)
COPY_BLOCK(copy_2, uint16_t)
COPY_BLOCK(copy_4, uint32_t)
COPY_BLOCK(copy_8, uint64_t)

/* One part: rows [first, last) of all rows, where consecutive rows of one odometer position form a block. */
static inline fl_status fl_copy_run(const fl_call *c, const fl_copy_block blocks[9]) {
  const fl_tensor *x = c->t[0], *y = c->t[1];
  int64_t size = (int64_t)fl_dtype_size(x->dtype);
  unsigned rank = x->rank;
  copy_2d b = {1, 0, 0, 1, 1, 1};
  if (fl_elements(x) == 0) return FL_OK;
  if (rank > 0) b.ni = x->dims[rank - 1], b.xi = x->strides[rank - 1], b.yi = y->strides[rank - 1];
  if (rank > 1) b.nj = x->dims[rank - 2], b.xj = x->strides[rank - 2], b.yj = y->strides[rank - 2];
  if (rank == 1) { /* split the one row itself */
    int64_t first = fl_split(b.ni, c->part, c->parts);
    b.ni = fl_split(b.ni, c->part + 1, c->parts) - first;
    blocks[size]((const char *)c->p[0] + first * b.xi * size, (char *)c->p[1] + first * b.yi * size, &b);
    return FL_OK;
  }
  int64_t nj = b.nj, rows = fl_elements(x) / b.ni;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r += b.nj) {
    int64_t j = r % nj, rest = r / nj, xo = j * b.xj, yo = j * b.yj;
    b.nj = nj - j < end - r ? nj - j : end - r;
    for (unsigned a = rank < 2 ? 0 : rank - 2; a-- > 0; rest /= x->dims[a]) {
      int64_t k = rest % x->dims[a];
      xo += k * x->strides[a], yo += k * y->strides[a];
    }
    blocks[size]((const char *)c->p[0] + xo * size, (char *)c->p[1] + yo * size, &b);
  }
  return FL_OK;
}

#endif
