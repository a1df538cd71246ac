/* y[n,c,o...] = max, mean or p-norm of x over the window at o; x and y of rank 3 to 5, any strides. */
#include "common/math.h"
#include "common/sum.h"
#include "gen/params.h"
#include "pool/window.h"

#ifndef FL_HALF_SUMS /* checked once, for both */
/* Floats the row buffer of the vector variants needs. */
static int64_t row_floats(const fl_pool_f32_params *p, int64_t in, int64_t out) {
  int64_t used = (out - 1) * p->stride[2] + (int64_t)(p->window[2] - 1) * p->dilation[2] + 1, whole = in + p->begin[2];
  return used > whole ? used : whole;
}

fl_status fl_pool_f32_check(const fl_call *c) {
  const fl_pool_f32_params *p = c->params;
  if (c->n_in != 1 || c->n_out != 1 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  if (x->dtype != FL_F32 || y->dtype != FL_F32 || x->rank < 3 || x->rank > 5 || y->rank != x->rank) return FL_PLAN_PARAMS;
  if (x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1] || p->mode < FL_POOL_MAX || p->mode > FL_POOL_NORM) return FL_PLAN_PARAMS;
  if (!fl_window_ok(p->window, p->stride, p->dilation, p->begin, p->end) || (p->mode == FL_POOL_NORM && p->p < 1)) return FL_PLAN_PARAMS;
  int64_t row = row_floats(p, x->dims[x->rank - 1], y->dims[y->rank - 1]);
  return row <= (int64_t)(c->scratch_size / sizeof(float)) ? FL_OK : FL_PLAN_PARAMS;
}
#endif

static float root(float sum, int32_t p) {
  if (p == 1) return sum;
  return sum > 0.0f ? fl_expf(fl_logf(sum) / (float)p) : sum;
}

static float power(float v, int32_t p) {
  float base = v < 0.0f ? -v : v, r = 1.0f;
  for (int32_t n = p; n > 0; n >>= 1, base *= base) r = n & 1 ? r * base : r;
  return r;
}

typedef struct window { const fl_pool_f32_params *p; fl_taps t[3]; const int64_t *s; float count; } window;

static float reduce(const float *x, const window *w) {
  const fl_pool_f32_params *p = w->p;
  float acc = p->mode == FL_POOL_MAX ? -__builtin_inff() : 0.0f;
  for (int32_t i = w->t[0].first; i < w->t[0].last; i++)
    for (int32_t j = w->t[1].first; j < w->t[1].last; j++)
      for (int32_t k = w->t[2].first; k < w->t[2].last; k++) {
        float v = x[(w->t[0].at + (int64_t)i * p->dilation[0]) * w->s[0] + (w->t[1].at + (int64_t)j * p->dilation[1]) * w->s[1] +
                    (w->t[2].at + (int64_t)k * p->dilation[2]) * w->s[2]];
        if (p->mode == FL_POOL_MAX) acc = v > acc || v != v ? v : acc;
        else acc = FL_SUM(acc + (p->mode == FL_POOL_MEAN ? v : power(v, p->p)));
      }
  return p->mode == FL_POOL_MEAN ? acc / w->count : p->mode == FL_POOL_NORM ? root(acc, p->p) : acc;
}

/* What the sum of a window is divided by. */
static float divisor(const fl_pool_f32_params *p, const fl_taps *t, const fl_plane *x) {
  float n = 1.0f;
  for (int a = 0; a < 3; a++)
    n *= (float)(p->include ? fl_taps_padded(t[a].at, p->window[a], p->dilation[a], x->d[a], p->end[a]) : t[a].last - t[a].first);
  return n > 0.0f ? n : 1.0f;
}

fl_status fl_pool_f32_generic(const fl_call *c) {
  if (fl_elements(c->t[1]) == 0) return FL_OK;
  const fl_pool_f32_params *p = c->params;
  fl_plane x = fl_plane_of(c->t[0]), y = fl_plane_of(c->t[1]);
  int64_t rows = y.n * y.c * y.d[0] * y.d[1];
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t h = r % y.d[1], d = r / y.d[1] % y.d[0], ch = r / y.d[1] / y.d[0] % y.c, n = r / y.d[1] / y.d[0] / y.c;
    const float *in = (const float *)c->p[0] + n * x.ns + ch * x.cs;
    float *out = (float *)c->p[1] + n * y.ns + ch * y.cs + d * y.s[0] + h * y.s[1];
    window w = {p, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, x.s, 1.0f};
    w.t[0] = fl_taps_of(d, p->stride[0], p->begin[0], p->window[0], p->dilation[0], x.d[0]);
    w.t[1] = fl_taps_of(h, p->stride[1], p->begin[1], p->window[1], p->dilation[1], x.d[1]);
    for (int32_t o = 0; o < y.d[2]; o++) {
      w.t[2] = fl_taps_of(o, p->stride[2], p->begin[2], p->window[2], p->dilation[2], x.d[2]);
      w.count = divisor(p, w.t, &x);
      out[o * y.s[2]] = reduce(in, &w);
    }
  }
  return FL_OK;
}
