/* What the vector kernels see of their operands: images of channel vectors, channels one float apart. */
#ifndef FLAOT_CONV_IMAGE_H
#define FLAOT_CONV_IMAGE_H
#include "flaot/kernel.h"

typedef struct image { int64_t n, c, h, w, sn, sc, sh, sw; } image; /* sizes, and floats from one index to the next */

/* A rank 3 tensor is an image of height 1. */
static inline image image_of(const fl_tensor *t) {
  unsigned last = t->rank - 1u;
  image i = {t->dims[0], t->dims[1], 1, t->dims[last], t->strides[0], t->strides[1], 0, t->strides[last]};
  if (t->rank == 4) i.h = t->dims[2], i.sh = t->strides[2];
  return i;
}

static inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Output channels are cut into panels of up to 4 (16 lanes) or 3 (8 lanes) vectors; the width of the next panel
   when `left` vectors remain. Chosen so that no thin panel is left over. */
static inline int panel_vectors(int vl, int64_t left) {
  if (vl == 16) return left >= 7 || left == 4 ? 4 : left >= 5 ? 3 : (int)left;
  return left == 4 ? 2 : left >= 3 ? 3 : (int)left;
}

/* Scratch of conv_gemm: a zero for every channel of a pixel, then row pointers, offsets and coordinates of up to mc pixels. */
static inline int64_t gemm_scratch(int64_t channels, int64_t taps, int64_t mc) {
  return round_up(channels, 16) * 4 + taps * mc * 8 + mc * (8 + 8 + 8 + 4 + 4);
}

/* Input columns of a depthwise tile (4 pixels of one row) times rows, the most pointers its edge table holds. */
static inline int64_t dw_columns(const int32_t *ksize, const int32_t *strides) {
  return ksize[0] * (3 * (int64_t)strides[1] + ksize[1]);
}

/* Scratch of conv_dw: zeros for every channel, the edge table, offsets of a row's pixels. */
static inline int64_t dw_scratch(int64_t channels, const int32_t *ksize, const int32_t *strides, int64_t width) {
  return round_up(channels, 16) * 4 + dw_columns(ksize, strides) * 8 + width * 8;
}

/* Scratch of conv_wino: zeros (for every channel, and for the widest panel), V and M of `tiles` tiles, tables of tiles. */
static inline int64_t wino_zeros(int64_t channels) { return channels > 64 ? round_up(channels, 16) : 64; }

static inline int64_t wino_scratch(int64_t in, int64_t out, int64_t m, int64_t tiles, int64_t vl) {
  int64_t plane = tiles * (round_up(in, vl) + round_up(out, vl)) + 32;
  return (wino_zeros(in) + (m + 2) * (m + 2) * plane) * 4 + tiles * 16;
}

/* Input rows a band of output rows reads. */
static inline int64_t stem_rows(const int32_t *ksize, const int32_t *strides, const int32_t *dilations, int64_t band) {
  return (band - 1) * strides[0] + (ksize[0] - 1) * (int64_t)dilations[0] + 1;
}

/* Scratch of conv_stem: tables of a band's pixels and of taps, the copied rows; `columns` with padding. */
static inline int64_t stem_scratch(int64_t channels, int64_t height, int64_t rows, int64_t columns, int64_t pixels) {
  return pixels * 16 + channels * height * 8 + channels * rows * columns * 4;
}

#endif
