/* MaxPool of float32, int8 or uint8 with an optional int64 tensor of flat indices; any strides. */
#include "gen/params.h"
#include "pool/window.h"

fl_status fl_maxpool_check(const fl_call *c) {
  const fl_maxpool_params *p = c->params;
  if (c->n_in != 1 || c->n_out < 1 || c->n_out > 2 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  if ((x->dtype != FL_F32 && x->dtype != FL_I8 && x->dtype != FL_U8) || y->dtype != x->dtype) return FL_PLAN_PARAMS;
  if (x->rank < 3 || x->rank > 5 || y->rank != x->rank || x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1]) return FL_PLAN_PARAMS;
  if (c->n_out == 2 && (c->t[2]->dtype != FL_I64 || !fl_same_dims(y, c->t[2]))) return FL_PLAN_PARAMS;
  return fl_window_ok(p->window, p->stride, p->dilation, p->begin, p->end) ? FL_OK : FL_PLAN_PARAMS;
}

typedef struct spot { int64_t a[3]; } spot;

#define DEFINE_BEST(NAME, T, LOWEST)                                                                                             \
  static T NAME(const T *x, const int64_t *s, const fl_maxpool_params *p, const fl_taps *t, spot *where) {                       \
    T best = LOWEST;                                                                                                             \
    bool found = false;                                                                                                          \
    for (int32_t i = t[0].first; i < t[0].last; i++)                                                                             \
      for (int32_t j = t[1].first; j < t[1].last; j++)                                                                           \
        for (int32_t k = t[2].first; k < t[2].last; k++) {                                                                       \
          int64_t a = t[0].at + (int64_t)i * p->dilation[0], b = t[1].at + (int64_t)j * p->dilation[1];                          \
          int64_t e = t[2].at + (int64_t)k * p->dilation[2];                                                                     \
          T v = x[a * s[0] + b * s[1] + e * s[2]];                                                                               \
          if (found && !(v > best)) continue;                                                                                    \
          best = v, found = true, where->a[0] = a, where->a[1] = b, where->a[2] = e;                                             \
        }                                                                                                                        \
    return best;                                                                                                                 \
  }
DEFINE_BEST(best_f32, float, -__builtin_inff())
DEFINE_BEST(best_i8, int8_t, INT8_MIN)
DEFINE_BEST(best_u8, uint8_t, 0)

static int64_t flat(const spot *w, const fl_plane *x, int64_t plane, bool column_major) {
  int64_t inside = column_major ? w->a[0] + x->d[0] * (w->a[1] + x->d[1] * w->a[2]) : (w->a[0] * x->d[1] + w->a[1]) * x->d[2] + w->a[2];
  return plane * x->d[0] * x->d[1] * x->d[2] + inside;
}

fl_status fl_maxpool_generic(const fl_call *c) {
  if (fl_elements(c->t[1]) == 0) return FL_OK;
  const fl_maxpool_params *p = c->params;
  fl_plane x = fl_plane_of(c->t[0]), y = fl_plane_of(c->t[1]), z = fl_plane_of(c->t[c->n_out]);
  int64_t planes = y.n * y.c, points = (int64_t)y.d[0] * y.d[1] * y.d[2];
  for (int64_t q = fl_split(planes, c->part, c->parts), end = fl_split(planes, c->part + 1, c->parts); q < end; q++) {
    int64_t n = q / y.c, ch = q % y.c, from = n * x.ns + ch * x.cs;
    for (int64_t r = 0; r < points; r++) {
      int64_t o[3] = {r / y.d[2] / y.d[1], r / y.d[2] % y.d[1], r % y.d[2]};
      int64_t to = n * y.ns + ch * y.cs + o[0] * y.s[0] + o[1] * y.s[1] + o[2] * y.s[2];
      fl_taps t[3];
      for (int a = 0; a < 3; a++) t[a] = fl_taps_of(o[a], p->stride[a], p->begin[a], p->window[a], p->dilation[a], x.d[a]);
      spot w = {{0, 0, 0}};
      switch (c->t[0]->dtype) {
      case FL_F32: ((float *)c->p[1])[to] = best_f32((const float *)c->p[0] + from, x.s, p, t, &w); break;
      case FL_I8: ((int8_t *)c->p[1])[to] = best_i8((const int8_t *)c->p[0] + from, x.s, p, t, &w); break;
      default: ((uint8_t *)c->p[1])[to] = best_u8((const uint8_t *)c->p[0] + from, x.s, p, t, &w); break;
      }
      if (c->n_out == 2) ((int64_t *)c->p[2])[n * z.ns + ch * z.cs + o[0] * z.s[0] + o[1] * z.s[1] + o[2] * z.s[2]] = flat(&w, &x, q, p->column_major != 0);
    }
  }
  return FL_OK;
}
