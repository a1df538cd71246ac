/* reduce of float32 where x has a contiguous axis: reduced along it, or four vectors of outputs side by side, or many outputs of a few
   neighbours each; sums, extremes and what follows from them. Other kinds, types and strides take the portable code.
   Sums: at most 256 numbers per lane, then on in float64 (along an axis) or in a second level of lanes (side by side). */
#include "common/vmath.h"
#include "flaot/kernel.h"
#include "gen/params.h"
#include "reduce/kinds.h"

fl_status fl_reduce_generic(const fl_call *c);

typedef struct axes { unsigned rank; int64_t n, dims[FL_MAX_RANK], xs[FL_MAX_RANK], ys[FL_MAX_RANK]; } axes;

/* One of run (reduced) and columns (kept) is not 0; few outputs lie xs and ys floats apart when the run is shorter than a vector. */
typedef struct plan { axes kept, reduced; int64_t run, columns, few, xs, ys; } plan;

static void axes_push(axes *a, int64_t d, int64_t xs, int64_t ys) {
  if (a->rank && a->xs[a->rank - 1] == xs * d && a->ys[a->rank - 1] == ys * d) { /* joins the axis outside it */
    a->dims[a->rank - 1] *= d, a->xs[a->rank - 1] = xs, a->ys[a->rank - 1] = ys, a->n *= d;
    return;
  }
  a->dims[a->rank] = d, a->xs[a->rank] = xs, a->ys[a->rank++] = ys, a->n *= d;
}

/* Takes the contiguous axis out of a; 0 without one. */
static int64_t axes_take(axes *a, bool y_too) {
  for (unsigned i = a->rank; i-- > 0;) {
    if (a->xs[i] != 1 || (y_too && a->ys[i] != 1)) continue;
    int64_t d = a->dims[i];
    for (unsigned j = i; j + 1 < FL_MAX_RANK; j++) a->dims[j] = a->dims[j + 1], a->xs[j] = a->xs[j + 1], a->ys[j] = a->ys[j + 1];
    a->rank--, a->n /= d;
    return d;
  }
  return 0;
}

static bool plan_of(const fl_call *c, plan *p) {
  const fl_tensor *x = c->t[0], *y = c->t[1];
  p->kept = p->reduced = (axes){.n = 1};
  for (unsigned i = 0; i < x->rank; i++) {
    if (x->dims[i] == 0) return false;
    if (x->dims[i] == 1) continue;
    if (y->dims[i] == 1) axes_push(&p->reduced, x->dims[i], x->strides[i], 0);
    else axes_push(&p->kept, x->dims[i], x->strides[i], y->strides[i]);
  }
  p->run = axes_take(&p->reduced, false);
  p->columns = p->run ? 0 : axes_take(&p->kept, true);
  if (p->run && p->run < FL_VL && p->reduced.rank == 0 && p->kept.rank > 0) {
    unsigned i = --p->kept.rank;
    p->few = p->kept.dims[i], p->xs = p->kept.xs[i], p->ys = p->kept.ys[i], p->kept.n /= p->few;
    return true;
  }
  return p->reduced.rank + (p->run > 0) > 0 && (p->run >= FL_VL || p->columns >= 4);
}

static int64_t axes_at(const axes *a, int64_t r, int64_t *yo) {
  int64_t xo = 0;
  for (unsigned i = a->rank; i-- > 0;) {
    int64_t k = r % a->dims[i];
    r /= a->dims[i], xo += k * a->xs[i], *yo += k * a->ys[i];
  }
  return xo;
}

enum { TAKE_SUM, TAKE_ABS, TAKE_SQUARE, TAKE_MAX, TAKE_MIN };

FL_INLINE vf take(const int how, vf sum, vf v, vi *bad) {
  switch (how) {
  case TAKE_SUM: return sum + v;
  case TAKE_ABS: return sum + v_max(v, -v);
  case TAKE_SQUARE: return sum + v * v;
  default: *bad |= v != v; return how == TAKE_MAX ? v_max(sum, v) : v_min(sum, v);
  }
}

FL_INLINE vf start(const int how) { return how == TAKE_MAX ? v_set(-__builtin_inff()) : how == TAKE_MIN ? v_set(__builtin_inff()) : (vf){0}; }

FL_INLINE float finish(int kind, float v, float n) {
  return kind == MEAN ? v / n : kind == L2 ? __builtin_sqrtf(v) : v;
}

/* One output: runs of n contiguous elements. */
FL_INLINE float along(const int how, const float *x, const axes *outer, int64_t n) {
  double total = 0;
  vf best = start(how);
  vi bad = {0};
  for (int64_t r = 0; r < outer->n; r++) {
    int64_t none = 0, i = 0;
    const float *p = x + axes_at(outer, r, &none);
    while (i + FL_VL <= n) {
      vf a = start(how), b = a, e = a, f = a;
      int64_t end = n - i > 1024 * FL_VL ? i + 1024 * FL_VL : n;
      for (; i + 4 * FL_VL <= end; i += 4 * FL_VL) {
        a = take(how, a, v_load(p + i), &bad), b = take(how, b, v_load(p + i + FL_VL), &bad);
        e = take(how, e, v_load(p + i + 2 * FL_VL), &bad), f = take(how, f, v_load(p + i + 3 * FL_VL), &bad);
      }
      for (; i + FL_VL <= end; i += FL_VL) a = take(how, a, v_load(p + i), &bad);
      if (how >= TAKE_MAX) best = how == TAKE_MAX ? v_max(best, v_max(v_max(a, b), v_max(e, f))) : v_min(best, v_min(v_min(a, b), v_min(e, f)));
      else total += (double)v_sum((a + b) + (e + f));
    }
    for (; i < n; i++) {
      if (how >= TAKE_MAX) best = take(how, best, v_set(p[i]), &bad);
      else total += (double)(how == TAKE_ABS ? __builtin_fabsf(p[i]) : how == TAKE_SQUARE ? p[i] * p[i] : p[i]);
    }
  }
  if (how < TAKE_MAX) return (float)total;
  if (v_largest((vf)(bad & 0x3F800000)) > 0.0f) return __builtin_nanf("");
  return how == TAKE_MAX ? v_largest(best) : -v_largest(-best);
}

/* NV vectors of outputs side by side (the last with `tail` lanes), each the reduction of outer->n elements. */
FL_INLINE void beside(const int how, const int NV, const float *x, const axes *outer, int tail, vf out[]) {
  vf sum[4], level[4];
  vi bad[4];
  FL_UNROLL for (int j = 0; j < NV; j++) sum[j] = level[j] = start(how), bad[j] = (vi){0};
  int64_t inner = outer->rank ? outer->dims[outer->rank - 1] : 1, step = outer->rank ? outer->xs[outer->rank - 1] : 0, count = 0;
  for (int64_t r = 0; r < outer->n; r += inner) {
    int64_t none = 0;
    const float *p = x + axes_at(outer, r, &none);
    for (int64_t i = 0; i < inner; i++, p += step) {
      FL_UNROLL for (int j = 0; j < NV; j++)
        level[j] = take(how, level[j], j == NV - 1 && tail < FL_VL ? v_load_n(p + j * FL_VL, tail) : v_load(p + j * FL_VL), &bad[j]);
      if (how < TAKE_MAX && (++count & 255) == 0)
        FL_UNROLL for (int j = 0; j < NV; j++) sum[j] += level[j], level[j] = (vf){0};
    }
  }
  FL_UNROLL for (int j = 0; j < NV; j++) {
    vf all = how >= TAKE_MAX ? level[j] : sum[j] + level[j];
    out[j] = how >= TAKE_MAX ? v_select(bad[j], v_set(__builtin_nanf("")), all) : all;
  }
}

typedef struct job { const float *x; float *y; const axes *outer; int64_t n, few, xs, ys; int kind; float count; } job;

FL_INLINE void do_along(const int how, const job *b) { *b->y = finish(b->kind, along(how, b->x, b->outer, b->n), b->count); }

FL_INLINE void put(const job *b, int64_t at, vf v, int lanes) {
  vf w = b->kind == MEAN ? v / b->count : v;
  if (b->kind == L2) FL_UNROLL for (int i = 0; i < FL_VL; i++) w[i] = __builtin_sqrtf(v[i]);
  v_store_n(b->y + at, w, lanes);
}

FL_INLINE void do_beside(const int how, const job *b) {
  int64_t i = 0;
  vf out[4];
  for (; i + 4 * FL_VL <= b->n; i += 4 * FL_VL) {
    beside(how, 4, b->x + i, b->outer, FL_VL, out);
    FL_UNROLL for (int j = 0; j < 4; j++) put(b, i + j * FL_VL, out[j], FL_VL);
  }
  for (; i < b->n; i += FL_VL) {
    int left = b->n - i < FL_VL ? (int)(b->n - i) : FL_VL;
    beside(how, 1, b->x + i, b->outer, left, out);
    put(b, i, out[0], left);
  }
}

FL_INLINE float few(const int how, const float *x, int64_t n) {
  double total = 0;
  float best = how == TAKE_MAX ? -__builtin_inff() : __builtin_inff();
  bool bad = false;
  for (int64_t i = 0; i < n; i++) {
    bad |= x[i] != x[i];
    if (how >= TAKE_MAX) best = (how == TAKE_MAX ? x[i] > best : x[i] < best) ? x[i] : best;
    else total += (double)(how == TAKE_ABS ? __builtin_fabsf(x[i]) : how == TAKE_SQUARE ? x[i] * x[i] : x[i]);
  }
  return how < TAKE_MAX ? (float)total : bad ? __builtin_nanf("") : best;
}

FL_INLINE void do_few(const int how, const job *b) {
  for (int64_t i = 0; i < b->few; i++) b->y[i * b->ys] = finish(b->kind, few(how, b->x + i * b->xs, b->n), b->count);
}

#define FL_TAKES(NAME, HOW)                                           \
  FL_NOINLINE void along_##NAME(const job *b) { do_along(HOW, b); }   \
  FL_NOINLINE void beside_##NAME(const job *b) { do_beside(HOW, b); } \
  FL_NOINLINE void few_##NAME(const job *b) { do_few(HOW, b); }
FL_TAKES(sum, TAKE_SUM)
FL_TAKES(abs, TAKE_ABS)
FL_TAKES(square, TAKE_SQUARE)
FL_TAKES(max, TAKE_MAX)
FL_TAKES(min, TAKE_MIN)

#define FL_ROW(NAME) {along_##NAME, beside_##NAME, few_##NAME}
static void (*const takes[KINDS][3])(const job *) = {
  [SUM] = FL_ROW(sum), [MEAN] = FL_ROW(sum), [MAX] = FL_ROW(max), [MIN] = FL_ROW(min),
  [L1] = FL_ROW(abs), [L2] = FL_ROW(square), [SUM_SQUARE] = FL_ROW(square),
};

static fl_status reduce_run(const fl_call *c) {
  const fl_reduce_params *params = c->params;
  plan p = {.run = 0};
  if (c->t[0]->dtype != FL_F32 || !takes[params->kind][0] || !plan_of(c, &p)) return fl_reduce_generic(c);
  int64_t blocks = 1, width = p.columns, total = p.kept.n;
  if (p.few) { /* long rows are cut so that threads have something to share */
    blocks = p.few >= 256 ? c->parts : 1, width = (p.few + blocks - 1) / blocks, total *= blocks;
  } else if (p.columns) {
    blocks = p.columns >= 256 ? c->parts : 1, width = (p.columns + blocks - 1) / blocks, width = (width + FL_VL - 1) / FL_VL * FL_VL;
    total *= blocks;
  }
  job b = {.outer = &p.reduced, .n = p.run, .xs = p.xs, .ys = p.ys, .kind = params->kind, .count = (float)(p.reduced.n * (p.run ? p.run : 1))};
  for (int64_t r = fl_split(total, c->part, c->parts), end = fl_split(total, c->part + 1, c->parts); r < end; r++) {
    int64_t yo = 0, xo = axes_at(&p.kept, r / blocks, &yo), first = r % blocks * width;
    b.x = (const float *)c->p[0] + xo, b.y = (float *)c->p[1] + yo;
    if (p.columns) {
      if (first >= p.columns) continue;
      b.x += first, b.y += first, b.n = p.columns - first < width ? p.columns - first : width;
    }
    if (p.few) {
      if (first >= p.few) continue;
      b.x += first * p.xs, b.y += first * p.ys, b.few = p.few - first < width ? p.few - first : width;
    }
    takes[params->kind][p.few ? 2 : p.columns > 0](&b);
  }
  return FL_OK;
}
