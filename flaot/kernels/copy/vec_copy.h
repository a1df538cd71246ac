/* The copy kernel on vectors: long rows by memcpy, 4-byte transposes in 16 x 16 tiles of four 8 x 8 register blocks (a tile reads and
   writes whole cache lines), every other element by shuffles. AVX-512 gains nothing over AVX2 here. */
#ifndef FLAOT_KERNELS_VEC_COPY_H
#define FLAOT_KERNELS_VEC_COPY_H
#define FL_VL 8
#include "common/simd.h"
#include "copy/copy.h"

enum { LONG_ROW = 256 }; /* bytes from which a call of memcpy pays */

FL_INLINE void transpose_8(__m256 r[8]) {
  __m256 a[8], b[8];
  FL_UNROLL for (int i = 0; i < 8; i += 2) a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]), a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  FL_UNROLL for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44), b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xEE);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44), b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
  }
  FL_UNROLL for (int i = 0; i < 4; i++) {
    r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

/* y[j yj + i] = x[i xi + j] for i, j below 8. */
FL_INLINE void block_8(const float *x, int64_t xi, float *y, int64_t yj) {
  __m256 r[8];
  FL_UNROLL for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(x + i * xi);
  transpose_8(r);
  FL_UNROLL for (int j = 0; j < 8; j++) _mm256_storeu_ps(y + j * yj, r[j]);
}

/* The same for i < ni <= 8, j < nj <= 8. */
FL_NOINLINE void block_rest(const float *x, int64_t xi, float *y, int64_t yj, int ni, int nj) {
  __m256 r[8];
  FL_UNROLL for (int i = 0; i < 8; i++) r[i] = i < ni ? (__m256)v_load_n(x + i * xi, nj) : _mm256_setzero_ps();
  transpose_8(r);
  FL_UNROLL for (int j = 0; j < 8; j++)
    if (j < nj) v_store_n(y + j * yj, (vf)r[j], ni);
}

FL_NOINLINE void tile_16(const float *x, int64_t xi, float *y, int64_t yj) {
  block_8(x, xi, y, yj);
  block_8(x + 8 * xi, xi, y + 8, yj);
  block_8(x + 8, xi, y + 8 * yj, yj);
  block_8(x + 8 + 8 * xi, xi, y + 8 + 8 * yj, yj);
}

static void tile_rest(const float *x, int64_t xi, float *y, int64_t yj, int64_t ni, int64_t nj) {
  for (int64_t i = 0; i < ni; i += 8)
    for (int64_t j = 0; j < nj; j += 8)
      block_rest(x + i * xi + j, xi, y + j * yj + i, yj, (int)(ni - i < 8 ? ni - i : 8), (int)(nj - j < 8 ? nj - j : 8));
}

static void transpose_4(const float *x, float *y, const copy_2d *b) {
  for (int64_t i = 0; i < b->ni; i += 16)
    for (int64_t j = 0; j < b->nj; j += 16) {
      const float *from = x + i * b->xi + j;
      float *to = y + j * b->yj + i;
      int64_t ni = b->ni - i < 16 ? b->ni - i : 16, nj = b->nj - j < 16 ? b->nj - j : 16;
      if (ni == 16 && nj == 16) tile_16(from, b->xi, to, b->yj);
      else tile_rest(from, b->xi, to, b->yj, ni, nj);
    }
}

#define VEC_COPY(NAME, PLAIN, T)                                                                       \
  static void NAME(const void *x, void *y, const copy_2d *b) {                                         \
    if (b->xi != 1 || b->yi != 1 || b->ni * (int64_t)sizeof(T) < LONG_ROW) { PLAIN(x, y, b); return; } \
    for (int64_t j = 0; j < b->nj; j++)                                                                \
      __builtin_memcpy((T *)y + j * b->yj, (const T *)x + j * b->xj, (size_t)b->ni * sizeof(T));       \
  }
VEC_COPY(vec_copy_1, copy_1, uint8_t)
VEC_COPY(vec_copy_2, copy_2, uint16_t)
VEC_COPY(vec_rows_4, copy_4, uint32_t)
VEC_COPY(vec_copy_8, copy_8, uint64_t)

/* Every other element. A step loads one element past the last it keeps, so the last eight are left to the loop. */
static void every_other(const float *x, float *y, int64_t n) {
  int64_t i = 0;
  for (; i + 8 < n; i += 8) {
    __m256 even = _mm256_shuffle_ps(_mm256_loadu_ps(x + 2 * i), _mm256_loadu_ps(x + 2 * i + 8), 0x88);
    _mm256_storeu_ps(y + i, _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(even), 0xD8)));
  }
  for (; i < n; i++) y[i] = x[2 * i];
}

static void vec_copy_4(const void *x, void *y, const copy_2d *b) {
  if (b->xj == 1 && b->yi == 1 && b->xi != 1) transpose_4(x, y, b);
  else if (b->xi == 2 && b->yi == 1)
    for (int64_t j = 0; j < b->nj; j++) every_other((const float *)x + j * b->xj, (float *)y + j * b->yj, b->ni);
  else vec_rows_4(x, y, b);
}

static fl_status vec_copy(const fl_call *c) {
  static const fl_copy_block blocks[9] = {[1] = vec_copy_1, [2] = vec_copy_2, [4] = vec_copy_4, [8] = vec_copy_8};
  return fl_copy_run(c, blocks);
}

#endif
