/* y[.., m, n] = sum over k of (a[.., m, k] - za[.., m]) (b[.., k, n] - zb[.., n]) in int32, or that rounded back to 8 bits. */
#include "gen/params.h"
#include "qlinear/requantize.h"

enum { A, B, ZA, ZB, SA, SB, SY, ZY };

/* Rank and batch dims of t are those of y without its last `drop` axes; the last axis has `size` elements. */
static bool along(const fl_tensor *t, const fl_tensor *y, unsigned batch, int32_t size) {
  if (t->rank != batch + 1) return false;
  for (unsigned i = 0; i < batch; i++)
    if (t->dims[i] != y->dims[i]) return false;
  return t->dims[batch] == size;
}

static bool stack(const fl_tensor *t, const fl_tensor *y, int32_t rows, int32_t columns) {
  if (t->rank != y->rank) return false;
  for (unsigned i = 0; i + 2u < y->rank; i++)
    if (t->dims[i] != y->dims[i]) return false;
  return t->dims[y->rank - 2] == rows && t->dims[y->rank - 1] == columns;
}

fl_status fl_matmul_s8_check(const fl_call *c) {
  if ((c->n_in != 4 && c->n_in != 8) || c->n_out != 1 || c->params_size != 0) return FL_PLAN_PARAMS;
  const fl_tensor *y = c->t[c->n_in], *const *t = c->t;
  if (y->rank < 2 || t[A]->rank < 2 || !fl_is_byte(t[A]) || !fl_is_byte(t[B])) return FL_PLAN_PARAMS;
  unsigned batch = y->rank - 2u;
  int32_t m = y->dims[batch], n = y->dims[batch + 1], k = t[A]->dims[t[A]->rank - 1];
  if (!stack(t[A], y, m, k) || !stack(t[B], y, k, n) || !along(t[ZA], y, batch, m) || !along(t[ZB], y, batch, n)) return FL_PLAN_PARAMS;
  if (t[ZA]->dtype != t[A]->dtype || t[ZB]->dtype != t[B]->dtype || (int64_t)(c->scratch_size / 4) < n) return FL_PLAN_PARAMS;
  if (c->n_in == 4) return y->dtype == FL_I32 ? FL_OK : FL_PLAN_PARAMS;
  if (!fl_is_byte(y) || t[SA]->dtype != FL_F32 || t[SB]->dtype != FL_F32 || t[SY]->dtype != FL_F32 || t[ZY]->dtype != y->dtype) return FL_PLAN_PARAMS;
  return along(t[SA], y, batch, m) && along(t[SB], y, batch, n) && along(t[SY], y, batch, m) && along(t[ZY], y, batch, m) ? FL_OK : FL_PLAN_PARAMS;
}

/* Offset of batch position r plus position `at` on the axis after the batch axes. */
static int64_t offset(const fl_tensor *t, unsigned batch, int64_t r, int64_t at) {
  int64_t o = at * t->strides[batch];
  for (unsigned i = batch; i-- > 0; r /= t->dims[i]) o += r % t->dims[i] * t->strides[i];
  return o;
}

/* sum[n] += a * (b[n] - zb[n]) */
#define DEFINE_ADD(NAME, T)                                                                                                      \
  static void NAME(uint32_t *sum, int32_t a, const T *b, int64_t bs, const T *z, int64_t zs, int32_t n) {                        \
    for (int32_t i = 0; i < n; i++) sum[i] += (uint32_t)(a * ((int32_t)b[i * bs] - (int32_t)z[i * zs]));                         \
  }
DEFINE_ADD(add_u8, uint8_t)
DEFINE_ADD(add_i8, int8_t)

fl_status fl_matmul_s8_generic(const fl_call *c) {
  const fl_tensor *y = c->t[c->n_in], *const *t = c->t;
  unsigned batch = y->rank - 2u;
  int32_t m = y->dims[batch], n = y->dims[batch + 1], depth = t[A]->dims[batch + 1];
  int64_t rows = fl_elements(y) / (n > 0 ? n : 1);
  uint32_t *sum = c->scratch;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t g = r / m, i = r % m, at = offset(t[A], batch, g, i), bt = offset(t[B], batch, g, 0), zt = offset(t[ZB], batch, g, 0);
    int32_t za = fl_byte_at(t[ZA], c->p[ZA], offset(t[ZA], batch, g, i));
    for (int32_t j = 0; j < n; j++) sum[j] = 0;
    for (int32_t k = 0; k < depth; k++) {
      int32_t a = fl_byte_at(t[A], c->p[A], at + (int64_t)k * t[A]->strides[batch + 1]) - za;
      int64_t from = bt + (int64_t)k * t[B]->strides[batch], bs = t[B]->strides[batch + 1], zs = t[ZB]->strides[batch];
      if (t[B]->dtype == FL_U8) add_u8(sum, a, (const uint8_t *)c->p[B] + from, bs, (const uint8_t *)c->p[ZB] + zt, zs, n);
      else add_i8(sum, a, (const int8_t *)c->p[B] + from, bs, (const int8_t *)c->p[ZB] + zt, zs, n);
    }
    int64_t to = offset(y, batch, g, i), ys = y->strides[batch + 1];
    if (c->n_in == 4) {
      for (int32_t j = 0; j < n; j++) ((int32_t *)c->p[4])[to + j * ys] = (int32_t)sum[j];
      continue;
    }
    float sa = ((const float *)c->p[SA])[offset(t[SA], batch, g, i)], sy = ((const float *)c->p[SY])[offset(t[SY], batch, g, i)];
    const float *sb = (const float *)c->p[SB] + offset(t[SB], batch, g, 0);
    int32_t zy = fl_byte_at(t[ZY], c->p[ZY], offset(t[ZY], batch, g, i));
    for (int32_t j = 0; j < n; j++) fl_put_byte(y, c->p[8], to + j * ys, (int32_t)sum[j], sa * sb[(int64_t)j * t[SB]->strides[batch]] / sy, zy);
  }
  return FL_OK;
}
