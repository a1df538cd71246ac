/* maxpool of bytes without indices where channels are contiguous; anything else goes to the portable kernel. The loops over channels
   are plain C that the compiler turns into byte maxima. Included by avx2_max.c and avx512_max.c. */
#include "gen/params.h"
#include "pool/window.h"

fl_status fl_maxpool_generic(const fl_call *c);

#define DEFINE_POINT(NAME, T, LOWEST)                                                                                            \
  static void NAME(const T *x, T *restrict y, int64_t n, const fl_taps *t, const int64_t *step) {                                \
    for (int64_t i = 0; i < n; i++) y[i] = LOWEST;                                                                               \
    for (int32_t a = t[0].first; a < t[0].last; a++)                                                                             \
      for (int32_t b = t[1].first; b < t[1].last; b++)                                                                           \
        for (int32_t e = t[2].first; e < t[2].last; e++) {                                                                       \
          const T *restrict q = x + a * step[0] + b * step[1] + e * step[2];                                                     \
          for (int64_t i = 0; i < n; i++) y[i] = q[i] > y[i] ? q[i] : y[i];                                                      \
        }                                                                                                                        \
  }
DEFINE_POINT(point_i8, int8_t, INT8_MIN)
DEFINE_POINT(point_u8, uint8_t, 0)

static fl_status bytes(const fl_call *c) {
  if (fl_elements(c->t[1]) == 0) return FL_OK;
  const fl_maxpool_params *p = c->params;
  fl_plane x = fl_plane_of(c->t[0]), y = fl_plane_of(c->t[1]);
  unsigned dtype = c->t[0]->dtype;
  if (c->n_out == 2 || (dtype != FL_I8 && dtype != FL_U8) || x.cs != 1 || y.cs != 1) return fl_maxpool_generic(c);
  int64_t rows = y.n * y.d[0] * y.d[1], step[3];
  for (int i = 0; i < 3; i++) step[i] = p->dilation[i] * x.s[i];
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t o[3] = {r / y.d[1] % y.d[0], r % y.d[1], 0}, n = r / y.d[1] / y.d[0];
    for (; o[2] < y.d[2]; o[2]++) {
      fl_taps t[3];
      for (int a = 0; a < 3; a++) t[a] = fl_taps_of(o[a], p->stride[a], p->begin[a], p->window[a], p->dilation[a], x.d[a]);
      int64_t from = n * x.ns + t[0].at * x.s[0] + t[1].at * x.s[1] + t[2].at * x.s[2];
      int64_t to = n * y.ns + o[0] * y.s[0] + o[1] * y.s[1] + o[2] * y.s[2];
      if (dtype == FL_I8) point_i8((const int8_t *)c->p[0] + from, (int8_t *)c->p[1] + to, x.c, t, step);
      else point_u8((const uint8_t *)c->p[0] + from, (uint8_t *)c->p[1] + to, x.c, t, step);
    }
  }
  return FL_OK;
}
