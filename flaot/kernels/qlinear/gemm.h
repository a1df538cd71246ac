/* What the checks and the vector kernels of conv_gemm_s8 share: sizes of a convolution seen as a product of pixels and weights. */
#ifndef FLAOT_KERNELS_QLINEAR_GEMM_H
#define FLAOT_KERNELS_QLINEAR_GEMM_H
#include "gen/params.h"
#include "pool/window.h"
#include "qlinear/requantize.h"

enum { GX, GW, GZX, GSX, GSW, GSY, GZY, GBIAS };
enum { FL_S8_ROWS = 24 }; /* pixels per block */

typedef struct fl_s8 {
  int64_t depth, padded, columns; /* products per output, rounded up to even; output channels per group rounded up to vectors */
} fl_s8;

static inline fl_s8 fl_s8_of(const fl_conv_gemm_s8_params *p, const fl_tensor *x, const fl_tensor *y) {
  int64_t depth = (int64_t)p->taps[0] * p->taps[1] * p->taps[2] * (x->dims[1] / p->group);
  int64_t per = y->dims[1] / p->group;
  fl_s8 s = {depth, (depth + 1) / 2 * 2, (per + p->vl - 1) / p->vl * p->vl};
  return s;
}

/* Scratch: pixels as int16 [rows][padded], sums as int32 [rows][columns], scales as float [columns]. */
static inline int64_t fl_s8_scratch(const fl_s8 *s) { return FL_S8_ROWS * (s->padded * 2 + s->columns * 4) + s->columns * 4; }
#endif
