/* y[r,c,i,j] = mean (or largest weighted neighbour) of bilinear samples of x[batch[r],c] in cell (i,j) of rectangle r. */
#include "flaot/kernel.h"
#include "gen/params.h"

enum { MAX_GRID = 4096 };

fl_status fl_roi_align_f32_check(const fl_call *c) {
  const fl_roi_align_f32_params *p = c->params;
  if (c->n_in != 3 || c->n_out != 1 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *r = c->t[1], *b = c->t[2], *y = c->t[3];
  if (x->dtype != FL_F32 || r->dtype != FL_F32 || b->dtype != FL_I64 || y->dtype != FL_F32) return FL_PLAN_PARAMS;
  if (x->rank != 4 || r->rank != 2 || b->rank != 1 || y->rank != 4 || r->dims[1] != 4) return FL_PLAN_PARAMS;
  if (y->dims[0] != r->dims[0] || b->dims[0] != r->dims[0] || y->dims[1] != x->dims[1]) return FL_PLAN_PARAMS;
  return p->sampling >= 0 && p->sampling <= MAX_GRID && x->dims[2] > 0 && x->dims[3] > 0 ? FL_OK : FL_PLAN_PARAMS;
}

typedef struct cell { int32_t low, high; float weight; bool inside; } cell; /* weight of high */

static cell neighbours(float v, int32_t size) {
  cell a = {0, 0, 0.0f, v >= -1.0f && v <= (float)size};
  if (!a.inside) return a;
  if (v < 0.0f) v = 0.0f;
  if (v >= (float)(size - 1)) a.low = a.high = size - 1; /* before the conversion: size may round up to 2^31 */
  else a.low = (int32_t)v, a.high = a.low + 1, a.weight = v - (float)a.low;
  return a;
}

typedef struct roi { float y, x, h, w; int32_t gh, gw; } roi; /* origin, cell size, samples per cell */

static float pool(const roi *q, const float *x, const fl_tensor *t, int32_t i, int32_t j, bool maximum) {
  float sum = 0.0f, best = -__builtin_inff();
  for (int32_t a = 0; a < q->gh; a++) {
    cell v = neighbours(q->y + (float)i * q->h + ((float)a + 0.5f) * q->h / (float)q->gh, t->dims[2]);
    for (int32_t b = 0; b < q->gw; b++) {
      cell u = neighbours(q->x + (float)j * q->w + ((float)b + 0.5f) * q->w / (float)q->gw, t->dims[3]);
      float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (v.inside && u.inside) {
        const float *top = x + (int64_t)v.low * t->strides[2], *bottom = x + (int64_t)v.high * t->strides[2];
        int64_t left = (int64_t)u.low * t->strides[3], right = (int64_t)u.high * t->strides[3];
        d[0] = (1.0f - v.weight) * (1.0f - u.weight) * top[left], d[1] = (1.0f - v.weight) * u.weight * top[right];
        d[2] = v.weight * (1.0f - u.weight) * bottom[left], d[3] = v.weight * u.weight * bottom[right];
      }
      sum += d[0] + d[1] + d[2] + d[3];
      for (int k = 0; k < 4; k++) best = d[k] > best ? d[k] : best;
    }
  }
  int32_t count = q->gh * q->gw;
  return count == 0 ? 0.0f : maximum ? best : sum / (float)count;
}

static int32_t samples(const fl_roi_align_f32_params *p, float cell_size) {
  if (p->sampling) return p->sampling;
  if (!(cell_size <= (float)MAX_GRID)) return -1;
  if (cell_size <= 0.0f) return 0;
  int32_t n = (int32_t)cell_size;
  return (float)n < cell_size ? n + 1 : n;
}

static bool place(const fl_roi_align_f32_params *p, const float *r, int64_t s, int32_t height, int32_t width, roi *q) {
  float offset = p->half_pixel ? 0.5f : 0.0f;
  q->x = r[0] * p->scale - offset, q->y = r[s] * p->scale - offset;
  float w = r[2 * s] * p->scale - offset - q->x, h = r[3 * s] * p->scale - offset - q->y;
  if (!p->half_pixel) w = w > 1.0f ? w : 1.0f, h = h > 1.0f ? h : 1.0f;
  q->h = h / (float)height, q->w = w / (float)width;
  q->gh = samples(p, q->h), q->gw = samples(p, q->w);
  return q->gh >= 0 && q->gw >= 0;
}

fl_status fl_roi_align_f32_generic(const fl_call *c) {
  const fl_roi_align_f32_params *p = c->params;
  const fl_tensor *x = c->t[0], *rois = c->t[1], *batch = c->t[2], *y = c->t[3];
  int64_t rows = y->dims[0];
  if (fl_elements(y) == 0) return FL_OK;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t n = ((const int64_t *)c->p[2])[r * batch->strides[0]];
    roi q;
    if (n < 0 || n >= x->dims[0]) return FL_DATA_INDEX;
    if (!place(p, (const float *)c->p[1] + r * rois->strides[0], rois->strides[1], y->dims[2], y->dims[3], &q)) return FL_DATA_VALUE;
    for (int32_t ch = 0; ch < y->dims[1]; ch++)
      for (int32_t i = 0; i < y->dims[2]; i++)
        for (int32_t j = 0; j < y->dims[3]; j++) {
          const float *from = (const float *)c->p[0] + n * x->strides[0] + (int64_t)ch * x->strides[1];
          int64_t to = r * y->strides[0] + (int64_t)ch * y->strides[1] + (int64_t)i * y->strides[2] + (int64_t)j * y->strides[3];
          ((float *)c->p[3])[to] = pool(&q, from, x, i, j, p->maximum != 0);
        }
  }
  return FL_OK;
}
