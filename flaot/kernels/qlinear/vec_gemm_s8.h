/* conv_gemm_s8: pixels and weights as int16 with their zero points taken off, pairs of products summed exactly by vpmaddwd.
   Weights are packed [group][panel of 2 vectors][depth / 2][vector][lane][2]. Included by avx2.c and avx512.c. */
#include "common/simd.h"
#include "qlinear/gemm.h"

#if FL_VL == 16
FL_INLINE vi pair_sums(vi a, vi b) { return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b); }
#else
FL_INLINE vi pair_sums(vi a, vi b) { return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
#endif

typedef struct job {
  const fl_call *c;
  const fl_conv_gemm_s8_params *p;
  fl_plane x, y;
  fl_s8 s;
  int32_t zero;
} job;

/* n values as int16 minus the zero point. */
FL_INLINE void widen(int16_t *to, const job *j, int64_t at, int64_t step, int32_t n) {
  if (j->c->t[GX]->dtype == FL_U8) {
    const uint8_t *x = (const uint8_t *)j->c->p[GX] + at;
    if (step == 1) for (int32_t i = 0; i < n; i++) to[i] = (int16_t)(x[i] - j->zero);
    else for (int32_t i = 0; i < n; i++) to[i] = (int16_t)(x[i * step] - j->zero);
  } else {
    const int8_t *x = (const int8_t *)j->c->p[GX] + at;
    if (step == 1) for (int32_t i = 0; i < n; i++) to[i] = (int16_t)(x[i] - j->zero);
    else for (int32_t i = 0; i < n; i++) to[i] = (int16_t)(x[i * step] - j->zero);
  }
}

/* The products' left sides of one row of taps for one output pixel: [tap][channel]; padding is 0. */
static void gather_taps(const job *j, int16_t *to, int64_t at, int64_t first, int32_t channels) {
  const fl_conv_gemm_s8_params *p = j->p;
  bool run = p->dilations[2] == 1 && (channels == 1 ? j->x.s[2] == 1 : j->x.cs == 1 && j->x.s[2] == channels);
  if (run && first >= 0 && first + p->taps[2] <= j->x.d[2]) {
    widen(to, j, at + first * j->x.s[2], 1, p->taps[2] * channels);
    return;
  }
  for (int32_t e = 0; e < p->taps[2]; e++, to += channels) {
    int64_t l = first + (int64_t)e * p->dilations[2];
    if (l >= 0 && l < j->x.d[2]) widen(to, j, at + l * j->x.s[2], j->x.cs, channels);
    else
      for (int32_t q = 0; q < channels; q++) to[q] = 0;
  }
}

static void gather_pixel(const job *j, int16_t *to, int64_t n, int64_t group, const int64_t *o) {
  const fl_conv_gemm_s8_params *p = j->p;
  int32_t channels = (int32_t)(j->x.c / p->group);
  int64_t base = n * j->x.ns + group * channels * j->x.cs, width = (int64_t)p->taps[2] * channels;
  for (int32_t a = 0; a < p->taps[0]; a++)
    for (int32_t b = 0; b < p->taps[1]; b++, to += width) {
      int64_t i = o[0] * p->strides[0] + (int64_t)a * p->dilations[0] - p->pads[0], k = o[1] * p->strides[1] + (int64_t)b * p->dilations[1] - p->pads[1];
      bool inside = i >= 0 && i < j->x.d[0] && k >= 0 && k < j->x.d[1];
      if (inside) gather_taps(j, to, base + i * j->x.s[0] + k * j->x.s[1], o[2] * p->strides[2] - p->pads[2], channels);
      else
        for (int64_t q = 0; q < width; q++) to[q] = 0;
    }
}

/* sums[r][0..v*FL_VL) = a[r] . w for R rows and V vectors of columns. */
#define DEFINE_TILE(NAME, R, V)                                                                                                  \
  FL_NOINLINE void NAME(const int16_t *a, int64_t as, const int16_t *w, int64_t pairs, int32_t *sums, int64_t ss) {              \
    vu acc[R][V]; /* long sums wrap */                                                                                           \
    FL_UNROLL for (int r = 0; r < R; r++) FL_UNROLL for (int v = 0; v < V; v++) acc[r][v] = (vu){0};                             \
    for (int64_t k = 0; k < pairs; k++, w += 2 * V * FL_VL) {                                                                    \
      vi b[V];                                                                                                                   \
      FL_UNROLL for (int v = 0; v < V; v++) b[v] = *(const vi_u *)(const void *)(w + v * 2 * FL_VL);                             \
      FL_UNROLL for (int r = 0; r < R; r++) {                                                                                    \
        int32_t both;                                                                                                            \
        __builtin_memcpy(&both, a + r * as + 2 * k, sizeof both);                                                                \
        vi x = both - (vi){0};                                                                                                   \
        FL_UNROLL for (int v = 0; v < V; v++) acc[r][v] += (vu)pair_sums(x, b[v]);                                               \
      }                                                                                                                          \
    }                                                                                                                            \
    FL_UNROLL for (int r = 0; r < R; r++)                                                                                        \
      FL_UNROLL for (int v = 0; v < V; v++) *(vi_u *)(void *)(sums + r * ss + v * FL_VL) = (vi)acc[r][v];                        \
  }
DEFINE_TILE(tile_6x2, 6, 2)
DEFINE_TILE(tile_1x2, 1, 2)
DEFINE_TILE(tile_6x1, 6, 1)
DEFINE_TILE(tile_1x1, 1, 1)

static void multiply(const job *j, const int16_t *a, const int16_t *w, int32_t *sums, int32_t rows) {
  int64_t pairs = j->s.padded / 2, as = j->s.padded, ss = j->s.columns;
  for (int64_t n = 0; n < ss; n += 2 * FL_VL, w += j->s.padded * 2 * FL_VL) {
    bool two = n + FL_VL < ss;
    int32_t r = 0;
    for (; r + 6 <= rows; r += 6) (two ? tile_6x2 : tile_6x1)(a + r * as, as, w, pairs, sums + r * ss + n, ss);
    for (; r < rows; r++) (two ? tile_1x2 : tile_1x1)(a + r * as, as, w, pairs, sums + r * ss + n, ss);
  }
}

/* Scale of every output channel of the group. */
static void scales(const job *j, float *scale, int64_t first, int64_t n) {
  const fl_call *c = j->c;
  float left = *(const float *)c->p[GSX], right = *(const float *)c->p[GSY];
  for (int64_t i = 0; i < n; i++) scale[i] = left * ((const float *)c->p[GSW])[(first + i) * c->t[GSW]->strides[0]] / right;
}

/* sums[] rounded back to the result's 8 bits; the same arithmetic as fl_put_byte. */
static void requantize(const job *j, int32_t *restrict sums, const float *restrict scale, int64_t first, int64_t n) {
  const fl_call *c = j->c;
  int32_t zero = fl_byte_at(c->t[GZY], c->p[GZY], 0), low = c->t[c->n_in]->dtype == FL_U8 ? 0 : -128, high = low + 255;
  if (c->n_in == 8)
    for (int64_t i = 0; i < n; i++) sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)((const int32_t *)c->p[GBIAS])[(first + i) * c->t[GBIAS]->strides[0]]);
  for (int64_t i = 0; i < n; i++) {
    float v = (float)sums[i] * scale[i];
    v = v > -1024.0f ? (v < 1024.0f ? v : 1024.0f) : v == v ? -1024.0f : 0.0f;
    int32_t r = (int32_t)((v + 12582912.0f) - 12582912.0f) + zero;
    r = r < low ? low : r;
    sums[i] = r > high ? high : r;
  }
}

static void put_row(const job *j, int32_t *sums, const float *scale, int64_t to, int64_t first, int64_t n) {
  const fl_call *c = j->c;
  if (c->n_in == 3) {
    int32_t *out = (int32_t *)c->p[3] + to;
    for (int64_t i = 0; i < n; i++) out[i * j->y.cs] = sums[i];
    return;
  }
  requantize(j, sums, scale, first, n);
  uint8_t *out = (uint8_t *)c->p[c->n_in] + to;
  if (j->y.cs == 1)
    for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)sums[i];
  else
    for (int64_t i = 0; i < n; i++) out[i * j->y.cs] = (uint8_t)sums[i];
}

static fl_status gemm(const fl_call *c) {
  if (fl_elements(c->t[c->n_in]) == 0) return FL_OK;
  const fl_conv_gemm_s8_params *p = c->params;
  job j = {c, p, fl_plane_of(c->t[GX]), fl_plane_of(c->t[c->n_in]), fl_s8_of(p, c->t[GX], c->t[c->n_in]), fl_byte_at(c->t[GZX], c->p[GZX], 0)};
  int64_t points = (int64_t)j.y.d[0] * j.y.d[1] * j.y.d[2], rows = j.y.n * points, per = j.y.c / p->group;
  if (p->vl != FL_VL) return FL_PLAN_PARAMS;
  int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts);
  int16_t *a = c->scratch;
  int32_t *sums = (int32_t *)(void *)((char *)c->scratch + FL_S8_ROWS * j.s.padded * 2);
  float *scale = (float *)(void *)(sums + FL_S8_ROWS * j.s.columns);
  for (int32_t count; r < end; r += count) {
    count = end - r < FL_S8_ROWS ? (int32_t)(end - r) : FL_S8_ROWS;
    for (int64_t g = 0; g < p->group; g++) {
      if (c->n_in > 3) scales(&j, scale, g * per, per);
      for (int32_t i = 0; i < count; i++) {
        int64_t q = (r + i) % points, o[3] = {q / j.y.d[2] / j.y.d[1], q / j.y.d[2] % j.y.d[1], q % j.y.d[2]};
        if (j.s.padded > j.s.depth) a[(i + 1) * j.s.padded - 1] = 0;
        gather_pixel(&j, a + i * j.s.padded, (r + i) / points, g, o);
      }
      multiply(&j, a, (const int16_t *)c->p[GW] + g * j.s.columns * j.s.padded, sums, count);
      for (int32_t i = 0; i < count; i++) {
        int64_t q = (r + i) % points, to = (r + i) / points * j.y.ns + g * per * j.y.cs;
        to += q / j.y.d[2] / j.y.d[1] * j.y.s[0] + q / j.y.d[2] % j.y.d[1] * j.y.s[1] + q % j.y.d[2] * j.y.s[2];
        put_row(&j, sums + i * j.s.columns, scale, to, g * per, per);
      }
    }
  }
  return FL_OK;
}
