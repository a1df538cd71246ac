#include "npu_sim/csrc/fast/planes.h"
#include <immintrin.h>
#include <string.h>

#define FL_INLINE static inline __attribute__((always_inline))

/* How numbers are narrowed: by an instruction where one rounds that way, else by the portable code. */
enum { EVEN, FLOOR, ZERO, ANY, BFLOAT };

typedef struct how {
  fl_narrowing r;
  bool flush;
} how;

FL_INLINE __m256 widen8(const bool bfloat, __m128i h) {
  if (!bfloat) return _mm256_cvtph_ps(h);
  __m256i u = _mm256_cvtepu16_epi32(h), magnitude = _mm256_and_si256(u, _mm256_set1_epi32(0x7FFF));
  __m256i quiet = _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F80)), _mm256_set1_epi32(0x400000));
  return _mm256_castsi256_ps(_mm256_or_si256(_mm256_slli_epi32(u, 16), quiet));
}

FL_INLINE __m128i flushed(__m128i h) {
  __m128i normal = _mm_cmpgt_epi16(_mm_and_si128(h, _mm_set1_epi16(0x7FFF)), _mm_set1_epi16(0x3FF));
  return _mm_and_si128(h, _mm_or_si128(normal, _mm_set1_epi16(INT16_MIN)));
}

FL_INLINE __m128i narrow8(const int kind, const how *w, __m256 x) {
  if (kind <= ZERO) {
    __m128i h = kind == EVEN ? _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT) : kind == FLOOR ? _mm256_cvtps_ph(x, _MM_FROUND_TO_NEG_INF)
                                                                                            : _mm256_cvtps_ph(x, _MM_FROUND_TO_ZERO);
    return w->flush ? flushed(h) : h;
  }
  float from[8];
  uint16_t to[8];
  _mm256_storeu_ps(from, x);
  for (int i = 0; i < 8; i++) to[i] = kind == BFLOAT ? fl_float_to_bfloat(from[i], w->r) : fl_float_to_half(from[i], w->r);
  return _mm_loadu_si128((const __m128i *)to);
}

FL_INLINE void transpose8(__m128i r[8]) {
  __m128i a[8], b[8];
  for (int i = 0; i < 4; i++) a[2 * i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]), a[2 * i + 1] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      b[4 * i + 2 * j] = _mm_unpacklo_epi32(a[4 * i + j], a[4 * i + 2 + j]);
      b[4 * i + 2 * j + 1] = _mm_unpackhi_epi32(a[4 * i + j], a[4 * i + 2 + j]);
    }
  for (int i = 0; i < 4; i++) r[2 * i] = _mm_unpacklo_epi64(b[i], b[4 + i]), r[2 * i + 1] = _mm_unpackhi_epi64(b[i], b[4 + i]);
}

FL_INLINE __m128i load_n(const uint16_t *x, int64_t n) {
  uint16_t t[8] = {0};
  memcpy(t, x, (size_t)n * sizeof *t);
  return _mm_loadu_si128((const __m128i *)t);
}

FL_INLINE void store_n(uint16_t *y, __m128i h, int64_t n) {
  uint64_t low = (uint64_t)_mm_cvtsi128_si64(h);
  if (n & 4) memcpy(y, &low, 8), y += 4, low = (uint64_t)_mm_extract_epi64(h, 1);
  uint32_t two = (uint32_t)low;
  uint16_t one = (uint16_t)low;
  if (n & 2) memcpy(y, &two, 4), y += 2, one = (uint16_t)(low >> 32);
  if (n & 1) *y = one;
}

FL_INLINE void widen_row(const bool bfloat, const uint16_t *x, float *y, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, widen8(bfloat, _mm_loadu_si128((const __m128i *)(x + i))));
  if (i == n) return;
  float t[8];
  _mm256_storeu_ps(t, widen8(bfloat, load_n(x + i, n - i)));
  memcpy(y + i, t, (size_t)(n - i) * sizeof *t);
}

FL_INLINE void narrow_row(const int kind, const how *w, const float *x, uint16_t *y, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm_storeu_si128((__m128i *)(y + i), narrow8(kind, w, _mm256_loadu_ps(x + i)));
  if (i == n) return;
  float t[8] = {0};
  memcpy(t, x + i, (size_t)(n - i) * sizeof *t);
  store_n(y + i, narrow8(kind, w, _mm256_loadu_ps(t)), n - i);
}

/* Rows adjacent: blocks of 8 x 8 are transposed. A block's reading may go beyond its rows where that is still inside the matrix. */
FL_INLINE void widen_columns(const bool bfloat, const fl_matrix *m, const uint16_t *x, float *y, int64_t ys, const int32_t *to) {
  int64_t last = m->rows - 1 + (m->columns - 1) * m->right; /* element the matrix ends with, when columns do not run backwards */
  for (int64_t c = 0; c < m->columns; c += 8) {
    int64_t columns = m->columns - c < 8 ? m->columns - c : 8;
    for (int64_t r = 0; r < m->rows; r += 8) {
      int64_t rows = m->rows - r < 8 ? m->rows - r : 8;
      __m128i block[8];
      for (int64_t i = 0; i < 8; i++) {
        int64_t from = r + (c + i) * m->right;
        if (i >= columns) block[i] = _mm_setzero_si128();
        else block[i] = rows == 8 || (m->right > 0 && from + 7 <= last) ? _mm_loadu_si128((const __m128i *)(x + from)) : load_n(x + from, rows);
      }
      transpose8(block);
      for (int64_t i = 0; i < rows; i++) {
        float *out = y + (to ? to[r + i] : r + i) * ys + c;
        __m256 v = widen8(bfloat, block[i]);
        if (columns == 8) _mm256_storeu_ps(out, v);
        else _mm256_maskstore_ps(out, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)columns), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)), v);
      }
    }
  }
}

FL_INLINE void narrow_columns(const int kind, const how *w, const fl_matrix *m, const float *x, int64_t xs, uint16_t *y) {
  for (int64_t c = 0; c < m->columns; c += 8) {
    int64_t columns = m->columns - c < 8 ? m->columns - c : 8;
    __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)columns), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    for (int64_t r = 0; r < m->rows; r += 8) {
      int64_t rows = m->rows - r < 8 ? m->rows - r : 8;
      __m128i block[8];
      for (int64_t i = 0; i < 8; i++)
        block[i] = i < rows ? narrow8(kind, w, _mm256_maskload_ps(x + (r + i) * xs + c, mask)) : _mm_setzero_si128();
      transpose8(block);
      for (int64_t i = 0; i < columns; i++) {
        uint16_t *out = y + r + (c + i) * m->right;
        if (rows == 8) _mm_storeu_si128((__m128i *)out, block[i]);
        else store_n(out, block[i], rows);
      }
    }
  }
}

FL_INLINE void widen(const bool bfloat, const fl_matrix *m, const uint16_t *x, float *y, int64_t ys, const int32_t *to) {
  if (m->columns > 1 && m->down == 1 && m->right != 1) {
    widen_columns(bfloat, m, x, y, ys, to);
    return;
  }
  for (int64_t r = 0; r < m->rows; r++) {
    float *out = y + (to ? to[r] : r) * ys;
    const uint16_t *from = x + r * m->down;
    if (m->right == 1) widen_row(bfloat, from, out, m->columns);
    else for (int64_t c = 0; c < m->columns; c++) out[c] = bfloat ? fl_bfloat_to_float(from[c * m->right]) : fl_half_to_float(from[c * m->right]);
  }
}

/* Whether all elements follow one another at one distance, on the side of floats, too. */
static bool is_line(const fl_matrix *m, int64_t floats, fl_matrix *line) {
  *line = (fl_matrix){1, m->rows * m->columns, 0, m->columns == 1 ? m->down : m->right};
  return floats == m->columns && (m->columns == 1 || m->down == m->right * m->columns);
}

void fl_plane_widen(unsigned dtype, const fl_matrix *m, const uint16_t *x, float *y, int64_t ys, const int32_t *to) {
  fl_matrix line;
  if (!to && is_line(m, ys, &line)) m = &line;
  if (m->rows == 0 || m->columns == 0) return;
  if (dtype == FL_BF16) widen(true, m, x, y, ys, to);
  else widen(false, m, x, y, ys, to);
}

FL_INLINE void narrow(const int kind, const how *w, const fl_matrix *m, const float *x, int64_t xs, uint16_t *y) {
  if (m->columns > 1 && m->down == 1 && m->right != 1) {
    narrow_columns(kind, w, m, x, xs, y);
    return;
  }
  for (int64_t r = 0; r < m->rows; r++, x += xs) {
    uint16_t *to = y + r * m->down;
    if (m->right == 1) narrow_row(kind, w, x, to, m->columns);
    else for (int64_t c = 0; c < m->columns; c++) to[c * m->right] = kind == BFLOAT ? fl_float_to_bfloat(x[c], w->r) : fl_float_to_half(x[c], w->r);
  }
}

void fl_plane_narrow(unsigned dtype, fl_rounding mode, bool flush, const fl_matrix *m, const float *x, int64_t xs, uint16_t *y) {
  fl_matrix line;
  if (is_line(m, xs, &line)) m = &line;
  if (m->rows == 0 || m->columns == 0) return;
  how w = {fl_narrowing_of(dtype, mode, flush), flush};
  if (dtype == FL_BF16) narrow(BFLOAT, &w, m, x, xs, y);
  else if (mode == FL_ROUNDING_HALF_TO_EVEN) narrow(EVEN, &w, m, x, xs, y);
  else if (mode == FL_ROUNDING_FLOOR) narrow(FLOOR, &w, m, x, xs, y);
  else if (mode == FL_ROUNDING_TOWARD_ZERO) narrow(ZERO, &w, m, x, xs, y);
  else narrow(ANY, &w, m, x, xs, y);
}
