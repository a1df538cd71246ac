/* Maximum and mean over windows, FL_VL floats at a time: over channels where those are contiguous, else row by row where the last
   axis is; anything else goes to the portable kernel. Included by avx2.c and avx512.c. */
#include "common/simd.h"
#include "gen/params.h"
#include "pool/window.h"

fl_status fl_pool_f32_generic(const fl_call *c);

typedef struct job {
  const fl_pool_f32_params *p;
  fl_plane x, y;
  fl_taps t[3];
  int64_t step[3]; /* floats from tap to tap */
} job;

FL_INLINE vf join(vf acc, vf v, bool max) { return max ? v_max(v, acc) : acc + v; }
FL_INLINE float join1(float acc, float v, bool max) { return max ? (v > acc ? v : acc) : acc + v; }
FL_INLINE vf identity(bool max) { return v_set(max ? -__builtin_inff() : 0.0f); }

static int32_t taps_counted(const job *j, int a) {
  const fl_taps *t = &j->t[a];
  return j->p->include ? fl_taps_padded(t->at, j->p->window[a], j->p->dilation[a], j->x.d[a], j->p->end[a]) : t->last - t->first;
}

/* k vectors of channels, the v-th at channel at[v], for one output position. */
FL_INLINE void block(const job *j, const float *x, float *y, const int64_t *at, float scale, const int k, const bool max) {
  vf acc[4];
  FL_UNROLL for (int v = 0; v < k; v++) acc[v] = identity(max);
  const float *plane = x + (j->t[0].at * j->x.s[0] + j->t[1].at * j->x.s[1] + j->t[2].at * j->x.s[2]);
  for (int32_t a = j->t[0].first; a < j->t[0].last; a++)
    for (int32_t b = j->t[1].first; b < j->t[1].last; b++) {
      const float *q = plane + a * j->step[0] + b * j->step[1] + j->t[2].first * j->step[2];
      for (int32_t e = j->t[2].first; e < j->t[2].last; e++, q += j->step[2])
        FL_UNROLL for (int v = 0; v < k; v++) acc[v] = join(acc[v], v_load(q + at[v]), max);
    }
  FL_UNROLL for (int v = 0; v < k; v++) v_store(y + at[v], max ? acc[v] : acc[v] * scale);
}

/* Fewer channels than a vector has lanes. */
FL_INLINE void narrow(const job *j, const float *x, float *y, float scale, const bool max) {
  int n = (int)j->x.c;
  vf acc = identity(max);
  const float *plane = x + (j->t[0].at * j->x.s[0] + j->t[1].at * j->x.s[1] + j->t[2].at * j->x.s[2]);
  for (int32_t a = j->t[0].first; a < j->t[0].last; a++)
    for (int32_t b = j->t[1].first; b < j->t[1].last; b++) {
      const float *q = plane + a * j->step[0] + b * j->step[1] + j->t[2].first * j->step[2];
      for (int32_t e = j->t[2].first; e < j->t[2].last; e++, q += j->step[2]) acc = join(acc, v_load_n(q, n), max);
    }
  v_store_n(y, max ? acc : acc * scale, n);
}

/* The last vector of a tensor whose channels do not fill whole ones overlaps its neighbour and writes the same values again. */
FL_INLINE void channels(const job *j, const float *x, float *y, float scale, const bool max) {
  int64_t n = j->x.c;
  if (n < FL_VL) {
    narrow(j, x, y, scale, max);
    return;
  }
  for (int64_t i = 0; i < n; i += 4 * FL_VL) {
    int64_t at[4], left = (n - i + FL_VL - 1) / FL_VL;
    for (int v = 0; v < 4; v++) at[v] = i + v * FL_VL <= n - FL_VL ? i + v * FL_VL : n - FL_VL;
    if (left >= 4) block(j, x, y, at, scale, 4, max);
    else if (left == 3) block(j, x, y, at, scale, 3, max);
    else if (left == 2) block(j, x, y, at, scale, 2, max);
    else block(j, x, y, at, scale, 1, max);
  }
}

static void last(const fl_call *c, job *j) {
  const fl_pool_f32_params *p = j->p;
  bool max = p->mode == FL_POOL_MAX;
  int64_t rows = j->y.n * j->y.d[0] * j->y.d[1];
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t h = r % j->y.d[1], d = r / j->y.d[1] % j->y.d[0], n = r / j->y.d[1] / j->y.d[0];
    const float *x = (const float *)c->p[0] + n * j->x.ns;
    float *y = (float *)c->p[1] + n * j->y.ns + d * j->y.s[0] + h * j->y.s[1];
    j->t[0] = fl_taps_of(d, p->stride[0], p->begin[0], p->window[0], p->dilation[0], j->x.d[0]);
    j->t[1] = fl_taps_of(h, p->stride[1], p->begin[1], p->window[1], p->dilation[1], j->x.d[1]);
    for (int32_t o = 0; o < j->y.d[2]; o++) {
      j->t[2] = fl_taps_of(o, p->stride[2], p->begin[2], p->window[2], p->dilation[2], j->x.d[2]);
      float count = (float)taps_counted(j, 0) * (float)taps_counted(j, 1) * (float)taps_counted(j, 2);
      if (max) channels(j, x, y + o * j->y.s[2], 1.0f, true);
      else channels(j, x, y + o * j->y.s[2], 1.0f / (count > 0.0f ? count : 1.0f), false);
    }
  }
}

/* One value out of n contiguous ones. */
FL_INLINE float fold(const float *x, int64_t n, const bool max) {
  vf acc[4] = {identity(max), identity(max), identity(max), identity(max)};
  int64_t i = 0;
  for (; i + 4 * FL_VL <= n; i += 4 * FL_VL)
    for (int k = 0; k < 4; k++) acc[k] = join(acc[k], v_load(x + i + k * FL_VL), max);
  for (; i + FL_VL <= n; i += FL_VL) acc[0] = join(acc[0], v_load(x + i), max);
  vf total = join(join(acc[0], acc[1], max), join(acc[2], acc[3], max), max);
  float r = max ? -__builtin_inff() : 0.0f;
  for (int k = 0; k < FL_VL; k++) r = join1(r, total[k], max);
  for (; i < n; i++) r = join1(r, x[i], max);
  return r;
}

FL_INLINE void add_row(float *row, const float *x, int32_t n, const bool max, const bool first) {
  int32_t i = 0;
  for (; i + FL_VL <= n; i += FL_VL) v_store(row + i, first ? v_load(x + i) : join(v_load(row + i), v_load(x + i), max));
  for (; i < n; i++) row[i] = first ? x[i] : join1(row[i], x[i], max);
}

/* The rows under one output row joined into row[], whose element 0 is the first padding element. */
FL_INLINE void join_rows(const job *j, const float *x, float *row, int64_t floats, const bool max) {
  int32_t begin = j->p->begin[2], w = j->x.d[2];
  bool first = true;
  for (int64_t i = 0; i < begin; i++) row[i] = max ? -__builtin_inff() : 0.0f;
  for (int64_t i = (int64_t)begin + w; i < floats; i++) row[i] = max ? -__builtin_inff() : 0.0f;
  for (int32_t a = j->t[0].first; a < j->t[0].last; a++)
    for (int32_t b = j->t[1].first; b < j->t[1].last; b++, first = false) {
      const float *q = x + (j->t[0].at + (int64_t)a * j->p->dilation[0]) * j->x.s[0] + (j->t[1].at + (int64_t)b * j->p->dilation[1]) * j->x.s[1];
      if (first) add_row(row + begin, q, w, max, true);
      else add_row(row + begin, q, w, max, false);
    }
  for (int32_t i = 0; first && i < w; i++) row[begin + i] = max ? -__builtin_inff() : 0.0f;
}

FL_INLINE void windows(const float *restrict row, float *restrict y, int32_t n, int32_t taps, int32_t dilation, const int64_t stride, const bool max) {
  for (int32_t o = 0; o < n; o++) y[o] = row[o * stride];
  for (int32_t k = 1; k < taps; k++) {
    const float *q = row + (int64_t)k * dilation;
    for (int32_t o = 0; o < n; o++) y[o] = join1(y[o], q[o * stride], max);
  }
}

FL_INLINE void windows_any(const float *row, float *y, const job *j, const bool max) {
  int32_t n = j->y.d[2], taps = j->p->window[2], d = j->p->dilation[2], s = j->p->stride[2];
  if (s == 1) windows(row, y, n, taps, d, 1, max);
  else if (s == 2) windows(row, y, n, taps, d, 2, max);
  else windows(row, y, n, taps, d, s, max);
}

static void average(job *j, float *y) {
  const fl_pool_f32_params *p = j->p;
  float outer = (float)taps_counted(j, 0) * (float)taps_counted(j, 1);
  for (int32_t o = 0; o < j->y.d[2]; o++) {
    j->t[2] = fl_taps_of(o, p->stride[2], p->begin[2], p->window[2], p->dilation[2], j->x.d[2]);
    float count = outer * (float)taps_counted(j, 2);
    y[o] = y[o] / (count > 0.0f ? count : 1.0f);
  }
}

/* One window covers a whole contiguous plane. */
static bool whole_planes(const job *j) {
  const fl_pool_f32_params *p = j->p;
  int64_t step = 1;
  for (int i = 2; i >= 0; i--) {
    if (j->y.d[i] != 1 || p->begin[i] || p->end[i] || p->dilation[i] != 1 || p->window[i] != j->x.d[i]) return false;
    if (j->x.d[i] > 1 && j->x.s[i] != step) return false;
    step *= j->x.d[i];
  }
  return true;
}

static void planes(const fl_call *c, const job *j) {
  int64_t rows = j->x.n * j->x.c, n = (int64_t)j->x.d[0] * j->x.d[1] * j->x.d[2];
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    const float *x = (const float *)c->p[0] + r / j->x.c * j->x.ns + r % j->x.c * j->x.cs;
    float *y = (float *)c->p[1] + r / j->x.c * j->y.ns + r % j->x.c * j->y.cs;
    *y = j->p->mode == FL_POOL_MAX ? fold(x, n, true) : fold(x, n, false) / (float)n;
  }
}

static void plain(const fl_call *c, job *j) {
  const fl_pool_f32_params *p = j->p;
  bool max = p->mode == FL_POOL_MAX, whole = j->y.d[2] == 1 && p->begin[2] == 0 && p->dilation[2] == 1;
  int64_t rows = j->y.n * j->y.c * j->y.d[0] * j->y.d[1], reach = (j->y.d[2] - 1) * (int64_t)p->stride[2] + (int64_t)(p->window[2] - 1) * p->dilation[2] + 1;
  int64_t span = (int64_t)p->begin[2] + j->x.d[2], floats = reach > span ? reach : span;
  float *row = c->scratch;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t h = r % j->y.d[1], d = r / j->y.d[1] % j->y.d[0], ch = r / j->y.d[1] / j->y.d[0] % j->y.c, n = r / j->y.d[1] / j->y.d[0] / j->y.c;
    const float *x = (const float *)c->p[0] + n * j->x.ns + ch * j->x.cs;
    float *y = (float *)c->p[1] + n * j->y.ns + ch * j->y.cs + d * j->y.s[0] + h * j->y.s[1];
    j->t[0] = fl_taps_of(d, p->stride[0], p->begin[0], p->window[0], p->dilation[0], j->x.d[0]);
    j->t[1] = fl_taps_of(h, p->stride[1], p->begin[1], p->window[1], p->dilation[1], j->x.d[1]);
    if (max) join_rows(j, x, row, floats, true);
    else join_rows(j, x, row, floats, false);
    if (whole) *y = max ? fold(row, p->window[2], true) : fold(row, p->window[2], false);
    else if (max) windows_any(row, y, j, true);
    else windows_any(row, y, j, false);
    if (!max) average(j, y);
  }
}

static fl_status pool(const fl_call *c) {
  const fl_pool_f32_params *p = c->params;
  job j = {p, fl_plane_of(c->t[0]), fl_plane_of(c->t[1]), {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {0, 0, 0}};
  for (int i = 0; i < 3; i++) j.step[i] = p->dilation[i] * j.x.s[i];
  if (p->mode == FL_POOL_NORM || fl_elements(c->t[0]) == 0 || fl_elements(c->t[1]) == 0) return fl_pool_f32_generic(c);
  if (whole_planes(&j)) planes(c, &j);
  else if (j.x.cs == 1 && j.y.cs == 1) last(c, &j);
  else if ((j.x.s[2] == 1 || j.x.d[2] == 1) && (j.y.s[2] == 1 || j.y.d[2] == 1)) plain(c, &j);
  else return fl_pool_f32_generic(c);
  return FL_OK;
}
