/* Every instruction for every element type, in portable code, and the table of them. */
#ifndef FLAOT_KERNELS_MAP_PORTABLE_H
#define FLAOT_KERNELS_MAP_PORTABLE_H
#include "common/half.h"
#include "common/math.h"
#include "common/math64.h"
#include "map/loops.h"

/* -- floats: S suffix, T type */
#define SHARED_FLOAT(S, T)                                                                   \
  LOOP1(relu_##S, T, T, a < 0 ? 0 : a)                                                       \
  LOOP1(leaky_relu_##S, T, T, a < 0 ? (T)P0 * a : a)                                         \
  LOOP1(thresholded_relu_##S, T, T, a > (T)P0 ? a : a == a ? 0 : a)                          \
  LOOP1(hard_sigmoid_##S, T, T, unit_##S((T)P0 * a + (T)P1))                                 \
  LOOP1(hard_swish_##S, T, T, a * unit_##S(a / 6 + (T)0.5))                                  \
  LOOP1(softsign_##S, T, T, a / (1 + (a < 0 ? -a : a)))                                      \
  LOOP1(shrink_##S, T, T, a < -(T)P0 ? a + (T)P1 : a > (T)P0 ? a - (T)P1 : a == a ? 0 : a)   \
  LOOP1(clip_##S, T, T, clip1_##S(a, (T)P0, (T)P1))                                          \
  LOOP1(neg_##S, T, T, -a)                                                                   \
  LOOP1(abs_##S, T, T, a < 0 ? -a : a == 0 ? 0 : a)                                          \
  LOOP1(sign_##S, T, T, a > 0 ? 1 : a < 0 ? -1 : a)                                          \
  LOOP1(reciprocal_##S, T, T, 1 / a)                                                         \
  LOOP1(is_nan_##S, T, uint8_t, a != a)                                                      \
  LOOP1(is_inf_##S, T, uint8_t, (P0 != 0 && a < -MAX_##S) || (P1 != 0 && a > MAX_##S))       \
  LOOP2(add_##S, T, T, a + b)                                                                \
  LOOP2(sub_##S, T, T, a - b)                                                                \
  LOOP2(mul_##S, T, T, a * b)                                                                \
  LOOP2(div_##S, T, T, a / b)                                                                \
  LOOP2(max_##S, T, T, a > b || a != a ? a : b)                                              \
  LOOP2(min_##S, T, T, a < b || a != a ? a : b)                                              \
  LOOP2(prelu_##S, T, T, a < 0 ? b * a : a)                                                  \
  LOOP2(fmod_##S, T, T, fl_fmod(a, b))                                                       \
  LOOP2(mod_##S, T, T, fl_mod(a, b))                                                         \
  LOOP2(pow_##S, T, T, fl_pow(a, b))                                                         \
  LOOP2(equal_##S, T, uint8_t, a == b)                                                       \
  LOOP2(less_##S, T, uint8_t, a < b)                                                         \
  LOOP2(less_equal_##S, T, uint8_t, a <= b)                                                  \
  LOOP1(floor_##S, T, T, fl_floor(a))                                                        \
  LOOP1(ceil_##S, T, T, fl_ceil(a))                                                          \
  LOOP1(round_##S, T, T, fl_rint(a))                                                         \
  LOOP1(sqrt_##S, T, T, fl_sqrt(a))                                                          \
  LOOP1(sin_##S, T, T, fl_sin(a))                                                            \
  LOOP1(cos_##S, T, T, fl_cos(a))                                                            \
  LOOP1(tan_##S, T, T, fl_tan(a))                                                            \
  LOOP1(asin_##S, T, T, fl_asin(a))                                                          \
  LOOP1(acos_##S, T, T, fl_acos(a))                                                          \
  LOOP1(atan_##S, T, T, fl_atan(a))                                                          \
  LOOP1(sinh_##S, T, T, fl_sinh(a))                                                          \
  LOOP1(cosh_##S, T, T, fl_cosh(a))                                                          \
  LOOP1(asinh_##S, T, T, fl_asinh(a))                                                        \
  LOOP1(acosh_##S, T, T, fl_acosh(a))                                                        \
  LOOP1(atanh_##S, T, T, fl_atanh(a))                                                        \
  LOOP1(elu_##S, T, T, a < 0 ? (double)P0 * fl_expm1(a) : (double)a)                         \
  LOOP1(celu_##S, T, T, a < 0 ? (double)P0 * fl_expm1(a / (double)P0) : (double)a)           \
  LOOP1(selu_##S, T, T, (double)P1 * (a <= 0 ? (double)P0 * fl_expm1(a) : (double)a))        \
  LOOP1(softplus_##S, T, T, fl_softplus(a))                                                  \
  LOOP1(mish_##S, T, T, (double)a * fl_tanh(fl_softplus(a)))

#define MAX_f32 3.402823466e+38f
#define MAX_f64 1.7976931348623157e+308

static inline float unit_f32(float x) { return clip1_f32(x, 0.0f, 1.0f); }
static inline double unit_f64(double x) { return clip1_f64(x, 0.0, 1.0); }
static inline float gelu_f(float x) { return 0.5f * x * (1.0f + fl_erff(x * 0.70710678f)); }
static inline float gelu_tanh_f(float x) { return 0.5f * x * (1.0f + fl_tanhf(0.79788456f * (x + 0.044715f * x * x * x))); }

SHARED_FLOAT(f32, float)
LOOP1(sigmoid_f32, float, float, fl_sigmoidf(a))
LOOP1(tanh_f32, float, float, fl_tanhf(a))
LOOP1(erf_f32, float, float, fl_erff(a))
LOOP1(silu_f32, float, float, a * fl_sigmoidf(P0 * a))
LOOP1(gelu_f32, float, float, gelu_f(a))
LOOP1(gelu_tanh_f32, float, float, gelu_tanh_f(a))
LOOP1(exp_f32, float, float, fl_expf(a))
LOOP1(log_f32, float, float, fl_logf(a))

SHARED_FLOAT(f64, double)
LOOP1(sigmoid_f64, double, double, fl_sigmoid(a))
LOOP1(tanh_f64, double, double, fl_tanh(a))
LOOP1(erf_f64, double, double, fl_erf(a))
LOOP1(silu_f64, double, double, a * fl_sigmoid((double)P0 * a))
LOOP1(gelu_f64, double, double, 0.5 * a * (1.0 + fl_erf(a * 0.7071067811865476)))
LOOP1(gelu_tanh_f64, double, double, 0.5 * a * (1.0 + fl_tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))))
LOOP1(exp_f64, double, double, fl_exp(a))
LOOP1(log_f64, double, double, fl_log(a))

/* Floats truncate to 64 bits and wrap from there, so every value has a result. */
static inline int64_t whole(double x) {
  if (!(x > -9223372036854775808.0)) return INT64_MIN;
  return x < 9223372036854775808.0 ? (int64_t)x : x < 18446744073709551616.0 ? (int64_t)(uint64_t)x : INT64_MIN;
}

/* -- integers: U is the unsigned type arithmetic wraps in */
#define NEGATIVE_i8(b) ((b) < 0)
#define NEGATIVE_i16(b) ((b) < 0)
#define NEGATIVE_i32(b) ((b) < 0)
#define NEGATIVE_i64(b) ((b) < 0)
#define NEGATIVE_u8(b) 0
#define NEGATIVE_u16(b) 0
#define NEGATIVE_u32(b) 0
#define NEGATIVE_u64(b) 0

#define INTEGER(S, T, U)                                                                     \
  LOOP1(bit_not_##S, T, T, ~(U)a)                                                            \
  LOOP1(shrink_##S, T, T, (float)a < -P0 ? whole((float)a + P1) : (float)a > P0 ? whole((float)a - P1) : 0) \
  LOOP2(add_##S, T, T, (U)a + (U)b)                                                          \
  LOOP2(sub_##S, T, T, (U)a - (U)b)                                                          \
  LOOP2(mul_##S, T, T, (U)a * (U)b)                                                          \
  LOOP2(max_##S, T, T, a > b ? a : b)                                                        \
  LOOP2(min_##S, T, T, a < b ? a : b)                                                        \
  LOOP2(bit_and_##S, T, T, a & b)                                                            \
  LOOP2(bit_or_##S, T, T, a | b)                                                             \
  LOOP2(bit_xor_##S, T, T, a ^ b)                                                            \
  LOOP2(equal_##S, T, uint8_t, a == b)                                                       \
  LOOP2(less_##S, T, uint8_t, a < b)                                                         \
  LOOP2(less_equal_##S, T, uint8_t, a <= b)                                                  \
  static T pow1_##S(T a, T b) {                                                              \
    if (NEGATIVE_##S(b)) return (T)(a == 1 || (U)a + 1 == 0 ? ((b & 1) ? a : 1) : 0);        \
    U r = 1, x = (U)a;                                                                       \
    for (uint64_t e = (uint64_t)b; e; e >>= 1, x *= x) r = e & 1 ? r * x : r;                \
    return (T)r;                                                                             \
  }                                                                                          \
  LOOP2(pow_##S, T, T, pow1_##S(a, b))                                                       \
  DIVISION(div_##S, T, div1_##S(a, b))                                                       \
  DIVISION(mod_##S, T, mod1_##S(a, b))                                                       \
  DIVISION(fmod_##S, T, rem1_##S(a, b))

/* Integer division refuses a zero divisor. */
#define DIVISION(NAME, T, EXPR)                                                              \
  static fl_status NAME(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) { \
    const T *a_ = s[0], *b_ = s[1];                                                          \
    T *y = y_;                                                                               \
    (void)in;                                                                                \
    for (int32_t i = 0; i < n; i++) {                                                        \
      T a = a_[i], b = b_[i];                                                                \
      if (b == 0) return FL_DATA_VALUE;                                                      \
      y[i] = EXPR;                                                                           \
    }                                                                                        \
    return FL_OK;                                                                            \
  }

/* A shift by a negative count or by the width or more leaves only the sign, or nothing. */
#define SIGNED(S, T, U, BITS)                                                                \
  LOOP2(shift_left_##S, T, T, b >= 0 && b < BITS ? (U)a << b : 0)                            \
  LOOP2(shift_right_##S, T, T, a >> (b >= 0 && b < BITS ? b : BITS - 1))                     \
  LOOP1(relu_##S, T, T, a < 0 ? 0 : a)                                                       \
  LOOP1(neg_##S, T, T, (U)0 - (U)a)                                                          \
  LOOP1(abs_##S, T, T, a < 0 ? (U)0 - (U)a : (U)a)                                           \
  LOOP1(sign_##S, T, T, a > 0 ? 1 : a < 0 ? -1 : 0)                                          \
  static T div1_##S(T a, T b) { return b == -1 ? (T)((U)0 - (U)a) : (T)(a / b); }            \
  static T rem1_##S(T a, T b) { return b == -1 ? (T)0 : (T)(a % b); }                        \
  static T mod1_##S(T a, T b) { T r = rem1_##S(a, b); return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r; } \
  INTEGER(S, T, U)

#define UNSIGNED(S, T, U, BITS)                                                              \
  LOOP2(shift_right_##S, T, T, b < BITS ? (U)a >> b : 0)                                     \
  LOOP1(abs_##S, T, T, a)                                                                    \
  LOOP1(sign_##S, T, T, a > 0 ? 1 : 0)                                                       \
  LOOP2(shift_left_##S, T, T, b < BITS ? (U)a << b : 0)                                      \
  static T div1_##S(T a, T b) { return (T)(a / b); }                                         \
  static T rem1_##S(T a, T b) { return (T)(a % b); }                                         \
  static T mod1_##S(T a, T b) { return (T)(a % b); }                                         \
  INTEGER(S, T, U)

SIGNED(i8, int8_t, uint32_t, 8)
SIGNED(i16, int16_t, uint32_t, 16)
SIGNED(i32, int32_t, uint32_t, 32)
SIGNED(i64, int64_t, uint64_t, 64)
UNSIGNED(u8, uint8_t, uint32_t, 8)
UNSIGNED(u16, uint16_t, uint32_t, 16)
UNSIGNED(u32, uint32_t, uint32_t, 32)
UNSIGNED(u64, uint64_t, uint64_t, 64)

/* -- bool: any byte but 0 is true, results are 0 or 1 */
LOOP1(not_bool, uint8_t, uint8_t, !a)
LOOP2(and_bool, uint8_t, uint8_t, (a != 0) & (b != 0))
LOOP2(or_bool, uint8_t, uint8_t, (a | b) != 0)
LOOP2(xor_bool, uint8_t, uint8_t, (a != 0) ^ (b != 0))
LOOP2(equal_bool, uint8_t, uint8_t, (a != 0) == (b != 0))

WHERE(where_1, uint8_t)
WHERE(where_2, uint16_t)
WHERE(where_4, uint32_t)
WHERE(where_8, uint64_t)

/* -- quantization */
QUANTIZE(u8, uint8_t, 0, 255)
QUANTIZE(i8, int8_t, -128, 127)
QUANTIZE(u16, uint16_t, 0, 65535)
QUANTIZE(i16, int16_t, -32768, 32767)
DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(i8, int8_t)
DEQUANTIZE(u16, uint16_t)
DEQUANTIZE(i16, int16_t)
DEQUANTIZE(i32, int32_t)

/* -- casts: floats become integers by whole() */
#define CASTS_TO(N, R, OF_INT, OF_FLOAT)                                                     \
  LOOP1(cast_b8_##N, uint8_t, R, OF_INT(a != 0))                                           \
  LOOP1(cast_u8_##N, uint8_t, R, OF_INT(a))                                                  \
  LOOP1(cast_i8_##N, int8_t, R, OF_INT(a))                                                   \
  LOOP1(cast_u16_##N, uint16_t, R, OF_INT(a))                                                \
  LOOP1(cast_i16_##N, int16_t, R, OF_INT(a))                                                 \
  LOOP1(cast_u32_##N, uint32_t, R, OF_INT(a))                                                \
  LOOP1(cast_i32_##N, int32_t, R, OF_INT(a))                                                 \
  LOOP1(cast_u64_##N, uint64_t, R, OF_INT(a))                                                \
  LOOP1(cast_i64_##N, int64_t, R, OF_INT(a))                                                 \
  LOOP1(cast_f16_##N, uint16_t, R, OF_FLOAT(fl_half_to_float(a)))                                \
  LOOP1(cast_bf16_##N, uint16_t, R, OF_FLOAT(fl_bfloat_to_float(a)))                             \
  LOOP1(cast_f32_##N, float, R, OF_FLOAT(a))                                                 \
  LOOP1(cast_f64_##N, double, R, OF_FLOAT(a))
#define KEEP(v) (v)
#define NONZERO(v) ((v) != 0)
#define TO_HALF(v) fl_to_half((double)(v))
#define TO_BFLOAT(v) fl_to_bfloat((double)(v))
CASTS_TO(b8, uint8_t, NONZERO, NONZERO)
CASTS_TO(u8, uint8_t, KEEP, whole)
CASTS_TO(i8, int8_t, KEEP, whole)
CASTS_TO(u16, uint16_t, KEEP, whole)
CASTS_TO(i16, int16_t, KEEP, whole)
CASTS_TO(u32, uint32_t, KEEP, whole)
CASTS_TO(i32, int32_t, KEEP, whole)
CASTS_TO(u64, uint64_t, KEEP, whole)
CASTS_TO(i64, int64_t, KEEP, whole)
CASTS_TO(f16, uint16_t, TO_HALF, TO_HALF)
CASTS_TO(bf16, uint16_t, TO_BFLOAT, TO_BFLOAT)
CASTS_TO(f32, float, KEEP, KEEP)
CASTS_TO(f64, double, KEEP, KEEP)

/* -- the table */
#define OF_FLOATS(op) [FL_F32] = op##_f32, [FL_F64] = op##_f64
#define OF_SIGNED(op) [FL_I8] = op##_i8, [FL_I16] = op##_i16, [FL_I32] = op##_i32, [FL_I64] = op##_i64
#define OF_UNSIGNED(op) [FL_U8] = op##_u8, [FL_U16] = op##_u16, [FL_U32] = op##_u32, [FL_U64] = op##_u64
#define OF_INTS(op) OF_SIGNED(op), OF_UNSIGNED(op)
#define FIND(CODE, ...) case FL_MAP_##CODE: { static const fl_map_fn f[17] = {__VA_ARGS__}; return f[type]; }
#define OF_CAST(N) {[FL_BOOL] = cast_b8_##N, OF_INTS_CAST(N), [FL_F16] = cast_f16_##N, [FL_BF16] = cast_bf16_##N, \
  [FL_F32] = cast_f32_##N, [FL_F64] = cast_f64_##N}
#define OF_INTS_CAST(N) [FL_U8] = cast_u8_##N, [FL_I8] = cast_i8_##N, [FL_U16] = cast_u16_##N, [FL_I16] = cast_i16_##N, \
  [FL_U32] = cast_u32_##N, [FL_I32] = cast_i32_##N, [FL_U64] = cast_u64_##N, [FL_I64] = cast_i64_##N

static fl_map_fn map_find_cast(unsigned from, unsigned to) {
  static const fl_map_fn f[17][17] = {
    [FL_BOOL] = OF_CAST(b8), [FL_U8] = OF_CAST(u8), [FL_I8] = OF_CAST(i8), [FL_U16] = OF_CAST(u16), [FL_I16] = OF_CAST(i16),
    [FL_U32] = OF_CAST(u32), [FL_I32] = OF_CAST(i32), [FL_U64] = OF_CAST(u64), [FL_I64] = OF_CAST(i64),
    [FL_F16] = OF_CAST(f16), [FL_BF16] = OF_CAST(bf16), [FL_F32] = OF_CAST(f32), [FL_F64] = OF_CAST(f64),
  };
  return f[to][from];
}

static fl_map_fn map_find_where(unsigned type) {
  static const fl_map_fn f[9] = {[1] = where_1, [2] = where_2, [4] = where_4, [8] = where_8};
  return f[fl_dtype_size(type)];
}

static fl_map_fn map_find_unary(uint32_t code, unsigned type) {
  switch (code) {
  FIND(RELU, OF_FLOATS(relu), OF_SIGNED(relu))
  FIND(SIGMOID, OF_FLOATS(sigmoid))
  FIND(TANH, OF_FLOATS(tanh))
  FIND(ERF, OF_FLOATS(erf))
  FIND(SILU, OF_FLOATS(silu))
  FIND(GELU, OF_FLOATS(gelu))
  FIND(GELU_TANH, OF_FLOATS(gelu_tanh))
  FIND(LEAKY_RELU, OF_FLOATS(leaky_relu))
  FIND(THRESHOLDED_RELU, OF_FLOATS(thresholded_relu))
  FIND(ELU, OF_FLOATS(elu))
  FIND(CELU, OF_FLOATS(celu))
  FIND(SELU, OF_FLOATS(selu))
  FIND(HARD_SIGMOID, OF_FLOATS(hard_sigmoid))
  FIND(HARD_SWISH, OF_FLOATS(hard_swish))
  FIND(SOFTPLUS, OF_FLOATS(softplus))
  FIND(SOFTSIGN, OF_FLOATS(softsign))
  FIND(MISH, OF_FLOATS(mish))
  FIND(SHRINK, OF_FLOATS(shrink), OF_INTS(shrink))
  FIND(CLIP, OF_FLOATS(clip))
  FIND(NEG, OF_FLOATS(neg), OF_SIGNED(neg))
  FIND(ABS, OF_FLOATS(abs), OF_INTS(abs))
  FIND(SIGN, OF_FLOATS(sign), OF_INTS(sign))
  FIND(FLOOR, OF_FLOATS(floor))
  FIND(CEIL, OF_FLOATS(ceil))
  FIND(ROUND, OF_FLOATS(round))
  FIND(SQRT, OF_FLOATS(sqrt))
  FIND(RECIPROCAL, OF_FLOATS(reciprocal))
  FIND(BIT_NOT, OF_INTS(bit_not))
  FIND(EXP, OF_FLOATS(exp))
  FIND(LOG, OF_FLOATS(log))
  FIND(SIN, OF_FLOATS(sin))
  FIND(COS, OF_FLOATS(cos))
  FIND(TAN, OF_FLOATS(tan))
  FIND(ASIN, OF_FLOATS(asin))
  FIND(ACOS, OF_FLOATS(acos))
  FIND(ATAN, OF_FLOATS(atan))
  FIND(SINH, OF_FLOATS(sinh))
  FIND(COSH, OF_FLOATS(cosh))
  FIND(ASINH, OF_FLOATS(asinh))
  FIND(ACOSH, OF_FLOATS(acosh))
  FIND(ATANH, OF_FLOATS(atanh))
  default: return 0;
  }
}

static fl_map_fn map_find_other(uint32_t code, unsigned type) {
  switch (code) {
  FIND(ADD, OF_FLOATS(add), OF_INTS(add))
  FIND(SUB, OF_FLOATS(sub), OF_INTS(sub))
  FIND(MUL, OF_FLOATS(mul), OF_INTS(mul))
  FIND(DIV, OF_FLOATS(div), OF_INTS(div))
  FIND(MAX, OF_FLOATS(max), OF_INTS(max))
  FIND(MIN, OF_FLOATS(min), OF_INTS(min))
  FIND(MOD, OF_FLOATS(mod), OF_INTS(mod))
  FIND(FMOD, OF_FLOATS(fmod), OF_INTS(fmod))
  FIND(POW, OF_FLOATS(pow), OF_INTS(pow))
  FIND(PRELU, OF_FLOATS(prelu))
  FIND(BIT_AND, OF_INTS(bit_and))
  FIND(BIT_OR, OF_INTS(bit_or))
  FIND(BIT_XOR, OF_INTS(bit_xor))
  FIND(SHIFT_LEFT, OF_INTS(shift_left))
  FIND(SHIFT_RIGHT, OF_INTS(shift_right))
  FIND(EQUAL, OF_FLOATS(equal), OF_INTS(equal), [FL_BOOL] = equal_bool)
  FIND(LESS, OF_FLOATS(less), OF_INTS(less))
  FIND(LESS_EQUAL, OF_FLOATS(less_equal), OF_INTS(less_equal))
  FIND(AND, [FL_BOOL] = and_bool)
  FIND(OR, [FL_BOOL] = or_bool)
  FIND(XOR, [FL_BOOL] = xor_bool)
  FIND(NOT, [FL_BOOL] = not_bool)
  FIND(IS_NAN, OF_FLOATS(is_nan))
  FIND(IS_INF, OF_FLOATS(is_inf))
  FIND(DEQUANTIZE, [FL_U8] = dequantize_u8, [FL_I8] = dequantize_i8, [FL_U16] = dequantize_u16, [FL_I16] = dequantize_i16,
       [FL_I32] = dequantize_i32)
  default: return 0;
  }
}

static fl_map_fn map_find_quantize(unsigned to) {
  static const fl_map_fn f[17] = {[FL_U8] = quantize_u8, [FL_I8] = quantize_i8, [FL_U16] = quantize_u16, [FL_I16] = quantize_i16};
  return f[to];
}

static fl_map_fn map_find(const fl_map_instr *in) {
  unsigned type = in->type & 0xFF, to = in->type >> 8 & 0xFF;
  if (type > FL_BF16 || to > FL_BF16) return 0;
  switch (in->code) {
  case FL_MAP_CAST: return map_find_cast(type, to);
  case FL_MAP_WHERE: return map_find_where(type);
  case FL_MAP_QUANTIZE: return map_find_quantize(to);
  default: return in->code < 0x100 ? map_find_unary(in->code, type) : map_find_other(in->code, type);
  }
}

#endif
