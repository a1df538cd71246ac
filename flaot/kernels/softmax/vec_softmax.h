/* softmax_f32 along a contiguous axis, or along any axis beside a contiguous one; other strides take the portable code. */
#include "common/vmath.h"
#include "flaot/kernel.h"
#include "gen/params.h"

fl_status fl_softmax_f32_generic(const fl_call *c);

/* The last left < FL_VL elements; -inf beyond them. */
FL_INLINE vf row_tail(const float *x, int left) {
  float t[FL_VL];
  for (int i = 0; i < FL_VL; i++) t[i] = i < left ? x[i] : -__builtin_inff();
  return v_load(t);
}

FL_NOINLINE void row_softmax(const float *x, float *y, int64_t n, bool log) {
  int64_t whole = n / FL_VL * FL_VL;
  int left = (int)(n - whole);
  vf tail = v_set(-__builtin_inff()), m = tail, m1 = m, s = {0}, s1 = {0}, last = {0};
  if (left) m = tail = row_tail(x + whole, left);
  int64_t i = 0;
  for (; i + 2 * FL_VL <= whole; i += 2 * FL_VL) m = v_max(m, v_load(x + i)), m1 = v_max(m1, v_load(x + i + FL_VL));
  if (i < whole) m = v_max(m, v_load(x + i));
  vf max = v_set(v_largest(v_max(m, m1)));
  i = 0;
  if (log) {
    for (; i < whole; i += FL_VL) s += v_exp_neg(v_load(x + i) - max);
  } else {
    for (; i + 2 * FL_VL <= whole; i += 2 * FL_VL) {
      vf e = v_exp_neg(v_load(x + i) - max), f = v_exp_neg(v_load(x + i + FL_VL) - max);
      v_store(y + i, e), v_store(y + i + FL_VL, f);
      s += e, s1 += f;
    }
    for (; i < whole; i += FL_VL) {
      vf e = v_exp_neg(v_load(x + i) - max);
      v_store(y + i, e);
      s += e;
    }
  }
  if (left) last = v_exp_neg(tail - max), s1 += last;
  float total = v_sum(s + s1);
  if (log) {
    vf minus = max + v_log(v_set(total));
    for (i = 0; i < whole; i += FL_VL) v_store(y + i, v_load(x + i) - minus);
    if (left) v_store_n(y + whole, tail - minus, left);
  } else {
    vf scale = v_set(1.0f / total);
    for (i = 0; i < whole; i += FL_VL) v_store(y + i, v_load(y + i) * scale);
    if (left) v_store_n(y + whole, last * scale, left);
  }
}

/* FL_VL (or fewer) neighbouring lines along an axis with stride xs and ys. */
FL_NOINLINE void lines_softmax(const float *x, int64_t xs, float *y, int64_t ys, int64_t n, int lanes, bool log) {
  vf m = v_load_n(x, lanes), s = {0};
  for (int64_t i = 1; i < n; i++) m = v_max(m, v_load_n(x + i * xs, lanes));
  for (int64_t i = 0; i < n; i++) {
    vf e = v_exp_neg(v_load_n(x + i * xs, lanes) - m);
    if (!log) v_store_n(y + i * ys, e, lanes);
    s += e;
  }
  vf minus = log ? m + v_log(s) : m, scale = 1.0f / s;
  for (int64_t i = 0; i < n; i++)
    v_store_n(y + i * ys, log ? v_load_n(x + i * xs, lanes) - minus : v_load_n(y + i * ys, lanes) * scale, lanes);
}

/* The axis other than `axis` along which both are contiguous, or -1. */
static int neighbour_axis(const fl_tensor *x, const fl_tensor *y, int axis) {
  for (int i = x->rank - 1; i >= 0; i--)
    if (i != axis && x->dims[i] >= 4 && x->strides[i] == 1 && y->strides[i] == 1) return i;
  return -1;
}

static fl_status softmax_run(const fl_call *c) {
  const fl_softmax_f32_params *p = c->params;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  int axis = p->axis, beside = -1;
  int64_t n = x->dims[axis], rows = 1;
  bool contiguous = n == 1 || (x->strides[axis] == 1 && y->strides[axis] == 1);
  if (!contiguous && (beside = neighbour_axis(x, y, axis)) < 0) return fl_softmax_f32_generic(c);
  for (int i = 0; i < x->rank; i++) rows *= i == axis ? 1 : i == beside ? (x->dims[i] + FL_VL - 1) / FL_VL : x->dims[i];
  if (n == 0) return FL_OK;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t rest = r, xo = 0, yo = 0, first = 0;
    for (int i = x->rank; i-- > 0;) {
      if (i == axis) continue;
      int64_t d = i == beside ? (x->dims[i] + FL_VL - 1) / FL_VL : x->dims[i], k = rest % d;
      rest /= d;
      if (i == beside) first = k *= FL_VL;
      xo += k * x->strides[i], yo += k * y->strides[i];
    }
    const float *from = (const float *)c->p[0] + xo;
    float *to = (float *)c->p[1] + yo;
    if (contiguous) row_softmax(from, to, n, p->log != 0);
    else {
      int64_t left = x->dims[beside] - first;
      lines_softmax(from, x->strides[axis], to, y->strides[axis], n, left < FL_VL ? (int)left : FL_VL, p->log != 0);
    }
  }
  return FL_OK;
}
