/* y[n,m,o] = bias[m] + sum over c,k of (x[n,c,o*stride+k*dilation-pad] - zx) (w[m,c,k] - zw[m]) in int32, or that rounded back to 8 bits.
   Padding holds zx. One to three spatial axes, any strides. */
#include "gen/params.h"
#include "qlinear/requantize.h"
#include "pool/window.h"

enum { X, W, ZX, ZW, SX, SW, SY, ZY, BIAS };

static bool vector_of(const fl_tensor *t, int32_t size, unsigned dtype) { return t->rank == 1 && t->dims[0] == size && t->dtype == dtype; }

fl_status fl_conv_s8_check(const fl_call *c) {
  const fl_conv_s8_params *p = c->params;
  if ((c->n_in != 4 && c->n_in != 8 && c->n_in != 9) || c->n_out != 1 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *y = c->t[c->n_in], *const *t = c->t;
  const fl_tensor *x = t[X], *w = t[W];
  if (!fl_is_byte(x) || !fl_is_byte(w) || x->rank < 3 || x->rank > 5 || w->rank != x->rank || y->rank != x->rank) return FL_PLAN_PARAMS;
  if (p->group < 1 || x->dims[1] != (int64_t)w->dims[1] * p->group || w->dims[0] % p->group) return FL_PLAN_PARAMS;
  if (y->dims[0] != x->dims[0] || y->dims[1] != w->dims[0] || p->bias != (c->n_in == 9)) return FL_PLAN_PARAMS;
  for (int i = 0; i < 3; i++)
    if (p->strides[i] < 1 || p->pads[i] < 0 || p->dilations[i] < 1) return FL_PLAN_PARAMS;
  if (!vector_of(t[ZX], 1, x->dtype) || !vector_of(t[ZW], w->dims[0], w->dtype)) return FL_PLAN_PARAMS;
  if (c->n_in == 4) return y->dtype == FL_I32 ? FL_OK : FL_PLAN_PARAMS;
  if (!fl_is_byte(y) || !vector_of(t[SX], 1, FL_F32) || !vector_of(t[SW], w->dims[0], FL_F32) || !vector_of(t[SY], 1, FL_F32)) return FL_PLAN_PARAMS;
  if (!vector_of(t[ZY], 1, y->dtype)) return FL_PLAN_PARAMS;
  return c->n_in == 8 || vector_of(t[BIAS], w->dims[0], FL_I32) ? FL_OK : FL_PLAN_PARAMS;
}

typedef struct job {
  const fl_conv_s8_params *p;
  const fl_plane *x, *w;
  const fl_tensor *tx, *tw;
  fl_taps taps[3];
  int32_t channels, zx, zw;
} job;

static int32_t element(const job *j, const void *x, int64_t xo, const void *w, int64_t wo) {
  uint32_t sum = 0;
  for (int32_t a = j->taps[0].first; a < j->taps[0].last; a++)
    for (int32_t b = j->taps[1].first; b < j->taps[1].last; b++)
      for (int32_t e = j->taps[2].first; e < j->taps[2].last; e++) {
        int64_t i = xo + (j->taps[0].at + (int64_t)a * j->p->dilations[0]) * j->x->s[0] +
                    (j->taps[1].at + (int64_t)b * j->p->dilations[1]) * j->x->s[1] + (j->taps[2].at + (int64_t)e * j->p->dilations[2]) * j->x->s[2];
        int64_t k = wo + a * j->w->s[0] + b * j->w->s[1] + e * j->w->s[2];
        for (int32_t c = 0; c < j->channels; c++, i += j->x->cs, k += j->w->cs)
          sum += (uint32_t)((fl_byte_at(j->tx, x, i) - j->zx) * (fl_byte_at(j->tw, w, k) - j->zw));
      }
  return (int32_t)sum;
}

static void put(const fl_call *c, int64_t to, int64_t m, uint32_t sum) {
  const fl_tensor *y = c->t[c->n_in];
  if (c->n_in == 4) {
    ((int32_t *)c->p[4])[to] = (int32_t)sum;
    return;
  }
  if (c->n_in == 9) sum += (uint32_t)((const int32_t *)c->p[BIAS])[m * c->t[BIAS]->strides[0]];
  float scale = *(const float *)c->p[SX] * ((const float *)c->p[SW])[m * c->t[SW]->strides[0]] / *(const float *)c->p[SY];
  fl_put_byte(y, c->p[c->n_in], to, (int32_t)sum, scale, fl_byte_at(c->t[ZY], c->p[ZY], 0));
}

fl_status fl_conv_s8_generic(const fl_call *c) {
  if (fl_elements(c->t[c->n_in]) == 0) return FL_OK;
  const fl_conv_s8_params *p = c->params;
  const fl_tensor *tw = c->t[W];
  fl_plane x = fl_plane_of(c->t[X]), w = fl_plane_of(tw), y = fl_plane_of(c->t[c->n_in]);
  int64_t planes = y.n * y.c, points = (int64_t)y.d[0] * y.d[1] * y.d[2];
  for (int64_t q = fl_split(planes, c->part, c->parts), end = fl_split(planes, c->part + 1, c->parts); q < end; q++) {
    int64_t n = q / y.c, m = q % y.c, first = m / (y.c / p->group) * w.c;
    job j = {p, &x, &w, c->t[X], tw, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, tw->dims[1], fl_byte_at(c->t[ZX], c->p[ZX], 0),
             fl_byte_at(c->t[ZW], c->p[ZW], m * c->t[ZW]->strides[0])};
    for (int64_t r = 0; r < points; r++) {
      int64_t o[3] = {r / y.d[2] / y.d[1], r / y.d[2] % y.d[1], r % y.d[2]};
      for (int a = 0; a < 3; a++) j.taps[a] = fl_taps_of(o[a], p->strides[a], p->pads[a], w.d[a], p->dilations[a], x.d[a]);
      int32_t sum = element(&j, c->p[X], n * x.ns + first * x.cs, c->p[W], m * w.ns);
      put(c, n * y.ns + m * y.cs + o[0] * y.s[0] + o[1] * y.s[1] + o[2] * y.s[2], m, (uint32_t)sum);
    }
  }
  return FL_OK;
}
