/* Exact int32 sums back to 8 bits. */
#ifndef FLAOT_KERNELS_QLINEAR_REQUANTIZE_H
#define FLAOT_KERNELS_QLINEAR_REQUANTIZE_H
#include "flaot/kernel.h"

static inline bool fl_is_byte(const fl_tensor *t) { return t->dtype == FL_U8 || t->dtype == FL_I8; }

static inline int32_t fl_byte_at(const fl_tensor *t, const void *p, int64_t i) {
  return t->dtype == FL_U8 ? ((const uint8_t *)p)[i] : ((const int8_t *)p)[i];
}

/* saturate(round_half_even(sum * scale) + zero) stored as u8 or i8; NaN counts as 0. */
static inline void fl_put_byte(const fl_tensor *t, void *p, int64_t i, int32_t sum, float scale, int32_t zero) {
  float v = (float)sum * scale;
  v = v > -1024.0f ? (v < 1024.0f ? v : 1024.0f) : v == v ? -1024.0f : 0.0f;
  int32_t r = (int32_t)((v + 12582912.0f) - 12582912.0f) + zero, low = t->dtype == FL_U8 ? 0 : -128;
  r = r < low ? low : r > low + 255 ? low + 255 : r;
  if (t->dtype == FL_U8) ((uint8_t *)p)[i] = (uint8_t)r;
  else ((int8_t *)p)[i] = (int8_t)r;
}
#endif
