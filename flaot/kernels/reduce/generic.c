/* y = reduction of x over every axis where y has size 1 and x may have more; any strides.
   Float sums: plain over runs of 32, the runs added with the rounding error carried along, so the error does not grow with length. */
#include "common/math.h"
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"
#include "reduce/kinds.h"

#ifndef FL_HALF_SUMS /* checked once, for both */
fl_status fl_reduce_check(const fl_call *c) {
  const fl_reduce_params *p = c->params;
  if (c->n_in != 1 || c->n_out != 1 || c->params_size != sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  if (x->rank != y->rank || x->dtype != y->dtype || p->kind < 0 || p->kind >= KINDS) return FL_PLAN_PARAMS;
  for (unsigned i = 0; i < x->rank; i++)
    if (y->dims[i] != x->dims[i] && y->dims[i] != 1) return FL_PLAN_PARAMS;
  switch (x->dtype) {
  case FL_F32: case FL_F64: return FL_OK;
  case FL_I32: case FL_I64: case FL_U32: case FL_U64: case FL_I8: case FL_U8: return p->kind == LOG_SUM_EXP ? FL_PLAN_PARAMS : FL_OK;
  case FL_BOOL: return p->kind == MAX || p->kind == MIN ? FL_OK : FL_PLAN_PARAMS;
  default: return FL_PLAN_PARAMS;
  }
}
#endif

/* The reduced axes of x, the longest-running innermost as given. */
typedef struct { int64_t n; unsigned rank; int32_t dims[FL_MAX_RANK]; int64_t strides[FL_MAX_RANK]; } window;

static window reduced(const fl_tensor *x, const fl_tensor *y) {
  window w = {1, 0, {0}, {0}};
  for (unsigned i = 0; i < x->rank; i++) {
    if (y->dims[i] == x->dims[i]) continue;
    w.n *= x->dims[i], w.dims[w.rank] = x->dims[i], w.strides[w.rank++] = x->strides[i];
  }
  return w;
}

typedef struct { const window *w; int32_t at[FL_MAX_RANK]; int64_t offset; } walk;

static void next(walk *s) {
  for (unsigned i = s->w->rank; i-- > 0;) {
    s->offset += s->w->strides[i];
    if (++s->at[i] < s->w->dims[i]) return;
    s->offset -= s->w->strides[i] * s->w->dims[i], s->at[i] = 0;
  }
}

/* Sum of F(v) over the window, v the element as ACC. Sums in float16 run over the elements one by one. */
#ifdef FL_HALF_SUMS
#define FLOAT_SUM(T, F)                                                                                                         \
  T total = 0;                                                                                                                   \
  for (int64_t i = 0; i < w->n; i++, next(&s)) { T v = x[s.offset]; total = sizeof(T) == sizeof(float) ? (T)FL_SUM((float)(total + F)) : total + F; }
#else
enum { RUN = 32 };

#define FLOAT_SUM(T, F)                                                                                                         \
  T total = 0, lost = 0;                                                                                                         \
  for (int64_t i = 0; i < w->n;) {                                                                                               \
    T run = 0;                                                                                                                   \
    for (int64_t end = i + RUN < w->n ? i + RUN : w->n; i < end; i++, next(&s)) { T v = x[s.offset]; run += F; }                 \
    T sum = total + run, part = sum - total;                                                                                     \
    if (sum - sum == 0) lost += (total - (sum - part)) + (run - part);                                                           \
    total = sum;                                                                                                                 \
  }                                                                                                                              \
  total += lost;
#endif

#define REDUCE_FLOAT(T, NAME, SQRT, LOG, EXP, LOWEST, HIGHEST)                                                                   \
  static T NAME(const T *x, const window *w, int kind) {                                                                         \
    walk s = {w, {0}, 0};                                                                                                        \
    T best = kind == MIN ? HIGHEST : LOWEST;                                                                                     \
    switch (kind) {                                                                                                              \
    case MEAN: case SUM: case LOG_SUM: {                                                                                         \
      FLOAT_SUM(T, v)                                                                                                            \
      return kind == MEAN ? total / (T)w->n : kind == SUM ? total : (T)LOG((float)total);                                        \
    }                                                                                                                            \
    case L1: { FLOAT_SUM(T, (v < 0 ? -v : v)) return total; }                                                                    \
    case L2: { FLOAT_SUM(T, v * v) return SQRT(total); }                                                                         \
    case SUM_SQUARE: { FLOAT_SUM(T, v * v) return total; }                                                                       \
    case PROD: {                                                                                                                 \
      T all = 1;                                                                                                                 \
      for (int64_t i = 0; i < w->n; i++, next(&s)) all *= x[s.offset];                                                           \
      return all;                                                                                                                \
    }                                                                                                                            \
    case MIN:                                                                                                                    \
      for (int64_t i = 0; i < w->n; i++, next(&s)) { T v = x[s.offset]; if (v != v) return v; best = v < best ? v : best; }      \
      return best;                                                                                                               \
    default:                                                                                                                     \
      for (int64_t i = 0; i < w->n; i++, next(&s)) { T v = x[s.offset]; if (v != v) return v; best = v > best ? v : best; }      \
      if (kind == MAX || best - best != 0) return best;                                                                          \
      s = (walk){w, {0}, 0};                                                                                                     \
      FLOAT_SUM(T, (T)EXP((float)(v - best)))                                                                                    \
      return best + (T)LOG((float)total);                                                                                        \
    }                                                                                                                            \
  }
REDUCE_FLOAT(float, one_f32, __builtin_sqrtf, fl_logf, fl_expf, -__builtin_inff(), __builtin_inff())

static double root(double v) { /* freestanding: one float root and two Newton steps */
  double r = (double)__builtin_sqrtf((float)v);
  if (!(r > 0) || r - r != 0) return r;
  r = 0.5 * (r + v / r);
  return 0.5 * (r + v / r);
}
REDUCE_FLOAT(double, one_f64, root, fl_logf, fl_expf, -__builtin_inf(), __builtin_inf())

static int64_t whole(float v) { return v > -9e18f && v < 9e18f ? (int64_t)v : 0; }

#define REDUCE_INT(T, U, NAME, LOWEST, HIGHEST)                                                                                  \
  static T NAME(const T *x, const window *w, int kind) {                                                                         \
    walk s = {w, {0}, 0};                                                                                                        \
    T best = kind == MIN ? HIGHEST : LOWEST;                                                                                     \
    U sum = kind == PROD ? 1 : 0;                                                                                                \
    for (int64_t i = 0; i < w->n; i++, next(&s)) {                                                                               \
      T v = x[s.offset];                                                                                                         \
      U u = (U)v;                                                                                                                \
      switch (kind) {                                                                                                            \
      case MAX: best = v > best ? v : best; break;                                                                               \
      case MIN: best = v < best ? v : best; break;                                                                               \
      case PROD: sum *= u; break;                                                                                                \
      case L1: sum += v < 1 ? (U)0 - u : u; break;                                                                               \
      case L2: case SUM_SQUARE: sum += u * u; break;                                                                             \
      default: sum += u; break;                                                                                                  \
      }                                                                                                                          \
    }                                                                                                                            \
    if (kind == MAX || kind == MIN) return best;                                                                                 \
    if (kind == MEAN) return w->n ? (T)((int64_t)(T)sum / w->n) : 0;                                                             \
    if (kind == L2) return (T)whole(__builtin_sqrtf((float)(T)sum));                                                             \
    if (kind == LOG_SUM) return (T)whole(fl_logf((float)(T)sum));                                                                \
    return (T)sum;                                                                                                               \
  }
REDUCE_INT(int32_t, uint32_t, one_i32, INT32_MIN, INT32_MAX)
REDUCE_INT(int64_t, uint64_t, one_i64, INT64_MIN, INT64_MAX)
REDUCE_INT(uint32_t, uint32_t, one_u32, 0, UINT32_MAX)
REDUCE_INT(uint64_t, uint64_t, one_u64, 0, UINT64_MAX)
REDUCE_INT(int8_t, uint32_t, one_i8, INT8_MIN, INT8_MAX)
REDUCE_INT(uint8_t, uint32_t, one_u8, 0, UINT8_MAX)

#define STORE(T, F) ((T *)c->p[1])[yo] = F((const T *)c->p[0] + xo, &w, kind)

fl_status fl_reduce_generic(const fl_call *c) {
  const fl_tensor *x = c->t[0], *y = c->t[1];
  int kind = ((const fl_reduce_params *)c->params)->kind;
  window w = reduced(x, y);
  int64_t n = fl_elements(y);
  for (int64_t r = fl_split(n, c->part, c->parts), end = fl_split(n, c->part + 1, c->parts); r < end; r++) {
    int64_t rest = r, xo = 0, yo = 0;
    for (unsigned i = y->rank; i-- > 0;) {
      int64_t k = rest % y->dims[i];
      rest /= y->dims[i], xo += k * x->strides[i], yo += k * y->strides[i];
    }
    switch (x->dtype) {
    case FL_F32: STORE(float, one_f32); break;
    case FL_F64: STORE(double, one_f64); break;
    case FL_I32: STORE(int32_t, one_i32); break;
    case FL_I64: STORE(int64_t, one_i64); break;
    case FL_U32: STORE(uint32_t, one_u32); break;
    case FL_U64: STORE(uint64_t, one_u64); break;
    case FL_I8: STORE(int8_t, one_i8); break;
    default: STORE(uint8_t, one_u8); break;
    }
  }
  return FL_OK;
}
