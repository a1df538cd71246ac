/* norm_f32 where every window is made of runs contiguous in x and y, with scale and bias contiguous or constant along a run;
   other strides take the portable code. Statistics take two passes, so nothing cancels. */
#include "common/vmath.h"
#include "flaot/kernel.h"
#include "gen/params.h"
#include "norm/modes.h"

fl_status fl_norm_f32_generic(const fl_call *c);

typedef struct shape { /* x, scale, bias, y; absent ones have stride 0 */
  int64_t run;         /* elements per run */
  int64_t affine;      /* stride of scale and bias along a run: 0 or 1 */
  unsigned outer;      /* window axes besides the run */
  int64_t dims[FL_MAX_RANK], strides[FL_MAX_RANK][4];
  int64_t runs;
} shape;

enum { X, SCALE, BIAS, Y };

/* The window as runs; false where it is not made of contiguous ones. */
static bool shape_of(const fl_call *c, shape *s) {
  const fl_norm_f32_params *p = c->params;
  const fl_tensor *t[4] = {c->t[0], p->has & 1 ? c->t[1] : NULL, p->has & 2 ? c->t[c->n_in - 1] : NULL, c->t[c->n_in]};
  int64_t inner[4] = {1, 1, 1, 1};
  s->run = 0, s->outer = 0, s->runs = 1, s->affine = 0;
  for (unsigned i = t[X]->rank; i-- > 0;) {
    int64_t d = t[X]->dims[i], st[4];
    if (!(p->axes >> i & 1) || d == 1) continue;
    for (int j = 0; j < 4; j++) st[j] = t[j] ? t[j]->strides[i] : 0;
    if (s->run == 0) {
      if (st[X] != 1 || st[Y] != 1 || (t[SCALE] && t[BIAS] && st[SCALE] != st[BIAS])) return false;
      s->run = d, s->affine = t[SCALE] ? st[SCALE] : t[BIAS] ? st[BIAS] : 0;
      if (s->affine >> 1) return false;
      for (int j = 0; j < 4; j++) inner[j] = st[j] * d;
    } else if (!s->outer && st[X] == inner[X] && st[Y] == inner[Y] && st[SCALE] == inner[SCALE] && st[BIAS] == inner[BIAS]) {
      s->run *= d;
      for (int j = 0; j < 4; j++) inner[j] = st[j] * d;
    } else {
      for (int j = 0; j < 4; j++) s->strides[s->outer][j] = st[j];
      s->dims[s->outer++] = d, s->runs *= d;
    }
  }
  return s->run >= 4;
}

/* Offsets of run number r of a window. */
static void run_at(const shape *s, int64_t r, int64_t o[4]) {
  for (int j = 0; j < 4; j++) o[j] = 0;
  for (unsigned i = 0; i < s->outer; i++) {
    int64_t k = r % s->dims[i];
    r /= s->dims[i];
    for (int j = 0; j < 4; j++) o[j] += k * s->strides[i][j];
  }
}

/* Sum of v, |v| or v v with v = x - mean. */
FL_INLINE double run_total(const int power, const float *x, int64_t n, float mean) {
  const vf m = v_set(mean);
  double total = 0;
  int64_t i = 0;
#define FL_TERM(A) (power == 2 ? (A) * (A) : power == 1 ? v_max(A, -(A)) : (A))
  while (i + FL_VL <= n) {
    vf a = {0}, b = {0};
    int64_t end = n - i > 512 * FL_VL ? i + 512 * FL_VL : n;
    for (; i + 2 * FL_VL <= end; i += 2 * FL_VL) {
      vf v = v_load(x + i) - m, w = v_load(x + i + FL_VL) - m;
      a += FL_TERM(v), b += FL_TERM(w);
    }
    for (; i + FL_VL <= end; i += FL_VL) {
      vf v = v_load(x + i) - m;
      a += FL_TERM(v);
    }
    total += (double)v_sum(a + b);
  }
  for (; i < n; i++) {
    float v = x[i] - mean;
    total += (double)(power == 2 ? v * v : power == 1 && v < 0.0f ? -v : v);
  }
  return total;
}

FL_NOINLINE double window_total(const shape *s, const float *x, int power, float mean) {
  double total = 0;
  for (int64_t r = 0; r < s->runs; r++) {
    int64_t o[4];
    run_at(s, r, o);
    total += power == 2 ? run_total(2, x + o[X], s->run, mean) : power == 1 ? run_total(1, x + o[X], s->run, 0) : run_total(0, x + o[X], s->run, 0);
  }
  return total;
}

FL_INLINE void run_write(const float *x, const float *scale, const float *bias, float *y, int64_t n, float mean, float inv) {
  vf m = v_set(mean), k = v_set(inv);
  int64_t i = 0;
  for (; i + FL_VL <= n; i += FL_VL) {
    vf v = (v_load(x + i) - m) * k;
    if (scale) v *= v_load(scale + i);
    if (bias) v += v_load(bias + i);
    v_store(y + i, v);
  }
  int left = (int)(n - i);
  if (!left) return;
  vf v = (v_load_n(x + i, left) - m) * k;
  if (scale) v *= v_load_n(scale + i, left);
  if (bias) v += v_load_n(bias + i, left);
  v_store_n(y + i, v, left);
}

/* The same with one scale and bias. */
FL_INLINE void run_write_flat(const float *x, float *y, int64_t n, float mean, float k, float add) {
  vf m = v_set(mean), s = v_set(k), b = v_set(add);
  int64_t i = 0;
  for (; i + FL_VL <= n; i += FL_VL) v_store(y + i, (v_load(x + i) - m) * s + b);
  int left = (int)(n - i);
  if (left) v_store_n(y + i, (v_load_n(x + i, left) - m) * s + b, left);
}

FL_NOINLINE void window_write(const shape *s, const float *const t[4], float mean, float inv) {
  for (int64_t r = 0; r < s->runs; r++) {
    int64_t o[4];
    run_at(s, r, o);
    const float *scale = t[SCALE] ? t[SCALE] + o[SCALE] : NULL, *bias = t[BIAS] ? t[BIAS] + o[BIAS] : NULL;
    float *y = (float *)(uintptr_t)t[Y] + o[Y];
    if (s->affine) run_write(t[X] + o[X], scale, bias, y, s->run, mean, inv);
    else run_write_flat(t[X] + o[X], y, s->run, mean, scale ? inv * *scale : inv, bias ? *bias : 0.0f);
  }
}

static fl_status norm_run(const fl_call *c) {
  const fl_norm_f32_params *p = c->params;
  const fl_tensor *x = c->t[0];
  shape s;
  if (fl_elements(x) == 0 || !shape_of(c, &s)) return fl_norm_f32_generic(c);
  int64_t windows = 1, n = s.run * s.runs;
  for (unsigned i = 0; i < x->rank; i++) windows *= p->axes >> i & 1 ? 1 : x->dims[i];
  for (int64_t r = fl_split(windows, c->part, c->parts), end = fl_split(windows, c->part + 1, c->parts); r < end; r++) {
    int64_t rest = r, o[7] = {0};
    for (unsigned i = x->rank; i-- > 0;) {
      if (p->axes >> i & 1) continue;
      int64_t k = rest % x->dims[i];
      rest /= x->dims[i];
      for (uint32_t j = 0; j < c->n_in + c->n_out; j++) o[j] += k * c->t[j]->strides[i];
    }
    const float *t[4] = {(const float *)c->p[0] + o[0], NULL, NULL, (const float *)c->p[c->n_in] + o[c->n_in]};
    if (p->has & 1) t[SCALE] = (const float *)c->p[1] + o[1];
    if (p->has & 2) t[BIAS] = (const float *)c->p[c->n_in - 1] + o[c->n_in - 1];
    bool centred = p->mode == FL_NORM_VARIANCE || p->mode == FL_NORM_DEVIATION;
    float mean = centred ? (float)(window_total(&s, t[X], 0, 0.0f) / (double)n) : 0.0f;
    float inv = norm_inverse(p, (float)window_total(&s, t[X], p->mode == FL_NORM_LP1 ? 1 : 2, mean), (float)n);
    window_write(&s, t, mean, inv);
    if (c->n_out == 3) ((float *)c->p[c->n_in + 1])[o[c->n_in + 1]] = mean, ((float *)c->p[c->n_in + 2])[o[c->n_in + 2]] = inv;
  }
  return FL_OK;
}
