/* float16 and bfloat16 bits to float and back, rounding to nearest even; NaN stays NaN, overflow becomes infinity. */
#ifndef FLAOT_KERNELS_HALF_H
#define FLAOT_KERNELS_HALF_H
#include <stdint.h>

typedef union fl_bits_half { float f; uint32_t u; } fl_bits_half;

static inline float fl_from_bfloat(uint16_t h) { fl_bits_half b; b.u = (uint32_t)h << 16; return b.f; }

static inline float fl_from_half(uint16_t h) {
  fl_bits_half b, scale;
  uint32_t magnitude = h & 0x7FFFu, sign = (uint32_t)(h & 0x8000u) << 16;
  scale.u = 0x77800000u; /* 2^112 moves the exponent's bias; denormals become normal on the way */
  b.u = magnitude << 13;
  b.f *= scale.f;
  if (magnitude >= 0x7C00u) b.u = 0x7F800000u | magnitude << 13;
  b.u |= sign;
  return b.f;
}

/* Round to odd: so that a second rounding, to fewer bits, is the only one. */
static inline float fl_narrow(double x) {
  fl_bits_half b;
  b.f = (float)x;
  double back = (double)b.f;
  if (back != x && x == x && (b.u & 1) == 0 && (b.u & 0x7F800000u) != 0x7F800000u) b.u += (back < x) == (x > 0.0) ? 1u : (b.u & 0x7FFFFFFFu ? 0xFFFFFFFFu : 0u);
  return b.f;
}

static inline uint16_t fl_to_bfloat(double x) {
  fl_bits_half b;
  b.f = fl_narrow(x);
  if (b.f != b.f) return (uint16_t)(b.u >> 16 | 0x40u);
  return (uint16_t)((b.u + 0x7FFFu + (b.u >> 16 & 1u)) >> 16);
}

static inline uint16_t fl_to_half(double x) {
  fl_bits_half b, half;
  b.f = fl_narrow(x);
  uint32_t sign = b.u >> 16 & 0x8000u, m = b.u & 0x7FFFFFFFu;
  if (m > 0x7F800000u) return (uint16_t)(sign | 0x7E00u);
  if (m >= 0x47800000u) return (uint16_t)(sign | 0x7C00u); /* 65536 and more */
  if (m < 0x38800000u) {                                   /* denormal result: let an addition align and round */
    b.u = m, half.u = 0x3F000000u;                         /* 0.5: its last bit is worth 2^-24 */
    b.f += half.f;
    return (uint16_t)(sign | (b.u - half.u));
  }
  return (uint16_t)(sign | (m - 0x38000000u + 0xFFFu + (m >> 13 & 1u)) >> 13);
}

#endif
