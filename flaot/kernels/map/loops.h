/* How an instruction of the map kernel becomes a loop. Integer results are the same whatever the compiler makes of it. */
#ifndef FLAOT_KERNELS_MAP_LOOPS_H
#define FLAOT_KERNELS_MAP_LOOPS_H
#include "map/map.h"

#if defined(__GNUC__) && !defined(__clang__)
#define MAP_IVDEP _Pragma("GCC ivdep")
#else
#define MAP_IVDEP
#endif

#define LOOP1(NAME, T, R, EXPR)                                                              \
  static fl_status NAME(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) { \
    const T *a_ = s[0];                                                                      \
    R *y = y_;                                                                               \
    (void)in;                                                                                \
    MAP_IVDEP for (int32_t i = 0; i < n; i++) { T a = a_[i]; y[i] = (R)(EXPR); }             \
    return FL_OK;                                                                            \
  }

#define LOOP2(NAME, T, R, EXPR)                                                              \
  static fl_status NAME(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) { \
    const T *a_ = s[0], *b_ = s[1];                                                          \
    R *y = y_;                                                                               \
    (void)in;                                                                                \
    MAP_IVDEP for (int32_t i = 0; i < n; i++) { T a = a_[i], b = b_[i]; y[i] = (R)(EXPR); }  \
    return FL_OK;                                                                            \
  }

#define P0 in->arg[0].f
#define P1 in->arg[1].f

#define WHERE(NAME, T)                                                                       \
  static fl_status NAME(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) { \
    const uint8_t *c = s[0];                                                                 \
    const T *a = s[1], *b = s[2];                                                            \
    T *y = y_;                                                                               \
    (void)in;                                                                                \
    MAP_IVDEP for (int32_t i = 0; i < n; i++) { T u = a[i], v = b[i]; y[i] = c[i] ? u : v; } \
    return FL_OK;                                                                            \
  }

static inline float clip1_f32(float x, float low, float high) { x = x < low ? low : x; return x > high ? high : x; }
static inline double clip1_f64(double x, double low, double high) { x = x < low ? low : x; return x > high ? high : x; }

/* Round half to even, saturate. */
#define QUANTIZE(S, T, LOW, HIGH)                                                            \
  static fl_status quantize_##S(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) { \
    const float *x = s[0], *scale = s[1];                                                    \
    const T *zero = s[2];                                                                    \
    T *y = y_;                                                                               \
    (void)in;                                                                                \
    MAP_IVDEP for (int32_t i = 0; i < n; i++) {                                              \
      float q = x[i] / scale[i];                                                             \
      q = q > -262144.0f ? q : -262144.0f, q = q < 262144.0f ? q : 262144.0f; /* NaN is the least */ \
      int32_t v = (int32_t)((q + 12582912.0f) - 12582912.0f) + zero[i];                      \
      y[i] = (T)(v < LOW ? LOW : v > HIGH ? HIGH : v);                                       \
    }                                                                                        \
    return FL_OK;                                                                            \
  }
#define DEQUANTIZE(S, T)                                                                     \
  static fl_status dequantize_##S(const void *const *s, void *y_, int32_t n, const fl_map_instr *in) { \
    const T *x = s[0], *zero = s[2];                                                         \
    const float *scale = s[1];                                                               \
    float *y = y_;                                                                           \
    (void)in;                                                                                \
    MAP_IVDEP for (int32_t i = 0; i < n; i++) y[i] = (float)(int32_t)((uint32_t)x[i] - (uint32_t)zero[i]) * scale[i]; \
    return FL_OK;                                                                            \
  }

#endif
