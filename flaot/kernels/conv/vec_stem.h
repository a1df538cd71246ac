/* Convolution with few input channels, output channels last. A band of input rows is copied once with its padding; then every output
   pixel is regular and no pointer table per tap is needed. The sum is over long runs:
   planes (NCHW, a first layer): tap (c, ky) is a run of kernel-width neighbours, weights in the model's order;
   `last` (channels last): tap ky is a run of kernel width times channels. */
#include "conv/image.h"
#include "conv/vec_act.h"
#include "conv/vec_strip.h"
#include "gen/params.h"

typedef fl_conv_stem_f32_params stem_params;

/* As strip_run, for runs of RUN: with 3 or 7 products per tap the loops of strip_sum cost as much as the products. */
FL_INLINE void stem_run(const int MR, const int NV, const int RUN, const strip *t, int64_t i0, int64_t i1) {
  FL_NO_UNROLL for (int64_t p = i0; p < i1; p += MR) {
    vf c[8][4];
    const float *a[8], *b = t->w;
    strip_start(MR, NV, t, t->ypix + p, t->rpix + p, c);
    FL_UNROLL for (int i = 0; i < MR; i++) a[i] = t->rows[p + i];
    FL_NO_UNROLL for (int64_t q = 0; q < t->taps; q++, b += RUN * NV * FL_VL) {
      int64_t offset = t->offsets[q];
      FL_UNROLL for (int k = 0; k < RUN; k++) strip_step(MR, NV, c, a, offset + k, b + k * NV * FL_VL);
    }
    strip_end(MR, NV, t, t->ypix + p, c);
  }
}

#define FL_STEM(M, N, K) \
  FL_NOINLINE void stem_##N##_##K(const strip *t, int64_t n) { stem_run(M, N, K, t, 0, n / M * M); } \
  FL_NOINLINE void stem_##N##_##K##_rest(const strip *t, int64_t n) { stem_run(1, N, K, t, n / M * M, n); }
typedef void stem_fn(const strip *, int64_t);
#if FL_VL == 16
FL_STEM(8, 1, 3) FL_STEM(8, 2, 3) FL_STEM(8, 3, 3) FL_STEM(6, 4, 3) FL_STEM(8, 1, 7) FL_STEM(8, 2, 7) FL_STEM(8, 3, 7) FL_STEM(6, 4, 7)
static stem_fn *const stem_table[2][4][2] = {
  {{stem_1_3, stem_1_3_rest}, {stem_2_3, stem_2_3_rest}, {stem_3_3, stem_3_3_rest}, {stem_4_3, stem_4_3_rest}},
  {{stem_1_7, stem_1_7_rest}, {stem_2_7, stem_2_7_rest}, {stem_3_7, stem_3_7_rest}, {stem_4_7, stem_4_7_rest}},
};
#else
FL_STEM(8, 1, 3) FL_STEM(6, 2, 3) FL_STEM(4, 3, 3) FL_STEM(8, 1, 7) FL_STEM(6, 2, 7) FL_STEM(4, 3, 7)
static stem_fn *const stem_table[2][3][2] = {
  {{stem_1_3, stem_1_3_rest}, {stem_2_3, stem_2_3_rest}, {stem_3_3, stem_3_3_rest}},
  {{stem_1_7, stem_1_7_rest}, {stem_2_7, stem_2_7_rest}, {stem_3_7, stem_3_7_rest}},
};
#endif

typedef struct stem {
  const stem_params *p;
  image x, y;
  const float *px, *w, *bias, *slope;
  float *py, *copy;                 /* [plane][row of band][column with padding][depth] */
  int64_t planes, depth, rows, columns, vectors, taps, run; /* planes of the copy, floats per pixel in one */
  const float **base;
  int64_t *ypix, *offsets;
} stem;

static stem stem_describe(const fl_call *c) {
  const stem_params *p = c->params;
  stem s = {.p = p, .x = image_of(c->t[0]), .y = image_of(c->t[c->n_in]), .px = c->p[0], .w = c->p[1], .bias = c->p[2], .py = c->p[c->n_in]};
  if (p->act == FL_ACT_PRELU) s.slope = c->p[3];
  s.rows = stem_rows(p->ksize, p->strides, p->dilations, p->band), s.columns = (s.y.w - 1) * p->strides[1] + p->ksize[1];
  s.vectors = (s.y.c + FL_VL - 1) / FL_VL;
  int64_t pixels = p->band * s.y.w;
  s.base = c->scratch, s.ypix = (int64_t *)(s.base + pixels), s.offsets = s.ypix + pixels;
  s.copy = (float *)(s.offsets + s.x.c * p->ksize[0]);
  s.planes = p->last ? 1 : s.x.c, s.depth = p->last ? s.x.c : 1, s.taps = s.planes * p->ksize[0], s.run = s.depth * p->ksize[1];
  for (int64_t q = 0; q < s.taps; q++)
    s.offsets[q] = (q / p->ksize[0] * s.rows + q % p->ksize[0] * p->dilations[0]) * s.columns * s.depth;
  return s;
}

/* One row of w pixels of `depth` floats, sw floats apart, zero outside the image. */
static void stem_row(const float *x, int64_t sw, int64_t w, int64_t depth, int64_t pad, int64_t columns, float *restrict out) {
  int64_t from = pad < columns ? pad : columns, to = pad + w < columns ? pad + w : columns;
  for (int64_t i = 0; i < from * depth; i++) out[i] = 0.0f;
  if (sw == depth)
    for (int64_t i = from * depth; i < to * depth; i++) out[i] = x[i - pad * depth];
  else
    for (int64_t i = from; i < to; i++)
      for (int64_t c = 0; c < depth; c++) out[i * depth + c] = x[(i - pad) * sw + c];
  for (int64_t i = to * depth; i < columns * depth; i++) out[i] = 0.0f;
}

/* Copies what output rows oy.. of image b read, and locates their n pixels. */
static void stem_band(const stem *s, int64_t b, int64_t oy, int64_t n) {
  const stem_params *p = s->p;
  for (int64_t c = 0; c < s->planes; c++)
    for (int64_t r = 0; r < s->rows; r++) {
      int64_t iy = oy * p->strides[0] - p->pads[0] + r;
      bool inside = iy >= 0 && iy < s->x.h;
      const float *row = inside ? s->px + b * s->x.sn + c * s->x.sc + iy * s->x.sh : NULL;
      float *out = s->copy + (c * s->rows + r) * s->columns * s->depth;
      stem_row(row, s->x.sw, inside ? s->x.w : 0, s->depth, p->pads[1], s->columns, out);
    }
  for (int64_t i = 0; i < n; i++) {
    int64_t y = i / s->y.w, x = i % s->y.w;
    s->base[i] = s->copy + (y * p->strides[0] * s->columns + x * p->strides[1]) * s->depth;
    s->ypix[i] = b * s->y.sn + (oy + y) * s->y.sh + x * s->y.sw;
  }
}

static void stem_multiply(const stem *s, int64_t n) {
  const stem_params *p = s->p;
  for (int64_t v = 0; v < s->vectors;) {
    int vectors = panel_vectors(FL_VL, s->vectors - v);
    int64_t width = vectors * FL_VL, o = v * FL_VL, left = s->y.c - o;
    strip t = {
      .rows = (const float *const *)s->base, .offsets = s->offsets, .taps = s->taps, .run = s->run,
      .w = s->w + o * s->taps * s->run, .wtap = s->run * width, .bias = s->bias + o, .y = s->py + o, .ypix = s->ypix, .rpix = s->ypix,
      .lo = p->alpha, .hi = p->beta, .clamp = p->act == FL_ACT_CLAMP, .tail = left >= width ? FL_VL : (int)(left - width + FL_VL),
    };
    if (t.run == 3 || t.run == 7)
      for (int rest = 0; rest < 2; rest++) stem_table[t.run == 7][vectors - 1][rest](&t, n);
    else strip_all(vectors, &t, n);
    if (p->act > FL_ACT_CLAMP) {
      act_rows r = {t.y, s->ypix, n, (int)(left < width ? left : width), p->alpha, p->beta, s->slope ? s->slope + o : NULL};
      act_apply(p->act, &r);
    }
    v += vectors;
  }
}

/* Parts take output rows. */
fl_status FL_CONV_STEM(const fl_call *c) {
  if (((const stem_params *)c->params)->vl != FL_VL) return FL_PLAN_PARAMS;
  stem s = stem_describe(c);
  int64_t rows = s.y.n * s.y.h, end = fl_split(rows, c->part + 1, c->parts);
  if (s.y.w == 0 || s.y.c == 0) return FL_OK;
  for (int64_t r = fl_split(rows, c->part, c->parts); r < end;) {
    int64_t b = r / s.y.h, oy = r % s.y.h, n = s.y.h - oy;
    if (n > s.p->band) n = s.p->band;
    if (n > end - r) n = end - r;
    stem_band(&s, b, oy, n * s.y.w);
    stem_multiply(&s, n * s.y.w);
    r += n;
  }
  return FL_OK;
}
