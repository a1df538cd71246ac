/* Convolution as implicit GEMM over pixel pointers; channels one float apart, pixels and rows any distance.
   Pixels of all images are numbered through. Blocks of up to mc of them get a table of input pointers per tap; taps outside the
   image point at a run of zeros. The sum over taps and channels is cut into segments of about kc, so that a panel's weights stay
   in L1 or L2 while a block's pixels pass; between segments partial sums rest in y. */
#include "conv/image.h"
#include "conv/vec_act.h"
#include "conv/vec_strip.h"
#include "gen/params.h"

typedef fl_conv_gemm_f32_params gemm_params;

typedef struct gemm {
  const gemm_params *p;
  image x, y, r;
  const float *px, *w, *bias, *pr, *slope;
  float *py;
  int64_t ic, oc, vectors, taps, mc; /* channels per group, output vectors per group */
  const float *zero, **rows, **base;
  int64_t *ypix, *rpix;
  int32_t *iy, *ix;
} gemm;

static gemm gemm_describe(const fl_call *c) {
  const gemm_params *p = c->params;
  gemm g = {.p = p, .x = image_of(c->t[0]), .y = image_of(c->t[c->n_in]), .px = c->p[0], .w = c->p[1], .bias = c->p[2], .py = c->p[c->n_in]};
  if (p->residual) g.r = image_of(c->t[3]), g.pr = c->p[3];
  if (p->act == FL_ACT_PRELU) g.slope = c->p[3 + p->residual];
  g.ic = g.x.c / p->group, g.oc = g.y.c / p->group, g.taps = (int64_t)p->ksize[0] * p->ksize[1], g.mc = p->mc;
  g.vectors = (g.oc + FL_VL - 1) / FL_VL;
  float *zero = c->scratch;
  for (int64_t i = 0; i < g.x.c; i++) zero[i] = 0.0f;
  g.zero = zero, g.rows = (const float **)(zero + round_up(g.x.c, 16)), g.base = g.rows + g.taps * g.mc;
  g.ypix = (int64_t *)(g.base + g.mc), g.rpix = g.ypix + g.mc;
  g.iy = (int32_t *)(g.rpix + g.mc), g.ix = g.iy + g.mc;
  return g;
}

/* Pointers and offsets of pixels m0..m0+n-1. */
FL_NOINLINE void gemm_locate(const gemm *g, int64_t m0, int64_t n) {
  const gemm_params *p = g->p;
  int64_t ox = m0 % g->y.w, oy = m0 / g->y.w % g->y.h, b = m0 / g->y.w / g->y.h;
  for (int64_t i = 0; i < n; i++) {
    int64_t iy = oy * p->strides[0] - p->pads[0], ix = ox * p->strides[1] - p->pads[1];
    g->iy[i] = (int32_t)iy, g->ix[i] = (int32_t)ix;
    g->base[i] = g->px + (b * g->x.sn + iy * g->x.sh + ix * g->x.sw);
    g->ypix[i] = b * g->y.sn + oy * g->y.sh + ox * g->y.sw;
    g->rpix[i] = b * g->r.sn + oy * g->r.sh + ox * g->r.sw;
    if (++ox == g->y.w) {
      ox = 0;
      if (++oy == g->y.h) oy = 0, b++;
    }
  }
  const float **row = g->rows;
  uint32_t h = (uint32_t)g->x.h, w = (uint32_t)g->x.w;
  for (int32_t ky = 0; ky < p->ksize[0]; ky++)
    for (int32_t kx = 0; kx < p->ksize[1]; kx++, row += g->mc) {
      int32_t dy = ky * p->dilations[0], dx = kx * p->dilations[1];
      int64_t offset = dy * g->x.sh + dx * g->x.sw;
      for (int64_t i = 0; i < n; i++) {
        bool inside = ((uint32_t)(g->iy[i] + dy) < h) & ((uint32_t)(g->ix[i] + dx) < w);
        row[i] = inside ? g->base[i] + offset : g->zero;
      }
    }
}

typedef struct segment { int64_t t0, tn, c0, cn; bool first, last; } segment;

/* One segment of one group over the located pixels: panels from vector v0 to v1 (panel borders). */
static void gemm_panels(const gemm *g, const segment *s, int64_t group, int64_t v0, int64_t v1, int64_t n) {
  const gemm_params *p = g->p;
  int64_t depth = g->taps * g->ic, padded = g->vectors * FL_VL;
  const float *weights = g->w + group * padded * depth;
  for (int64_t v = v0; v < v1;) {
    int vectors = panel_vectors(FL_VL, g->vectors - v);
    int64_t width = vectors * FL_VL, o = v * FL_VL, left = g->oc - o, channel = group * g->oc + o;
    int64_t next = v + vectors < v1 ? panel_vectors(FL_VL, g->vectors - v - vectors) * FL_VL : 0;
    const float *panel = weights + o * depth;
    strip t = {
      .rows = (const float *const *)g->rows + s->t0 * g->mc, .rstride = g->mc, .coff = group * g->ic + s->c0, .taps = s->tn, .run = s->cn,
      .w = panel + (s->t0 * g->ic + s->c0) * width, .wtap = g->ic * width, .bias = s->first ? g->bias + group * padded + o : NULL,
      .res = s->first && p->residual ? g->pr + channel : NULL, .y = g->py + channel, .ypix = g->ypix, .rpix = g->rpix,
      .lo = p->alpha, .hi = p->beta, .clamp = s->last && p->act == FL_ACT_CLAMP, .tail = left >= width ? FL_VL : (int)(left - width + FL_VL),
      .next = next ? panel + depth * width + (s->t0 * g->ic + s->c0) * next : NULL, .ahead = s->tn * s->cn * next,
    };
    strip_all(vectors, &t, n);
    if (s->last && p->act > FL_ACT_CLAMP) {
      act_rows r = {t.y, t.ypix, n, (int)(left < width ? left : width), p->alpha, p->beta, g->slope ? g->slope + group * padded + o : NULL};
      act_apply(p->act, &r);
    }
    v += vectors;
  }
}

/* All segments of one group over the located pixels. */
static void gemm_group(const gemm *g, int64_t group, int64_t v0, int64_t v1, int64_t n) {
  int64_t kc = g->p->kc, cut = (g->ic + kc - 1) / kc, cn = round_up((g->ic + cut - 1) / cut, 4);
  int64_t tn = g->ic >= kc ? 1 : kc / g->ic, pieces = (g->taps + tn - 1) / tn;
  tn = (g->taps + pieces - 1) / pieces;
  for (int64_t t0 = 0; t0 < g->taps; t0 += tn)
    for (int64_t c0 = 0; c0 < g->ic; c0 += cn) {
      segment s = {t0, g->taps - t0 < tn ? g->taps - t0 : tn, c0, g->ic - c0 < cn ? g->ic - c0 : cn, t0 + c0 == 0, false};
      s.last = t0 + s.tn == g->taps && c0 + s.cn == g->ic;
      gemm_panels(g, &s, group, v0, v1, n);
    }
}

static void gemm_pixels(const gemm *g, int64_t m0, int64_t m1, int64_t g0, int64_t g1, int64_t v0, int64_t v1) {
  int64_t m = m1 - m0, blocks = (m + g->mc - 1) / g->mc;
  for (int64_t b = 0; b < blocks; b++) {
    int64_t from = m0 + m * b / blocks, n = m0 + m * (b + 1) / blocks - from;
    gemm_locate(g, from, n);
    for (int64_t group = g0; group < g1; group++) gemm_group(g, group, v0, v1, n);
  }
}

/* Parts take pixels; output channels (of one group) or groups when there are few pixels. */
fl_status FL_CONV_GEMM(const fl_call *c) {
  gemm g = gemm_describe(c);
  if (g.p->vl != FL_VL) return FL_PLAN_PARAMS;
  int64_t m = g.y.n * g.y.h * g.y.w, groups = g.p->group, panels = panel_count(g.vectors);
  if (m == 0 || g.y.c == 0) return FL_OK;
  if (m >= 64 * (int64_t)c->parts || panels * groups < c->parts)
    gemm_pixels(&g, fl_split(m, c->part, c->parts), fl_split(m, c->part + 1, c->parts), 0, groups, 0, g.vectors);
  else if (groups >= c->parts) gemm_pixels(&g, 0, m, fl_split(groups, c->part, c->parts), fl_split(groups, c->part + 1, c->parts), 0, g.vectors);
  else {
    int64_t v0 = panel_start(g.vectors, fl_split(panels, c->part, c->parts)), v1 = panel_start(g.vectors, fl_split(panels, c->part + 1, c->parts));
    gemm_pixels(&g, 0, m, 0, groups, v0, v1);
  }
  return FL_OK;
}
