/* The one dense micro-kernel: a strip of pixels times a panel of output channels, summed over taps and input channels.
   MR pixels x NV vectors stay in registers: 4 x 3 or 6 x 2 with 16 registers (AVX2), 6 x 4 or 8 x 3 with 32 (AVX-512).
   One call per strip, not per tile: with 16 input channels call and arguments cost as much as the products. */
#ifndef FLAOT_CONV_VEC_STRIP_H
#define FLAOT_CONV_VEC_STRIP_H
#include <stdbool.h>
#include "common/simd.h"
#include "conv/image.h"

/* Lines of the next strip's weights fetched per four products: hardware prefetch stops at 4 KiB pages, and a panel read only
   when its turn comes stalls the first tile. */
enum { STRIP_LINES = 4 };

typedef struct strip {
  const float *const *rows; /* rows[t * rstride + i] + coff: input channels of pixel i under tap t */
  int64_t rstride, coff, taps, run;
  const int64_t *offsets;   /* null, or what takes the place of coff, tap by tap */
  const float *w;           /* [tap][channel][NV vectors]; wtap floats from tap to tap */
  int64_t wtap;
  const float *bias;        /* null: add to what y holds */
  const float *res;         /* null: none; read with the bias */
  float *y;
  const int64_t *ypix, *rpix;
  float lo, hi;
  bool clamp;
  const float *next;        /* weights of the next strip, `ahead` floats, to be fetched while this one is computed; null: none */
  int64_t ahead;
  int tail;                 /* lanes of the last vector that exist in y */
} strip;

FL_INLINE void strip_step(const int MR, const int NV, vf c[][4], const float *const *a, int64_t k, const float *b) {
  vf bv[4];
  FL_UNROLL for (int j = 0; j < NV; j++) bv[j] = v_load(b + j * FL_VL);
  FL_UNROLL for (int i = 0; i < MR; i++) {
    vf x;
    FL_BROADCAST(x, a[i] + k);
    FL_UNROLL for (int j = 0; j < NV; j++) FL_FMA(c[i][j], bv[j], x);
  }
  FL_FENCE;
}

FL_INLINE void strip_sum(const int MR, const int NV, const strip *t, int64_t p, vf c[][4]) {
  const float *w = t->w;
  int64_t fetched = p / MR * (t->taps * (t->run / 4)) * (16 * STRIP_LINES), stride = t->next && fetched < t->ahead ? 16 * STRIP_LINES : 0;
  const float *far = stride ? t->next + fetched : t->w;
  FL_NO_UNROLL for (int64_t q = 0; q < t->taps; q++, w += t->wtap) {
    const float *a[8], *b = w;
    int64_t k = 0, n = t->run, whole = n >= 12 ? n - 3 : 0, offset = t->offsets ? t->offsets[q] : t->coff;
    FL_UNROLL for (int i = 0; i < MR; i++) a[i] = t->rows[q * t->rstride + p + i] + offset;
    FL_NO_UNROLL for (; k < whole; k += 4, b += 4 * NV * FL_VL, far += stride) {
      FL_UNROLL for (int l = 0; l < STRIP_LINES; l++) __builtin_prefetch(far + 16 * l, 0, 2);
      FL_UNROLL for (int u = 0; u < 4; u++) strip_step(MR, NV, c, a, k + u, b + u * NV * FL_VL);
    }
    FL_NO_UNROLL for (; k < n; k++, b += NV * FL_VL) strip_step(MR, NV, c, a, k, b);
  }
}

FL_INLINE vf strip_get(const float *p, bool partial, int tail) { return partial ? v_load_n(p, tail) : v_load(p); }

FL_INLINE void strip_start(const int MR, const int NV, const strip *t, const int64_t *yp, const int64_t *rp, vf c[][4]) {
  FL_UNROLL for (int i = 0; i < MR; i++)
    FL_UNROLL for (int j = 0; j < NV; j++) {
      const bool last = j == NV - 1;
      c[i][j] = t->bias ? v_load(t->bias + j * FL_VL) : strip_get(t->y + yp[i] + j * FL_VL, last && t->tail < FL_VL, t->tail);
    }
  if (t->res)
    FL_UNROLL for (int i = 0; i < MR; i++)
      FL_UNROLL for (int j = 0; j < NV; j++)
        c[i][j] += strip_get(t->res + rp[i] + j * FL_VL, j == NV - 1 && t->tail < FL_VL, t->tail);
}

FL_INLINE void strip_end(const int MR, const int NV, const strip *t, const int64_t *yp, vf c[][4]) {
  if (t->clamp) {
    vf lo = v_set(t->lo), hi = v_set(t->hi);
    FL_UNROLL for (int i = 0; i < MR; i++) FL_UNROLL for (int j = 0; j < NV; j++) c[i][j] = v_clamp(c[i][j], lo, hi);
  }
  FL_UNROLL for (int i = 0; i < MR; i++) FL_UNROLL for (int j = 0; j < NV - 1; j++) v_store(t->y + yp[i] + j * FL_VL, c[i][j]);
  if (t->tail == FL_VL)
    FL_UNROLL for (int i = 0; i < MR; i++) v_store(t->y + yp[i] + (NV - 1) * FL_VL, c[i][NV - 1]);
  else
    FL_UNROLL for (int i = 0; i < MR; i++) v_store_n(t->y + yp[i] + (NV - 1) * FL_VL, c[i][NV - 1], t->tail);
}

/* pixels i0..i1-1, a multiple of MR of them */
FL_INLINE void strip_run(const int MR, const int NV, const strip *t, int64_t i0, int64_t i1) {
  FL_NO_UNROLL for (int64_t p = i0; p < i1; p += MR) {
    vf c[8][4];
    strip_start(MR, NV, t, t->ypix + p, t->rpix + p, c);
    strip_sum(MR, NV, t, p, c);
    strip_end(MR, NV, t, t->ypix + p, c);
  }
}

typedef void strip_fn(const strip *, int64_t, int64_t);
#define FL_STRIP(M, N) \
  FL_NOINLINE void strip_##M##_##N(const strip *t, int64_t i0, int64_t i1) { strip_run(M, N, t, i0, i1); }
#define FL_STRIPS4(N) FL_STRIP(1, N) FL_STRIP(2, N) FL_STRIP(3, N) FL_STRIP(4, N)
FL_STRIPS4(1) FL_STRIP(5, 1) FL_STRIP(6, 1) FL_STRIP(7, 1) FL_STRIP(8, 1)
FL_STRIPS4(2) FL_STRIP(5, 2) FL_STRIP(6, 2)
FL_STRIPS4(3)
#if FL_VL == 16
FL_STRIP(7, 2) FL_STRIP(8, 2)
FL_STRIP(5, 3) FL_STRIP(6, 3) FL_STRIP(7, 3) FL_STRIP(8, 3)
FL_STRIPS4(4) FL_STRIP(5, 4) FL_STRIP(6, 4)
static const int strip_height[5] = {0, 8, 8, 8, 6};
static strip_fn *const strip_table[5][9] = {
  {0},
  {0, strip_1_1, strip_2_1, strip_3_1, strip_4_1, strip_5_1, strip_6_1, strip_7_1, strip_8_1},
  {0, strip_1_2, strip_2_2, strip_3_2, strip_4_2, strip_5_2, strip_6_2, strip_7_2, strip_8_2},
  {0, strip_1_3, strip_2_3, strip_3_3, strip_4_3, strip_5_3, strip_6_3, strip_7_3, strip_8_3},
  {0, strip_1_4, strip_2_4, strip_3_4, strip_4_4, strip_5_4, strip_6_4},
};
#else
static const int strip_height[4] = {0, 8, 6, 4};
static strip_fn *const strip_table[4][9] = {
  {0},
  {0, strip_1_1, strip_2_1, strip_3_1, strip_4_1, strip_5_1, strip_6_1, strip_7_1, strip_8_1},
  {0, strip_1_2, strip_2_2, strip_3_2, strip_4_2, strip_5_2, strip_6_2},
  {0, strip_1_3, strip_2_3, strip_3_3, strip_4_3},
};
#endif

/* n pixels in tiles of nearly equal height: 49 = 8 x 6 + 1 would cost as much as 54. */
static inline void strip_all(int vectors, const strip *t, int64_t n) {
  int64_t tiles = (n + strip_height[vectors] - 1) / strip_height[vectors], low = n / tiles, tall = n % tiles;
  if (tall) strip_table[vectors][low + 1](t, 0, tall * (low + 1));
  if (tall < tiles) strip_table[vectors][low](t, tall * (low + 1), n);
}

/* First vector of panel number `index`. */
static int64_t panel_start(int64_t vectors, int64_t index) {
  int64_t v = 0;
  for (; index > 0 && v < vectors; index--) v += panel_vectors(FL_VL, vectors - v);
  return v;
}

static int64_t panel_count(int64_t vectors) {
  int64_t n = 0;
  for (int64_t v = 0; v < vectors; n++) v += panel_vectors(FL_VL, vectors - v);
  return n;
}

#endif
