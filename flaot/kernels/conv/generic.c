/* Convolution over 1 to 3 spatial axes, any strides, weights as [M, C / group, kernel...].
   Per block of PX output pixels the input offset of every tap is computed once; per tap and channel PX inputs meet OB weights.
   Every sum starts from the bias (sums in float16: the bias comes last) and runs over taps, then channels, so results are the same on
   every machine. */
#include "common/activation.h"
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"

enum { PX = 16, OB = 4, ROW = PX + 1 /* the last entry of a row says that the offsets are consecutive */ };
static const int64_t OUTSIDE = INT64_MIN;

typedef struct geometry { /* spatial axes are three, leading ones of size 1 when there are fewer */
  const fl_conv_f32_params *p;
  int64_t in[3], k[3], out[3], xs[3], ws[3], ys[3], rs[3];
  int64_t taps, pixels;
} geometry;

static void axes(const fl_tensor *t, int64_t *size, int64_t *stride) {
  for (unsigned i = 0; i < 3; i++) {
    bool used = i + t->rank >= 5;
    if (size) size[i] = used ? t->dims[i + t->rank - 3] : 1;
    stride[i] = used ? t->strides[i + t->rank - 3] : 0;
  }
}

#ifndef FL_HALF_SUMS /* checked once, for both */
static bool vector_of(const fl_tensor *t, int32_t n) { return t->dtype == FL_F32 && t->rank == 1 && t->dims[0] == n; }

/* At most 2^31 - 1 elements, so that no product below overflows. */
static bool countable(const fl_tensor *t) {
  int64_t n = 1;
  for (unsigned i = 0; i < t->rank && n <= INT32_MAX; i++) n *= t->dims[i];
  return n <= INT32_MAX;
}

static bool params_fit(const fl_conv_f32_params *p) {
  for (int i = 0; i < 3; i++)
    if (p->strides[i] < 1 || p->dilations[i] < 1 || p->pads[i] < 0) return false;
  return p->group >= 1 && p->bias >> 1 == 0 && p->residual >> 1 == 0 && p->act >= 0 && p->act < FL_ACT_COUNT;
}

fl_status fl_conv_f32_check(const fl_call *c) {
  const fl_conv_f32_params *p = c->params;
  if (c->params_size != sizeof *p || !params_fit(p) || c->n_out != 1) return FL_PLAN_PARAMS;
  if (c->n_in != 2u + (unsigned)p->bias + (unsigned)p->residual + (p->act == FL_ACT_PRELU)) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *w = c->t[1], *y = c->t[c->n_in];
  if (x->dtype != FL_F32 || w->dtype != FL_F32 || y->dtype != FL_F32) return FL_PLAN_PARAMS;
  if (x->rank < 3 || x->rank > 5 || w->rank != x->rank || y->rank != x->rank) return FL_PLAN_PARAMS;
  if (!countable(x) || !countable(w) || !countable(y)) return FL_PLAN_PARAMS;
  if (x->dims[0] != y->dims[0] || w->dims[0] != y->dims[1] || y->dims[1] % p->group) return FL_PLAN_PARAMS;
  if ((int64_t)w->dims[1] * p->group != x->dims[1]) return FL_PLAN_PARAMS;
  const fl_tensor *const *rest = c->t + 2;
  if (p->bias && !vector_of(*rest++, y->dims[1])) return FL_PLAN_PARAMS;
  if (p->residual && ((*rest)->dtype != FL_F32 || !fl_same_dims(*rest, y))) return FL_PLAN_PARAMS;
  if (p->act == FL_ACT_PRELU && !vector_of(rest[p->residual], y->dims[1])) return FL_PLAN_PARAMS;
  size_t room = c->scratch_size / (ROW * sizeof(int64_t));
  for (unsigned i = 2; i < w->rank; i++) {
    if (w->dims[i] < 1) return FL_PLAN_PARAMS;
    room /= (size_t)w->dims[i];
  }
  return room > 0 ? FL_OK : FL_PLAN_PARAMS;
}
#endif

/* Input offsets of output pixels p0..p0+n-1 under every tap. */
static void locate(const geometry *g, int64_t p0, int64_t n, int64_t *offsets) {
  int64_t o[PX][3];
  for (int64_t i = 0; i < n; i++) {
    int64_t p = p0 + i;
    o[i][2] = p % g->out[2], o[i][1] = p / g->out[2] % g->out[1], o[i][0] = p / g->out[2] / g->out[1];
    for (int a = 0; a < 3; a++) o[i][a] = o[i][a] * g->p->strides[a] - g->p->pads[a];
  }
  for (int64_t t = 0; t < g->taps; t++, offsets += ROW) {
    int64_t k[3] = {t / g->k[2] / g->k[1], t / g->k[2] % g->k[1], t % g->k[2]};
    offsets[PX] = 1;
    for (int64_t i = 0; i < PX; i++) {
      int64_t at = 0;
      for (int a = 0; a < 3; a++) {
        int64_t q = i < n ? o[i][a] + k[a] * g->p->dilations[a] : -1;
        at = q < 0 || q >= g->in[a] || at == OUTSIDE ? OUTSIDE : at + q * g->xs[a];
      }
      offsets[i] = at;
      if (at == OUTSIDE || (i > 0 && at != offsets[i - 1] + 1)) offsets[PX] = 0;
    }
  }
}

typedef struct operand { const float *x, *w; int64_t channels, xc, wm, wc; } operand; /* of one group */

static inline void tile(const geometry *g, const operand *d, const int64_t *offsets, const int ob, float acc[][PX]) {
  for (int64_t t = 0; t < g->taps; t++, offsets += ROW) {
    const float *w = d->w + t / g->k[2] / g->k[1] * g->ws[0] + t / g->k[2] % g->k[1] * g->ws[1] + t % g->k[2] * g->ws[2];
    const float *x = d->x;
    for (int64_t c = 0; c < d->channels; c++, x += d->xc, w += d->wc) {
      float gathered[PX];
      const float *in = gathered;
      if (offsets[PX]) in = x + offsets[0];
      else
        for (int i = 0; i < PX; i++) gathered[i] = offsets[i] == OUTSIDE ? 0.0f : x[offsets[i]];
      for (int q = 0; q < ob; q++) {
        float k = w[q * d->wm];
        for (int i = 0; i < PX; i++) acc[q][i] = FL_SUM(acc[q][i] + k * in[i]);
      }
    }
  }
}

static void tile1(const geometry *g, const operand *d, const int64_t *offsets, float acc[][PX]) { tile(g, d, offsets, 1, acc); }
static void tile4(const geometry *g, const operand *d, const int64_t *offsets, float acc[][PX]) { tile(g, d, offsets, OB, acc); }

static int64_t pixel(const geometry *g, const int64_t *stride, int64_t p) {
  return p % g->out[2] * stride[2] + p / g->out[2] % g->out[1] * stride[1] + p / g->out[2] / g->out[1] * stride[0];
}

static float bias_of(const fl_call *c, int64_t m) {
  const fl_conv_f32_params *p = c->params;
  return p->bias ? ((const float *)c->p[2])[m * c->t[2]->strides[0]] : 0.0f;
}

/* What the sums of output channel m start from, and what is added to them in the end. */
#ifdef FL_HALF_SUMS
static float first_of(const fl_call *c, int64_t m) { return (void)c, (void)m, 0.0f; }
static float last_of(const fl_call *c, int64_t m) { return bias_of(c, m); }
#else
static float first_of(const fl_call *c, int64_t m) { return bias_of(c, m); }
static float last_of(const fl_call *c, int64_t m) { return (void)c, (void)m, 0.0f; }
#endif

/* Residual, activation and store of n pixels of output channel m in image b. */
static void finish(const fl_call *c, const geometry *g, int64_t b, int64_t m, int64_t p0, int64_t n, const float *acc) {
  const fl_conv_f32_params *p = g->p;
  const fl_tensor *y = c->t[c->n_in];
  unsigned r = 2 + (unsigned)p->bias, s = r + (unsigned)p->residual;
  float *out = (float *)c->p[c->n_in] + b * y->strides[0] + m * y->strides[1];
  const float *res = p->residual ? (const float *)c->p[r] + b * c->t[r]->strides[0] + m * c->t[r]->strides[1] : NULL;
  float bias = last_of(c, m);
  float slope = p->act == FL_ACT_PRELU ? ((const float *)c->p[s])[m * c->t[s]->strides[0]] : 0.0f;
  for (int64_t i = 0; i < n; i++) {
    float v = acc[i] + bias + (res ? res[pixel(g, g->rs, p0 + i)] : 0.0f);
    out[pixel(g, g->ys, p0 + i)] = fl_activate(p->act, v, p->alpha, p->beta, slope);
  }
}

static geometry describe(const fl_call *c) {
  geometry g = {.p = c->params};
  axes(c->t[0], g.in, g.xs), axes(c->t[1], g.k, g.ws), axes(c->t[c->n_in], g.out, g.ys);
  if (g.p->residual) axes(c->t[2 + g.p->bias], NULL, g.rs);
  g.taps = g.k[0] * g.k[1] * g.k[2], g.pixels = g.out[0] * g.out[1] * g.out[2];
  return g;
}

/* Output channels m..m+ob-1 of one group over one pixel block. */
static void channels(const fl_call *c, const geometry *g, int64_t b, int64_t m, int ob, int64_t p0, int64_t n) {
  const fl_tensor *x = c->t[0], *w = c->t[1];
  int64_t group = m / (w->dims[0] / g->p->group);
  operand d = {(const float *)c->p[0] + b * x->strides[0] + group * w->dims[1] * x->strides[1], (const float *)c->p[1] + m * w->strides[0],
               w->dims[1], x->strides[1], w->strides[0], w->strides[1]};
  float acc[OB][PX];
  for (int q = 0; q < ob; q++)
    for (int i = 0; i < PX; i++) acc[q][i] = first_of(c, m + q);
  (ob == OB ? tile4 : tile1)(g, &d, c->scratch, acc);
  for (int q = 0; q < ob; q++) finish(c, g, b, m + q, p0, n, acc[q]);
}

fl_status fl_conv_f32_generic(const fl_call *c) {
  geometry g = describe(c);
  int64_t blocks = (g.pixels + PX - 1) / PX, m = c->t[1]->dims[0], per_group = m / g.p->group, located = -1;
  int64_t units = (per_group / OB + per_group % OB) * g.p->group, work = c->t[0]->dims[0] * blocks * units;
  for (int64_t i = fl_split(work, c->part, c->parts), end = fl_split(work, c->part + 1, c->parts); i < end; i++) {
    int64_t u = i % units, block = i / units % blocks, b = i / units / blocks;
    int64_t in_group = u % (units / g.p->group), first = in_group < per_group / OB ? in_group * OB : in_group - per_group / OB + per_group / OB * OB;
    int64_t p0 = block * PX, n = g.pixels - p0 < PX ? g.pixels - p0 : PX;
    if (located != block) locate(&g, p0, n, c->scratch), located = block;
    channels(c, &g, b, u / (units / g.p->group) * per_group + first, in_group < per_group / OB ? OB : 1, p0, n);
  }
  return FL_OK;
}
