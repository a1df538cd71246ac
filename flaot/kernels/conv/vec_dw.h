/* Depthwise convolution, one filter per channel; channels one float apart, pixels and rows any distance.
   A tile is up to 4 output pixels of one row; it runs over all channels, so whole cache lines are used whatever the pixel distance.
   Tiles go down a band of rows before the next tile to the right: two of three input rows are then still in L1.
   Rows outside the image are left out; columns outside (only in tiles at the edge) read a run of zeros. */
#include "conv/image.h"
#include "conv/vec_act.h"
#include "common/simd.h"
#include "gen/params.h"

typedef fl_conv_dw_f32_params dw_params;

typedef struct dw {
  const dw_params *p;
  image x, y, r;
  const float *px, *w, *bias, *pr, *slope, *zero;
  float *py;
  int64_t padded, c0, c1;  /* floats of one tap's weights; channels of this part */
  const float **column;    /* [row][column] of a tile at the edge */
  int64_t *ypix;           /* of a row */
} dw;

/* One tile: n rows of taps, weights w of the first; x points at the first column's channel 0. */
typedef struct dw_at { const float *x, *w, *res; float *y; int64_t n; } dw_at;

FL_INLINE void dw_step(const int K, const int S, const int TX, const bool edge, const bool part, const dw *d, const dw_at *a, int64_t c, int left) {
  vf acc[4];
  FL_UNROLL for (int t = 0; t < TX; t++) acc[t] = v_load(d->bias + c);
  if (a->res) FL_UNROLL for (int t = 0; t < TX; t++) acc[t] += part ? v_load_n(a->res + t * d->r.sw + c, left) : v_load(a->res + t * d->r.sw + c);
  const float *w = a->w + c, *x = a->x + c, *const *column = d->column;
  int64_t down = d->p->dilations[0] * d->x.sh, right = d->x.sw;
  FL_NO_UNROLL for (int64_t ky = 0; ky < a->n; ky++, w += K * d->padded, x += down, column += (TX - 1) * S + K) {
    vf wv[8];
    FL_UNROLL for (int i = 0; i < K; i++) wv[i] = v_load(w + i * d->padded);
    FL_UNROLL for (int i = 0; i < (TX - 1) * S + K; i++) {
      const float *at = edge ? column[i] + c : x + i * right;
      vf v = part ? v_load_n(at, left) : v_load(at);
      FL_UNROLL for (int t = 0; t < TX; t++)
        if (i - t * S >= 0 && i - t * S < K) acc[t] += v * wv[i - t * S];
    }
  }
  if (d->p->act == FL_ACT_CLAMP) {
    vf lo = v_set(d->p->alpha), hi = v_set(d->p->beta);
    FL_UNROLL for (int t = 0; t < TX; t++) acc[t] = v_clamp(acc[t], lo, hi);
  }
  FL_UNROLL for (int t = 0; t < TX; t++)
    if (part) v_store_n(a->y + t * d->y.sw + c, acc[t], left);
    else v_store(a->y + t * d->y.sw + c, acc[t]);
}

FL_INLINE void dw_tile(const int K, const int S, const int TX, const bool edge, const dw *d, const dw_at *a) {
  int64_t c = d->c0;
  FL_NO_UNROLL for (; c + FL_VL <= d->c1; c += FL_VL) dw_step(K, S, TX, edge, false, d, a, c, FL_VL);
  if (c < d->c1) dw_step(K, S, TX, edge, true, d, a, c, (int)(d->c1 - c));
}

typedef void dw_fn(const dw *, const dw_at *);
#define FL_DW(K, S, T) \
  FL_NOINLINE void dw_##K##_##S##_##T(const dw *d, const dw_at *a) { dw_tile(K, S, T, false, d, a); } \
  FL_NOINLINE void dw_##K##_##S##_##T##_edge(const dw *d, const dw_at *a) { dw_tile(K, S, T, true, d, a); }
#define FL_DWS(K, S) FL_DW(K, S, 1) FL_DW(K, S, 2) FL_DW(K, S, 3) FL_DW(K, S, 4)
FL_DWS(3, 1) FL_DWS(3, 2) FL_DWS(5, 1) FL_DWS(5, 2) FL_DWS(7, 1) FL_DWS(7, 2)
#define FL_DW_ROW(K, S) \
  {{dw_##K##_##S##_1, dw_##K##_##S##_2, dw_##K##_##S##_3, dw_##K##_##S##_4}, \
   {dw_##K##_##S##_1_edge, dw_##K##_##S##_2_edge, dw_##K##_##S##_3_edge, dw_##K##_##S##_4_edge}}
static dw_fn *const dw_table[6][2][4] = { /* [kernel width and stride][edge][pixels - 1] */
  FL_DW_ROW(3, 1), FL_DW_ROW(3, 2), FL_DW_ROW(5, 1), FL_DW_ROW(5, 2), FL_DW_ROW(7, 1), FL_DW_ROW(7, 2)
};

/* One pixel of any kernel: column[] points at every tap of the n rows. Four vectors at a time hide the latency. */
FL_NOINLINE void dw_pixel(const dw *d, const dw_at *a) {
  int64_t taps = a->n * d->p->ksize[1];
  vf lo = v_set(d->p->alpha), hi = v_set(d->p->beta);
  for (int64_t c = d->c0; c < d->c1; c += 4 * FL_VL) {
    vf acc[4] = {{0}};
    for (int j = 0; j < 4 && c + j * FL_VL < d->c1; j++) acc[j] = v_load(d->bias + c + j * FL_VL);
    if (d->c1 - c >= 4 * FL_VL)
      FL_NO_UNROLL for (int64_t t = 0; t < taps; t++)
        FL_UNROLL for (int j = 0; j < 4; j++) acc[j] += v_load(d->column[t] + c + j * FL_VL) * v_load(a->w + t * d->padded + c + j * FL_VL);
    else
      for (int64_t j = 0, left; (left = d->c1 - c - j * FL_VL) > 0; j++) {
        vf sum = acc[j];
        FL_NO_UNROLL for (int64_t t = 0; t < taps; t++)
          sum += v_load_n(d->column[t] + c + j * FL_VL, left < FL_VL ? (int)left : FL_VL) * v_load(a->w + t * d->padded + c + j * FL_VL);
        acc[j] = sum;
      }
    for (int64_t j = 0, left; j < 4 && (left = d->c1 - c - j * FL_VL) > 0; j++) {
      int n = left < FL_VL ? (int)left : FL_VL;
      if (a->res) acc[j] += v_load_n(a->res + c + j * FL_VL, n);
      if (d->p->act == FL_ACT_CLAMP) acc[j] = v_clamp(acc[j], lo, hi);
      v_store_n(a->y + c + j * FL_VL, acc[j], n);
    }
  }
}

static dw dw_describe(const fl_call *c) {
  const dw_params *p = c->params;
  dw d = {.p = p, .x = image_of(c->t[0]), .y = image_of(c->t[c->n_in]), .px = c->p[0], .w = c->p[1], .bias = c->p[2], .py = c->p[c->n_in]};
  if (p->residual) d.r = image_of(c->t[3]), d.pr = c->p[3];
  if (p->act == FL_ACT_PRELU) d.slope = c->p[3 + p->residual];
  d.padded = round_up(d.x.c, FL_VL), d.c1 = d.x.c;
  float *zero = c->scratch;
  for (int64_t i = 0; i < d.padded; i++) zero[i] = 0.0f;
  d.zero = zero, d.column = (const float **)(zero + round_up(d.padded, 16)), d.ypix = (int64_t *)(d.column + dw_columns(p->ksize, p->strides));
  for (int64_t i = 0; i < d.y.w; i++) d.ypix[i] = i * d.y.sw;
  return d;
}

/* Fills column[] for n rows from row, `count` columns from ix0, `step` apart; row 0's column 0 would be at x. */
static void dw_columns_at(const dw *d, const float *x, int64_t n, int64_t ix0, int64_t count, int64_t step) {
  const float **out = d->column;
  for (int64_t ky = 0; ky < n; ky++, x += d->p->dilations[0] * d->x.sh)
    for (int64_t i = 0; i < count; i++) {
      int64_t ix = ix0 + i * step;
      *out++ = ix >= 0 && ix < d->x.w ? x + ix * d->x.sw : d->zero;
    }
}

/* Output pixels ox..ox+n-1 (n <= 4) of row oy in image b. */
static void dw_place(const dw *d, int kind, int64_t b, int64_t oy, int64_t ox, int64_t n) {
  const dw_params *p = d->p;
  int64_t iy0 = oy * p->strides[0] - p->pads[0], ix0 = ox * p->strides[1] - p->pads[1], dil = p->dilations[0], k = p->ksize[1];
  int64_t first = iy0 < 0 ? (-iy0 + dil - 1) / dil : 0, last = iy0 < d->x.h ? (d->x.h - 1 - iy0) / dil + 1 : 0;
  if (last > p->ksize[0]) last = p->ksize[0];
  if (last < first) last = first;
  const float *row = d->px + b * d->x.sn + (iy0 + first * dil) * d->x.sh;
  dw_at a = {row + ix0 * d->x.sw, d->w + first * k * d->padded, NULL, d->py + b * d->y.sn + oy * d->y.sh + ox * d->y.sw, last - first};
  if (d->pr) a.res = d->pr + b * d->r.sn + oy * d->r.sh + ox * d->r.sw;
  if (kind < 0) {
    for (int64_t i = 0; i < n; i++, ix0 += p->strides[1], a.y += d->y.sw, a.res = a.res ? a.res + d->r.sw : NULL) {
      dw_columns_at(d, row, a.n, ix0, k, p->dilations[1]);
      dw_pixel(d, &a);
    }
    return;
  }
  int64_t columns = (n - 1) * p->strides[1] + k;
  bool edge = ix0 < 0 || ix0 + columns > d->x.w;
  if (edge) dw_columns_at(d, row, a.n, ix0, columns, 1);
  dw_table[kind][edge][n - 1](d, &a);
}

/* Rows r0..r1-1 of all images, numbered through. */
static void dw_rows(const dw *d, int64_t r0, int64_t r1) {
  const dw_params *p = d->p;
  int k = p->ksize[1], s = p->strides[1], kind = k == 3 || k == 5 || k == 7 ? (k - 3) + (s - 1) : -1;
  if (s > 2 || p->dilations[1] != 1) kind = -1;
  int64_t tiles = (d->y.w + 3) / 4;
  for (int64_t band = r0, end; band < r1; band = end) {
    end = band + p->band < r1 ? band + p->band : r1;
    for (int64_t t = 0; t < tiles; t++)
      for (int64_t r = band; r < end; r++) {
        int64_t ox = d->y.w * t / tiles, n = d->y.w * (t + 1) / tiles - ox;
        dw_place(d, kind, r / d->y.h, r % d->y.h, ox, n);
      }
    if (p->act > FL_ACT_CLAMP)
      for (int64_t r = band; r < end; r++) {
        float *row = d->py + r / d->y.h * d->y.sn + r % d->y.h * d->y.sh + d->c0;
        act_rows a = {row, d->ypix, d->y.w, (int)(d->c1 - d->c0), p->alpha, p->beta, d->slope ? d->slope + d->c0 : NULL};
        act_apply(p->act, &a);
      }
  }
}

/* Parts take rows; channels when there are few rows. */
fl_status FL_CONV_DW(const fl_call *c) {
  if (((const dw_params *)c->params)->vl != FL_VL) return FL_PLAN_PARAMS;
  dw d = dw_describe(c);
  int64_t rows = d.y.n * d.y.h, vectors = d.padded / FL_VL;
  if (d.y.w == 0 || d.y.c == 0) return FL_OK;
  if (rows >= 8 * (int64_t)c->parts || vectors < c->parts) {
    dw_rows(&d, fl_split(rows, c->part, c->parts), fl_split(rows, c->part + 1, c->parts));
    return FL_OK;
  }
  d.c0 = fl_split(vectors, c->part, c->parts) * FL_VL, d.c1 = fl_split(vectors, c->part + 1, c->parts) * FL_VL;
  if (d.c1 > d.x.c) d.c1 = d.x.c;
  dw_rows(&d, 0, rows);
  return FL_OK;
}
