/* y[n,c,o...] = x[n,c] interpolated at grid[n,o...,:]; two or three spatial axes, any strides. */
#include "flaot/kernel.h"
#include "gen/params.h"

fl_status fl_grid_sample_f32_check(const fl_call *c) {
  const fl_grid_sample_f32_params *p = c->params;
  if (c->n_in != 2 || c->n_out != 1 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *g = c->t[1], *y = c->t[2];
  if (x->dtype != FL_F32 || g->dtype != FL_F32 || y->dtype != FL_F32) return FL_PLAN_PARAMS;
  if ((x->rank != 4 && x->rank != 5) || g->rank != x->rank || y->rank != x->rank || g->dims[x->rank - 1] != x->rank - 2) return FL_PLAN_PARAMS;
  if (x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1] || g->dims[0] != x->dims[0]) return FL_PLAN_PARAMS;
  if (p->mode < FL_GRID_NEAREST || p->mode > FL_GRID_CUBIC || p->padding < FL_OUTSIDE_ZEROS || p->padding > FL_OUTSIDE_REFLECTION) return FL_PLAN_PARAMS;
  if (p->mode == FL_GRID_CUBIC && x->rank != 4) return FL_PLAN_PARAMS;
  for (unsigned i = 2; i < x->rank; i++)
    if (x->dims[i] < 1 || x->dims[i] > 1 << 24 || g->dims[i - 1] != y->dims[i]) return FL_PLAN_PARAMS;
  return FL_OK;
}

static float floor_of(float v) { /* |v| below 2^30 */
  float t = (float)(int32_t)v;
  return t > v ? t - 1.0f : t;
}

static float round_of(float v) { /* ties to even */
  float f = floor_of(v), d = v - f;
  if (d != 0.5f) return d > 0.5f ? f + 1.0f : f;
  return (int32_t)f % 2 ? f + 1.0f : f;
}

static float mirror(float v, float low, float high) {
  float range = high - low, far = v < low ? low - v : v - high;
  if (far <= 0.0f) return v;
  if (!(range > 0.0f)) return low;
  int32_t turns = (int32_t)(far / range);
  float rest = far - (float)turns * range;
  return (v < low) == (turns % 2 == 0) ? low + rest : high - rest;
}

typedef struct axis { int32_t size; float low, high; int32_t taps; int64_t index[4]; float weight[4]; } axis;

/* Index of pixel i under the padding, or -1 for zero. */
static int64_t pixel(const axis *a, int32_t padding, float i) {
  if (i >= 0.0f && i <= (float)(a->size - 1)) return (int64_t)i;
  if (padding == FL_OUTSIDE_ZEROS) return -1;
  float v = padding == FL_OUTSIDE_BORDER ? (i < 0.0f ? 0.0f : (float)(a->size - 1)) : mirror(i, a->low, a->high);
  int64_t k = (int64_t)v;
  return k < 0 ? 0 : k >= a->size ? a->size - 1 : k;
}

static void cubic(float r, float *w) {
  const float a = -0.75f;
  float s = 1.0f - r, f = r + 1.0f, e = s + 1.0f;
  w[0] = ((a * f - 5.0f * a) * f + 8.0f * a) * f - 4.0f * a;
  w[1] = ((a + 2.0f) * r - (a + 3.0f)) * r * r + 1.0f;
  w[2] = ((a + 2.0f) * s - (a + 3.0f)) * s * s + 1.0f;
  w[3] = ((a * e - 5.0f * a) * e + 8.0f * a) * e - 4.0f * a;
}

/* Taps and weights for one normalised coordinate. */
static void locate(axis *a, const fl_grid_sample_f32_params *p, int32_t size, float v) {
  float n = (float)size, first;
  a->size = size, a->low = p->align_corners ? 0.0f : -0.5f, a->high = p->align_corners ? n - 1.0f : n - 0.5f;
  v = p->align_corners ? (v + 1.0f) / 2.0f * (n - 1.0f) : ((v + 1.0f) * n - 1.0f) / 2.0f;
  v = v > -1.0e9f ? (v < 1.0e9f ? v : 1.0e9f) : -1.0e9f; /* NaN counts as far outside */
  if (p->mode == FL_GRID_NEAREST) v = round_of(v);
  if (p->mode != FL_GRID_CUBIC && p->padding == FL_OUTSIDE_BORDER && (v < a->low || v > a->high)) v = v < 0.0f ? 0.0f : n - 1.0f;
  if (p->mode != FL_GRID_CUBIC && p->padding == FL_OUTSIDE_REFLECTION) v = mirror(v, a->low, a->high);
  first = floor_of(v);
  a->taps = p->mode == FL_GRID_NEAREST ? 1 : p->mode == FL_GRID_LINEAR ? 2 : 4;
  float r = v - first;
  a->weight[0] = 1.0f;
  if (p->mode == FL_GRID_LINEAR) a->weight[0] = 1.0f - r, a->weight[1] = r;
  if (p->mode == FL_GRID_CUBIC) cubic(r, a->weight), first -= 1.0f;
  for (int32_t k = 0; k < a->taps; k++) a->index[k] = pixel(a, p->padding, first + (float)k);
}

static float sample(const axis *a, const int64_t *s, const float *x) {
  float sum = 0.0f;
  for (int32_t i = 0; i < a[0].taps; i++)
    for (int32_t j = 0; j < a[1].taps; j++)
      for (int32_t k = 0; k < a[2].taps; k++) {
        if (a[0].index[i] < 0 || a[1].index[j] < 0 || a[2].index[k] < 0) continue;
        sum += a[0].weight[i] * a[1].weight[j] * a[2].weight[k] * x[a[0].index[i] * s[0] + a[1].index[j] * s[1] + a[2].index[k] * s[2]];
      }
  return sum;
}

fl_status fl_grid_sample_f32_generic(const fl_call *c) {
  if (fl_elements(c->t[2]) == 0) return FL_OK;
  const fl_grid_sample_f32_params *p = c->params;
  const fl_tensor *x = c->t[0], *g = c->t[1], *y = c->t[2];
  int n = x->rank - 2;
  int64_t s[3] = {0, 0, 0}, points = y->dims[0];
  for (int i = 0; i < n; i++) s[3 - n + i] = x->strides[2 + i], points *= y->dims[2 + i];
  for (int64_t q = fl_split(points, c->part, c->parts), end = fl_split(points, c->part + 1, c->parts); q < end; q++) {
    int64_t rest = q, go = 0, yo = 0;
    for (int i = n; i-- > 0;) {
      int64_t k = rest % y->dims[2 + i];
      rest /= y->dims[2 + i], go += k * g->strides[1 + i], yo += k * y->strides[2 + i];
    }
    const float *at = (const float *)c->p[1] + rest * g->strides[0] + go, *xs = (const float *)c->p[0] + rest * x->strides[0];
    float *ys = (float *)c->p[2] + rest * y->strides[0] + yo;
    axis a[3] = {{1, 0.0f, 0.0f, 1, {0}, {1.0f}}, {1, 0.0f, 0.0f, 1, {0}, {1.0f}}, {1, 0.0f, 0.0f, 1, {0}, {1.0f}}};
    for (int i = 0; i < n; i++) locate(&a[2 - i], p, x->dims[x->rank - 1 - i], at[(int64_t)i * g->strides[g->rank - 1]]);
    for (int32_t ch = 0; ch < x->dims[1]; ch++) ys[(int64_t)ch * y->strides[1]] = sample(a, s, xs + (int64_t)ch * x->strides[1]);
  }
  return FL_OK;
}
