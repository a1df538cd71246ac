/* Winograd convolution 3x3, stride 1, any pad: F(4x4) and F(2x2), m = 4 or 2 outputs per axis from m + 2 inputs.
   Input tiles -> V[xi][tile][channel]; for each of the (m + 2)^2 points xi a GEMM with the transformed weights
   U[xi][panel][channel][lane] -> M[xi][tile][output channel]; M -> y with bias, residual and activation.
   F(4x4) interpolates at 0, +-3/4, +-3/2 and infinity: a quarter to half of the error of the usual 0, +-1, +-2.
   Planes of V and M are padded by one cache line: else all stores of a tile would fall into one set of L1. */
#include "conv/image.h"
#include "conv/vec_act.h"
#include "conv/vec_strip.h"
#include "gen/params.h"

typedef fl_conv_wino_f32_params wino_params;

typedef struct wino {
  const wino_params *p;
  image x, y, r;
  const float *px, *u, *bias, *pr, *slope;
  float *py, *v, *m;
  int64_t tiles, down, across, vectors, v0, v1, per; /* panels of this part: output vectors v0..v1-1; tiles per block */
  int64_t vt, vs, mt, ms;                            /* floats from tile to tile and plane to plane of V and M */
  const float *zero;
  const float **rows;
  int64_t *mpix;
} wino;

#define FL_A 0.75f
#define FL_B 1.5f
static const float A1 = FL_A, A2 = FL_A * FL_A, A3 = FL_A * FL_A * FL_A, B1 = FL_B, B2 = FL_B * FL_B, B3 = FL_B * FL_B * FL_B;
static const float S2 = FL_A * FL_A + FL_B * FL_B, P2 = FL_A * FL_A * FL_B * FL_B;

/* o = B^T d with d[0], d[s], ... */
FL_INLINE void wino_in(const int m, const vf *d, const int s, vf *o) {
  vf d0 = d[0], d1 = d[s], d2 = d[2 * s], d3 = d[3 * s];
  if (m == 2) {
    o[0] = d0 - d2, o[1] = d1 + d2, o[2] = d2 - d1, o[3] = d1 - d3;
    return;
  }
  vf d4 = d[4 * s], d5 = d[5 * s], ea = d4 - B2 * d2, oa = d3 - B2 * d1, eb = d4 - A2 * d2, ob = d3 - A2 * d1;
  o[0] = P2 * d0 - S2 * d2 + d4, o[1] = ea + A1 * oa, o[2] = ea - A1 * oa;
  o[3] = eb + B1 * ob, o[4] = eb - B1 * ob, o[5] = P2 * d1 - S2 * d3 + d5;
}

/* o = A^T d */
FL_INLINE void wino_out(const int m, const vf *d, const int s, vf *o) {
  vf d0 = d[0], d1 = d[s], d2 = d[2 * s], d3 = d[3 * s], p = d1 + d2, q = d1 - d2;
  if (m == 2) {
    o[0] = d0 + p, o[1] = q - d3;
    return;
  }
  vf d4 = d[4 * s], d5 = d[5 * s], r = d3 + d4, t = d3 - d4;
  o[0] = d0 + p + r, o[1] = A1 * q + B1 * t, o[2] = A2 * p + B2 * r, o[3] = A3 * q + B3 * t + d5;
}

/* Tile t of all images to planes at v. */
FL_INLINE void wino_load(const int m, const wino *w, int64_t t, float *v) {
  const int n = m + 2;
  const float *px[36];
  int64_t tx = t % w->across * m - w->p->pads[1], ty = t / w->across % w->down * m - w->p->pads[0], b = t / w->across / w->down;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      int64_t iy = ty + i, ix = tx + j;
      bool inside = iy >= 0 && iy < w->x.h && ix >= 0 && ix < w->x.w;
      px[i * n + j] = inside ? w->px + b * w->x.sn + iy * w->x.sh + ix * w->x.sw : w->zero;
    }
  for (int64_t c = 0; c < w->x.c; c += FL_VL) {
    int left = w->x.c - c < FL_VL ? (int)(w->x.c - c) : FL_VL;
    vf half[36], d[6], o[6];
    FL_UNROLL for (int j = 0; j < n; j++) {
      if (left == FL_VL) FL_UNROLL for (int i = 0; i < n; i++) d[i] = v_load(px[i * n + j] + c);
      else FL_UNROLL for (int i = 0; i < n; i++) d[i] = v_load_n(px[i * n + j] + c, left);
      wino_in(m, d, 1, half + j * n);
    }
    FL_UNROLL for (int i = 0; i < n; i++) {
      wino_in(m, half + i, n, o);
      FL_UNROLL for (int j = 0; j < n; j++) v_store(v + (i * n + j) * w->vs + c, o[j]);
    }
  }
}

/* Planes at m to tile t of y, output channels from vector v0 to v1. */
FL_INLINE void wino_store(const int m, const wino *w, int64_t t, const float *planes) {
  const int n = m + 2;
  int64_t tx = t % w->across * m, ty = t / w->across % w->down * m, b = t / w->across / w->down, pix[16];
  int64_t rows = w->y.h - ty < m ? w->y.h - ty : m, columns = w->y.w - tx < m ? w->y.w - tx : m;
  float *y = w->py + b * w->y.sn + ty * w->y.sh + tx * w->y.sw;
  const float *r = w->pr ? w->pr + b * w->r.sn + ty * w->r.sh + tx * w->r.sw : NULL;
  int64_t c1 = w->v1 * FL_VL < w->y.c ? w->v1 * FL_VL : w->y.c;
  bool clamp = w->p->act == FL_ACT_CLAMP;
  vf lo = v_set(w->p->alpha), hi = v_set(w->p->beta);
  for (int64_t c = w->v0 * FL_VL; c < c1; c += FL_VL) {
    vf half[24], d[6], o[4], bias = v_load(w->bias + c);
    int left = c1 - c < FL_VL ? (int)(c1 - c) : FL_VL;
    FL_UNROLL for (int j = 0; j < n; j++) {
      FL_UNROLL for (int i = 0; i < n; i++) d[i] = v_load(planes + (i * n + j) * w->ms + c);
      wino_out(m, d, 1, half + j * m);
    }
    FL_UNROLL for (int i = 0; i < m; i++) {
      if (i >= rows) break;
      wino_out(m, half + i, m, o);
      FL_UNROLL for (int j = 0; j < m; j++) {
        if (j >= columns) break;
        vf sum = o[j] + bias;
        if (r) sum += v_load_n(r + i * w->r.sh + j * w->r.sw + c, left);
        if (clamp) sum = v_clamp(sum, lo, hi);
        if (left == FL_VL) v_store(y + i * w->y.sh + j * w->y.sw + c, sum);
        else v_store_n(y + i * w->y.sh + j * w->y.sw + c, sum, left);
      }
    }
  }
  if (w->p->act <= FL_ACT_CLAMP) return;
  int64_t count = 0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) pix[count++] = i * w->y.sh + j * w->y.sw;
  int64_t c0 = w->v0 * FL_VL;
  act_rows a = {y + c0, pix, count, (int)(c1 - c0), w->p->alpha, w->p->beta, w->slope ? w->slope + c0 : NULL};
  act_apply(w->p->act, &a);
}

FL_NOINLINE void wino_load4(const wino *w, int64_t t, float *v) { wino_load(4, w, t, v); }
FL_NOINLINE void wino_load2(const wino *w, int64_t t, float *v) { wino_load(2, w, t, v); }
FL_NOINLINE void wino_store4(const wino *w, int64_t t, const float *m) { wino_store(4, w, t, m); }
FL_NOINLINE void wino_store2(const wino *w, int64_t t, const float *m) { wino_store(2, w, t, m); }

/* One GEMM of n tiles per point and panel. */
static void wino_multiply(const wino *w, int64_t points, int64_t n) {
  for (int64_t xi = 0; xi < points; xi++)
    for (int64_t v = w->v0; v < w->v1;) {
      int vectors = panel_vectors(FL_VL, w->vectors - v);
      const float *panel = w->u + (xi * w->vectors + v) * FL_VL * w->x.c;
      strip t = {
        .rows = (const float *const *)w->rows, .coff = xi * w->vs, .taps = 1, .run = w->x.c, .w = panel, .bias = w->zero,
        .y = w->m + xi * w->ms + v * FL_VL, .ypix = w->mpix, .rpix = w->mpix, .tail = FL_VL,
        .next = v + vectors < w->v1 || xi + 1 < points ? panel + w->x.c * vectors * FL_VL : NULL, .ahead = w->x.c * vectors * FL_VL,
      };
      strip_all(vectors, &t, n);
      v += vectors;
    }
}

static wino wino_describe(const fl_call *c) {
  const wino_params *p = c->params;
  wino w = {.p = p, .x = image_of(c->t[0]), .y = image_of(c->t[c->n_in]), .px = c->p[0], .u = c->p[1], .bias = c->p[2], .py = c->p[c->n_in]};
  if (p->residual) w.r = image_of(c->t[3]), w.pr = c->p[3];
  if (p->act == FL_ACT_PRELU) w.slope = c->p[3 + p->residual];
  int64_t points = (p->m + 2) * (p->m + 2);
  w.down = (w.y.h + p->m - 1) / p->m, w.across = (w.y.w + p->m - 1) / p->m, w.tiles = w.y.n * w.down * w.across;
  w.vectors = w.v1 = (w.y.c + FL_VL - 1) / FL_VL;
  w.vt = round_up(w.x.c, FL_VL), w.mt = w.vectors * FL_VL, w.vs = p->tiles * w.vt + 16, w.ms = p->tiles * w.mt + 16;
  float *zero = c->scratch;
  int64_t zeros = wino_zeros(w.x.c);
  for (int64_t i = 0; i < zeros; i++) zero[i] = 0.0f;
  w.zero = zero, w.v = zero + zeros, w.m = w.v + points * w.vs;
  w.rows = (const float **)(w.m + points * w.ms), w.mpix = (int64_t *)(w.rows + p->tiles);
  for (int64_t i = 0; i < p->tiles; i++) w.rows[i] = w.v + i * w.vt, w.mpix[i] = i * w.mt;
  return w;
}

static void wino_tiles(const wino *w, int64_t t0, int64_t t1) {
  int64_t count = t1 - t0, blocks = (count + w->p->tiles - 1) / w->p->tiles;
  for (int64_t b = 0; b < blocks; b++) {
    int64_t from = t0 + count * b / blocks, n = t0 + count * (b + 1) / blocks - from;
    for (int64_t i = 0; i < n; i++) (w->p->m == 4 ? wino_load4 : wino_load2)(w, from + i, w->v + i * w->vt);
    wino_multiply(w, (w->p->m + 2) * (w->p->m + 2), n);
    for (int64_t i = 0; i < n; i++) (w->p->m == 4 ? wino_store4 : wino_store2)(w, from + i, w->m + i * w->mt);
  }
}

/* Parts take tiles; output channels when there are few tiles. */
fl_status FL_CONV_WINO(const fl_call *c) {
  if (((const wino_params *)c->params)->vl != FL_VL) return FL_PLAN_PARAMS;
  wino w = wino_describe(c);
  int64_t panels = panel_count(w.vectors);
  if (w.y.c == 0) return FL_OK;
  if (w.tiles >= 24 * (int64_t)c->parts || panels < c->parts) {
    wino_tiles(&w, fl_split(w.tiles, c->part, c->parts), fl_split(w.tiles, c->part + 1, c->parts));
    return FL_OK;
  }
  w.v0 = panel_start(w.vectors, fl_split(panels, c->part, c->parts)), w.v1 = panel_start(w.vectors, fl_split(panels, c->part + 1, c->parts));
  wino_tiles(&w, 0, w.tiles);
  return FL_OK;
}
