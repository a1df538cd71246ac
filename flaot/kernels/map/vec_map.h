/* The map kernel on vectors: float32 instructions by hand, half-precision conversions by F16C, and the loops of masks, indices and
   quantization as the compiler vectorises them. What is rare runs the portable code.
   avx2.c and avx512.c include this with FL_VL 8 and 16. */
#ifndef FLAOT_KERNELS_VEC_MAP_H
#define FLAOT_KERNELS_VEC_MAP_H
#include "common/simd.h"
#include "common/vmath.h"
#include "common/half.h"
#include "map/loops.h"

/* One source: y = EXPR of a, with the instruction's arguments p and q. The rest of the chunk is one masked vector. */
#define VEC1(NAME, EXPR)                                                                          \
  static fl_status vec_##NAME(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) { \
    const float *a_ = s[0];                                                                       \
    float *y = y_;                                                                                \
    vf p = v_set(in->arg[0].f), q = v_set(in->arg[1].f);                                          \
    int32_t i = 0;                                                                                \
    (void)p, (void)q;                                                                             \
    for (; i + FL_VL <= n; i += FL_VL) { vf a = v_load(a_ + i); v_store(y + i, EXPR); }           \
    if (i < n) { vf a = v_load_n(a_ + i, n - i); v_store_n(y + i, EXPR, n - i); }                 \
    return FL_OK;                                                                                 \
  }

#define VEC2(NAME, EXPR)                                                                          \
  static fl_status vec_##NAME(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) { \
    const float *a_ = s[0], *b_ = s[1];                                                           \
    float *y = y_;                                                                                \
    int32_t i = 0;                                                                                \
    (void)in;                                                                                     \
    for (; i + FL_VL <= n; i += FL_VL) { vf a = v_load(a_ + i), b = v_load(b_ + i); v_store(y + i, EXPR); } \
    if (i < n) { vf a = v_load_n(a_ + i, n - i), b = v_load_n(b_ + i, n - i); v_store_n(y + i, EXPR, n - i); } \
    return FL_OK;                                                                                 \
  }

#if FL_VL == 16
FL_INLINE vf v_floor(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
FL_INLINE vf v_ceil(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
FL_INLINE vf v_round(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
FL_INLINE vf v_sqrt(vf x) { return (vf)_mm512_sqrt_ps((__m512)x); }
FL_INLINE vf v_of_half(const uint16_t *p) { return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
FL_INLINE void v_to_half(uint16_t *p, vf v) {
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#else
FL_INLINE vf v_floor(vf x) { return (vf)_mm256_floor_ps((__m256)x); }
FL_INLINE vf v_ceil(vf x) { return (vf)_mm256_ceil_ps((__m256)x); }
FL_INLINE vf v_round(vf x) { return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
FL_INLINE vf v_sqrt(vf x) { return (vf)_mm256_sqrt_ps((__m256)x); }
FL_INLINE vf v_of_half(const uint16_t *p) { return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
FL_INLINE void v_to_half(uint16_t *p, vf v) {
  _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#endif

/* e^x - 1 for x <= 0 without cancellation: (2^n - 1) + 2^n (e^r - 1). */
FL_INLINE vf v_expm1_neg(vf x) {
  vf c = v_max(v_set(-87.0f), x), t = c * 1.44269504f + 12582912.0f, k = t - 12582912.0f;
  vf r = c - k * 0.693359375f;
  r = r + k * 2.12194440e-4f;
  vf q = 0.0013814467f * r + 0.0083687804f;
  q = q * r + 0.0416683942f; q = q * r + 0.1666652011f; q = q * r + 0.4999999341f;
  vf scale = (vf)(((vi)t - 0x4B400000 + 127) << 23);
  return scale * (q * (r * r) + r) + (scale - 1.0f);
}

/* log(1 + t) for 0 <= t <= 1: the error of u = 1 + t is divided out. */
FL_INLINE vf v_log1p(vf t) {
  vf u = 1.0f + t;
  return v_select(u == 1.0f, t, v_log(u) * t / (u - 1.0f));
}

FL_INLINE vf v_abs(vf x) { return (vf)((vi)x & 0x7FFFFFFF); }
FL_INLINE vf v_unit(vf x) { return v_clamp(x, v_set(0.0f), v_set(1.0f)); }
FL_INLINE vf v_gelu(vf x) { return 0.5f * x * (1.0f + v_erf(x * 0.70710678f)); }
FL_INLINE vf v_gelu_tanh(vf x) { return 0.5f * x * (1.0f + v_tanh(0.79788456f * (x + 0.044715f * x * x * x))); }
FL_INLINE vf v_softplus(vf x) { return v_max(v_set(0.0f), x) + v_log1p(v_exp(-v_abs(x))); }
FL_INLINE vf v_mish(vf x) { /* tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) */
  vf e = v_exp(v_min(v_set(30.0f), x)), w = e * (e + 2.0f);
  return x * (w / (w + 2.0f));
}
FL_INLINE vf v_log_all(vf x) { /* denormals too */
  vi tiny = (x < 1.17549435e-38f) & (x > 0.0f);
  return v_log(v_select(tiny, x * 8388608.0f, x)) - v_select(tiny, v_set(15.9423847f), v_set(0.0f));
}

VEC1(relu, v_max(v_set(0.0f), a))
VEC1(sigmoid, v_sigmoid(a))
VEC1(tanh, v_tanh(a))
VEC1(erf, v_erf(a))
VEC1(silu, a * v_sigmoid(p * a))
VEC1(gelu, v_gelu(a))
VEC1(gelu_tanh, v_gelu_tanh(a))
VEC1(leaky_relu, v_select(a < 0.0f, p * a, a))
VEC1(elu, v_select(a < 0.0f, p * v_expm1_neg(v_min(v_set(0.0f), a)), a))
VEC1(celu, v_select(a < 0.0f, p * v_expm1_neg(v_min(v_set(0.0f), a / p)), a))
VEC1(selu, q * v_select(a < 0.0f, p * v_expm1_neg(v_min(v_set(0.0f), a)), a))
VEC1(hard_sigmoid, v_unit(p * a + q))
VEC1(hard_swish, a * v_unit(a * (1.0f / 6.0f) + 0.5f))
VEC1(softplus, v_softplus(a))
VEC1(softsign, a / (1.0f + v_abs(a)))
VEC1(mish, v_mish(a))
VEC1(clip, v_clamp(a, p, q))
VEC1(neg, -a)
VEC1(abs, v_abs(a))
VEC1(floor, v_floor(a))
VEC1(ceil, v_ceil(a))
VEC1(round, v_round(a))
VEC1(sqrt, v_sqrt(a))
VEC1(reciprocal, 1.0f / a)
VEC1(exp, v_exp(a))
VEC1(log, v_log_all(a))
VEC2(add, a + b)
VEC2(sub, a - b)
VEC2(mul, a * b)
VEC2(div, a / b)
VEC2(max, v_select(a == a, v_max(a, b), a))
VEC2(min, v_select(a == a, v_min(a, b), a))
VEC2(prelu, v_select(a < 0.0f, b * a, a))

static fl_status vec_from_half(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) {
  const uint16_t *a = s[0];
  float *y = y_;
  int32_t i = 0;
  (void)in;
  for (; i + FL_VL <= n; i += FL_VL) v_store(y + i, v_of_half(a + i));
  for (; i < n; i++) y[i] = fl_half_to_float(a[i]);
  return FL_OK;
}

static fl_status vec_to_half(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) {
  const float *a = s[0];
  uint16_t *y = y_;
  int32_t i = 0;
  (void)in;
  for (; i + FL_VL <= n; i += FL_VL) v_to_half(y + i, v_load(a + i));
  for (; i < n; i++) y[i] = fl_to_half((double)a[i]);
  return FL_OK;
}

WHERE(vec_where_1, uint8_t)
WHERE(vec_where_4, uint32_t)
WHERE(vec_where_8, uint64_t)
LOOP2(vec_equal, float, uint8_t, a == b)
LOOP2(vec_less, float, uint8_t, a < b)
LOOP2(vec_less_equal, float, uint8_t, a <= b)
LOOP1(vec_not, uint8_t, uint8_t, !a)
LOOP2(vec_and, uint8_t, uint8_t, (a != 0) & (b != 0))
LOOP2(vec_or, uint8_t, uint8_t, (a | b) != 0)
LOOP2(vec_equal_64, int64_t, uint8_t, a == b)
LOOP2(vec_equal_32, int32_t, uint8_t, a == b)
LOOP2(vec_less_32, int32_t, uint8_t, a < b)
LOOP2(vec_less_64, int64_t, uint8_t, a < b)
LOOP2(vec_add_64, uint64_t, uint64_t, a + b)
LOOP2(vec_sub_64, uint64_t, uint64_t, a - b)
LOOP2(vec_mul_64, uint64_t, uint64_t, a * b)
LOOP2(vec_add_32, uint32_t, uint32_t, a + b)
LOOP2(vec_sub_32, uint32_t, uint32_t, a - b)
LOOP2(vec_mul_32, uint32_t, uint32_t, a * b)
LOOP1(vec_f32_of_u8, uint8_t, float, a)
LOOP1(vec_f32_of_i8, int8_t, float, a)
LOOP1(vec_f32_of_i32, int32_t, float, a)
LOOP1(vec_f32_of_i64, int64_t, float, a)
LOOP1(vec_f32_of_bool, uint8_t, float, a != 0)
LOOP1(vec_i64_of_i32, int32_t, int64_t, a)
LOOP1(vec_i32_of_i64, int64_t, int32_t, a)
LOOP1(vec_bool_of_f32, float, uint8_t, a != 0)
QUANTIZE(vec_u8, uint8_t, 0, 255)
QUANTIZE(vec_i8, int8_t, -128, 127)
DEQUANTIZE(vec_u8, uint8_t)
DEQUANTIZE(vec_i8, int8_t)
DEQUANTIZE(vec_i32, int32_t)

#define VEC(CODE, name) case FL_MAP_##CODE: return vec_##name

static fl_map_fn vec_find_f32(const fl_map_instr *in) {
  switch (in->code) {
  VEC(RELU, relu);
  VEC(SIGMOID, sigmoid);
  VEC(TANH, tanh);
  VEC(ERF, erf);
  VEC(SILU, silu);
  VEC(GELU, gelu);
  VEC(GELU_TANH, gelu_tanh);
  VEC(LEAKY_RELU, leaky_relu);
  VEC(ELU, elu);
  VEC(CELU, celu);
  VEC(SELU, selu);
  VEC(HARD_SIGMOID, hard_sigmoid);
  VEC(HARD_SWISH, hard_swish);
  VEC(SOFTPLUS, softplus);
  VEC(SOFTSIGN, softsign);
  VEC(MISH, mish);
  VEC(CLIP, clip);
  VEC(NEG, neg);
  VEC(ABS, abs);
  VEC(FLOOR, floor);
  VEC(CEIL, ceil);
  VEC(ROUND, round);
  VEC(SQRT, sqrt);
  VEC(RECIPROCAL, reciprocal);
  VEC(EXP, exp);
  VEC(LOG, log);
  VEC(ADD, add);
  VEC(SUB, sub);
  VEC(MUL, mul);
  VEC(DIV, div);
  VEC(MAX, max);
  VEC(MIN, min);
  VEC(PRELU, prelu);
  VEC(EQUAL, equal);
  VEC(LESS, less);
  VEC(LESS_EQUAL, less_equal);
  default: return fl_map_portable(in);
  }
}

#define PAIR(from, to) ((uint32_t)(from) | (uint32_t)(to) << 8)

static fl_map_fn vec_find_cast(const fl_map_instr *in) {
  switch (in->type) {
  case PAIR(FL_F16, FL_F32): return vec_from_half;
  case PAIR(FL_F32, FL_F16): return vec_to_half;
  case PAIR(FL_U8, FL_F32): return vec_f32_of_u8;
  case PAIR(FL_I8, FL_F32): return vec_f32_of_i8;
  case PAIR(FL_I32, FL_F32): return vec_f32_of_i32;
  case PAIR(FL_I64, FL_F32): return vec_f32_of_i64;
  case PAIR(FL_BOOL, FL_F32): return vec_f32_of_bool;
  case PAIR(FL_F32, FL_BOOL): return vec_bool_of_f32;
  case PAIR(FL_I32, FL_I64): return vec_i64_of_i32;
  case PAIR(FL_I64, FL_I32): return vec_i32_of_i64;
  default: return fl_map_portable(in);
  }
}

/* Instructions on integers and masks, by code and type T (R for QUANTIZE). */
static fl_map_fn vec_find_other(const fl_map_instr *in) {
  switch (PAIR(in->type & 0xFF, in->code)) {
  case PAIR(FL_BOOL, FL_MAP_NOT): return vec_not;
  case PAIR(FL_BOOL, FL_MAP_AND): return vec_and;
  case PAIR(FL_BOOL, FL_MAP_OR): return vec_or;
  case PAIR(FL_I64, FL_MAP_EQUAL): return vec_equal_64;
  case PAIR(FL_I32, FL_MAP_EQUAL): return vec_equal_32;
  case PAIR(FL_I32, FL_MAP_LESS): return vec_less_32;
  case PAIR(FL_I64, FL_MAP_LESS): return vec_less_64;
  case PAIR(FL_I64, FL_MAP_ADD): return vec_add_64;
  case PAIR(FL_I64, FL_MAP_SUB): return vec_sub_64;
  case PAIR(FL_I64, FL_MAP_MUL): return vec_mul_64;
  case PAIR(FL_I32, FL_MAP_ADD): return vec_add_32;
  case PAIR(FL_I32, FL_MAP_SUB): return vec_sub_32;
  case PAIR(FL_I32, FL_MAP_MUL): return vec_mul_32;
  case PAIR(FL_U8, FL_MAP_DEQUANTIZE): return dequantize_vec_u8;
  case PAIR(FL_I8, FL_MAP_DEQUANTIZE): return dequantize_vec_i8;
  case PAIR(FL_I32, FL_MAP_DEQUANTIZE): return dequantize_vec_i32;
  default: return fl_map_portable(in);
  }
}

static fl_map_fn vec_find(const fl_map_instr *in) {
  uint32_t type = in->type & 0xFF, to = in->type >> 8 & 0xFF;
  size_t size = fl_dtype_size(type);
  switch (in->code) {
  case FL_MAP_CAST: return vec_find_cast(in);
  case FL_MAP_WHERE: return size == 4 ? vec_where_4 : size == 8 ? vec_where_8 : size == 1 ? vec_where_1 : fl_map_portable(in);
  case FL_MAP_QUANTIZE: return to == FL_U8 ? quantize_vec_u8 : to == FL_I8 ? quantize_vec_i8 : fl_map_portable(in);
  default: return type == FL_F32 ? vec_find_f32(in) : vec_find_other(in);
  }
}

#endif
