/* The micro-kernel of matrix products: y[MR][NV vectors] (+)= sum over k of a[i * ars + k * aks] * b[k * ldb + j].
   MR x NV accumulators stay in registers: 4 x 3 or 6 x 2 with 16 registers (AVX2), 12 x 2 or 8 x 3 with 32 (AVX-512).
   Tiles too small to hide the latency of an FMA sum PH steps of k side by side. One call per strip of tiles, not per tile. */
#ifndef FLAOT_MATMUL_VEC_TILE_H
#define FLAOT_MATMUL_VEC_TILE_H
#include <stdbool.h>
#include "common/simd.h"

typedef struct strip {
  const float *a;
  int64_t ars, aks, depth;
  const float *b;
  int64_t ldb;
  const float *bias, *res; /* null: none; read at the start */
  float *y;
  int64_t ldy, ldr;
  bool more;               /* y holds a partial sum to add to */
  bool clamp;
  float lo, hi;
  int tail;                /* lanes of the last vector that exist in y */
  const float *next;       /* weights of the next strip, fetched ahead in equal parts */
  int64_t ahead;           /* floats per tile */
} strip;

FL_INLINE void tile_step(const int MR, const int NV, vf c[][4], const float *const *a, int64_t ars, const float *b) {
  vf bv[4];
  FL_UNROLL for (int j = 0; j < NV; j++) bv[j] = v_load(b + j * FL_VL);
  FL_UNROLL for (int i = 0; i < MR; i++) {
    vf x;
    FL_BROADCAST(x, a[i / 3] + i % 3 * ars);
    FL_UNROLL for (int j = 0; j < NV; j++) FL_FMA(c[i][j], bv[j], x);
  }
  FL_FENCE;
}

FL_INLINE void tile_sum(const int MR, const int NV, const int PH, const strip *t, int64_t row, vf c[][4]) {
  const float *a[4], *b = t->b;
  const int64_t ars = t->ars, aks = t->aks, ldb = t->ldb, depth = t->depth;
  vf d[7][2][4];
  int64_t k = 0;
  FL_UNROLL for (int g = 0; g < (MR + 2) / 3; g++) a[g] = t->a + (row + 3 * g) * ars;
  FL_UNROLL for (int u = 1; u < PH; u++)
    FL_UNROLL for (int i = 0; i < MR; i++) FL_UNROLL for (int j = 0; j < NV; j++) d[u - 1][i][j] = (vf){0};
  FL_NO_UNROLL for (; k + (PH > 1 ? PH : 2) <= depth; k += PH > 1 ? PH : 2) {
    FL_UNROLL for (int u = 0; u < (PH > 1 ? PH : 2); u++) {
      tile_step(MR, NV, PH > 1 && u ? d[u - 1] : c, a, ars, b);
      if (MR <= 2) FL_UNROLL for (int l = 0; l < NV * FL_VL; l += 16) __builtin_prefetch(b + l + 512, 0, 3); /* across page borders */
      FL_UNROLL for (int g = 0; g < (MR + 2) / 3; g++) a[g] += aks;
      b += ldb;
    }
  }
  FL_NO_UNROLL for (; k < depth; k++) {
    tile_step(MR, NV, c, a, ars, b);
    FL_UNROLL for (int g = 0; g < (MR + 2) / 3; g++) a[g] += aks;
    b += ldb;
  }
  FL_UNROLL for (int u = 1; u < PH; u++)
    FL_UNROLL for (int i = 0; i < MR; i++) FL_UNROLL for (int j = 0; j < NV; j++) c[i][j] += d[u - 1][i][j];
}

FL_INLINE vf tile_get(const float *p, bool partial, int tail) { return partial ? v_load_n(p, tail) : v_load(p); }

FL_INLINE void tile_start(const int MR, const int NV, const strip *t, int64_t row, vf c[][4]) {
  const bool part = t->tail < FL_VL;
  FL_UNROLL for (int i = 0; i < MR; i++)
    FL_UNROLL for (int j = 0; j < NV; j++)
      c[i][j] = t->more ? tile_get(t->y + (row + i) * t->ldy + j * FL_VL, part && j == NV - 1, t->tail)
                        : t->bias ? v_load(t->bias + j * FL_VL) : (vf){0};
  if (t->res)
    FL_UNROLL for (int i = 0; i < MR; i++)
      FL_UNROLL for (int j = 0; j < NV; j++) c[i][j] += tile_get(t->res + (row + i) * t->ldr + j * FL_VL, part && j == NV - 1, t->tail);
}

FL_INLINE void tile_end(const int MR, const int NV, const strip *t, int64_t row, vf c[][4]) {
  if (t->clamp) {
    vf lo = v_set(t->lo), hi = v_set(t->hi);
    FL_UNROLL for (int i = 0; i < MR; i++) FL_UNROLL for (int j = 0; j < NV; j++) c[i][j] = v_clamp(c[i][j], lo, hi);
  }
  float *y = t->y + row * t->ldy;
  FL_UNROLL for (int i = 0; i < MR; i++) FL_UNROLL for (int j = 0; j < NV - 1; j++) v_store(y + i * t->ldy + j * FL_VL, c[i][j]);
  y += (NV - 1) * FL_VL;
  if (t->tail == FL_VL)
    FL_UNROLL for (int i = 0; i < MR; i++) v_store(y + i * t->ldy, c[i][NV - 1]);
  else
    FL_UNROLL for (int i = 0; i < MR; i++) v_store_n(y + i * t->ldy, c[i][NV - 1], t->tail);
}

/* Rows i0..i1-1, a multiple of MR of them. */
FL_INLINE void strip_run(const int MR, const int NV, const int PH, const strip *t, int64_t i0, int64_t i1) {
  FL_NO_UNROLL for (int64_t row = i0; row < i1; row += MR) {
    vf c[12][4];
    const float *ahead = t->next + row / MR * t->ahead;
    FL_NO_UNROLL for (int64_t l = 0; l < t->ahead; l += 16) __builtin_prefetch(ahead + l, 0, 2);
    tile_start(MR, NV, t, row, c);
    tile_sum(MR, NV, PH, t, row, c);
    tile_end(MR, NV, t, row, c);
  }
}

typedef void strip_fn(const strip *, int64_t, int64_t);
#define FL_STRIP(M, N, PH) \
  FL_NOINLINE void strip_##M##_##N(const strip *t, int64_t i0, int64_t i1) { strip_run(M, N, PH, t, i0, i1); }
FL_STRIP(1, 1, 8) FL_STRIP(2, 1, 4) FL_STRIP(3, 1, 1) FL_STRIP(4, 1, 1) FL_STRIP(5, 1, 1) FL_STRIP(6, 1, 1)
FL_STRIP(7, 1, 1) FL_STRIP(8, 1, 1)
FL_STRIP(1, 2, 4) FL_STRIP(2, 2, 2) FL_STRIP(3, 2, 1) FL_STRIP(4, 2, 1) FL_STRIP(5, 2, 1) FL_STRIP(6, 2, 1)
FL_STRIP(1, 3, 3) FL_STRIP(2, 3, 1) FL_STRIP(3, 3, 1) FL_STRIP(4, 3, 1)
FL_STRIP(1, 4, 2) FL_STRIP(2, 4, 1)
#if FL_VL == 16
FL_STRIP(9, 1, 1) FL_STRIP(10, 1, 1) FL_STRIP(11, 1, 1) FL_STRIP(12, 1, 1)
FL_STRIP(7, 2, 1) FL_STRIP(8, 2, 1) FL_STRIP(9, 2, 1) FL_STRIP(10, 2, 1) FL_STRIP(11, 2, 1) FL_STRIP(12, 2, 1)
FL_STRIP(5, 3, 1) FL_STRIP(6, 3, 1) FL_STRIP(7, 3, 1) FL_STRIP(8, 3, 1)
FL_STRIP(3, 4, 1) FL_STRIP(4, 4, 1) FL_STRIP(5, 4, 1) FL_STRIP(6, 4, 1)
static const int strip_height[5] = {0, 12, 12, 8, 6};
static strip_fn *const strip_table[5][13] = {
  {0},
  {0, strip_1_1, strip_2_1, strip_3_1, strip_4_1, strip_5_1, strip_6_1, strip_7_1, strip_8_1, strip_9_1, strip_10_1, strip_11_1, strip_12_1},
  {0, strip_1_2, strip_2_2, strip_3_2, strip_4_2, strip_5_2, strip_6_2, strip_7_2, strip_8_2, strip_9_2, strip_10_2, strip_11_2, strip_12_2},
  {0, strip_1_3, strip_2_3, strip_3_3, strip_4_3, strip_5_3, strip_6_3, strip_7_3, strip_8_3},
  {0, strip_1_4, strip_2_4, strip_3_4, strip_4_4, strip_5_4, strip_6_4},
};
#else
static const int strip_height[5] = {0, 8, 6, 4, 2};
static strip_fn *const strip_table[5][9] = {
  {0},
  {0, strip_1_1, strip_2_1, strip_3_1, strip_4_1, strip_5_1, strip_6_1, strip_7_1, strip_8_1},
  {0, strip_1_2, strip_2_2, strip_3_2, strip_4_2, strip_5_2, strip_6_2},
  {0, strip_1_3, strip_2_3, strip_3_3, strip_4_3},
  {0, strip_1_4, strip_2_4},
};
#endif

/* n rows in tiles of nearly equal height: 49 = 8 x 6 + 1 would cost as much as 54. `ahead` of t is that of all tiles. */
static inline void strip_all(const int vectors, strip *t, int64_t n) {
  int64_t tiles = (n + strip_height[vectors] - 1) / strip_height[vectors], low = n / tiles, tall = n % tiles;
  t->ahead = (t->ahead / tiles + 15) / 16 * 16;
  if (tall) strip_table[vectors][low + 1](t, 0, tall * (low + 1));
  if (tall < tiles) strip_table[vectors][low](t, tall * (low + 1), n);
}

#endif
