/* resize_f32 and resize_nearest, FL_VL floats at a time: along the contiguous inner axis where there is one, else by gathering columns.
   Anything not contiguous goes to the portable kernels. Included by avx2.c and avx512.c. */
#include <string.h>
#include "common/simd.h"
#include "gen/params.h"
#include "resize/axes.h"

fl_status fl_resize_f32_generic(const fl_call *c);
fl_status fl_resize_nearest_generic(const fl_call *c);

#if FL_VL == 16
FL_INLINE vf gather(const float *p, const int32_t *i) { return (vf)_mm512_i32gather_ps(_mm512_loadu_si512(i), p, 4); }
#else
FL_INLINE vf gather(const float *p, const int32_t *i) { return (vf)_mm256_i32gather_ps(p, _mm256_loadu_si256((const __m256i *)(const void *)i), 4); }
#endif

typedef struct job {
  fl_resize g;
  const int32_t *row_index, *column_index;
  const int32_t *row_bits, *column_bits; /* weights, floats stored as int32 */
  int32_t row_taps, column_taps;
  float fill;
} job;

static float weight(const int32_t *bits) {
  float f;
  memcpy(&f, bits, sizeof f);
  return f;
}

/* Weighted sum of K input rows of n contiguous floats. */
FL_INLINE void add_rows(float *to, const float *const *from, const float *w, const int k, int64_t n) {
  int64_t i = 0;
  for (; i + FL_VL <= n; i += FL_VL) {
    vf sum = v_load(from[0] + i) * w[0];
    for (int t = 1; t < k; t++) sum += v_load(from[t] + i) * w[t];
    v_store(to + i, sum);
  }
  for (; i < n; i++) {
    float sum = from[0][i] * w[0];
    for (int t = 1; t < k; t++) sum += from[t][i] * w[t];
    to[i] = sum;
  }
}

static void add_row(float *to, const float *from, float w, int64_t n) {
  int64_t i = 0;
  for (; i + FL_VL <= n; i += FL_VL) v_store(to + i, v_load(to + i) + v_load(from + i) * w);
  for (; i < n; i++) to[i] += from[i] * w;
}

/* The blended input row of output row o: x itself when nothing is blended, else row[]; null when it lies outside. */
static const float *blended(const job *j, const float *x, int32_t o, float *row) {
  const fl_resize *g = &j->g;
  const float *from[2];
  float w[2];
  int used = 0;
  int64_t n = (int64_t)g->in_columns * g->inner;
  if (!j->row_taps) return x;
  for (int32_t k = 0; k < j->row_taps; k++) {
    int64_t at = k * (int64_t)g->out_rows + o;
    if (j->row_index[at] < 0) return NULL;
    float v = weight(j->row_bits + at);
    if (v == 0.0f) continue;
    const float *q = x + j->row_index[at] * g->xr;
    if (used < 2) from[used] = q, w[used] = v;
    else {
      if (used == 2) add_rows(row, from, w, 2, n);
      add_row(row, q, v, n);
    }
    used++;
  }
  if (used == 0) return NULL;
  if (used == 1 && w[0] == 1.0f) return from[0];
  if (used == 1) add_rows(row, from, w, 1, n);
  else if (used == 2) add_rows(row, from, w, 2, n);
  return row;
}

FL_INLINE void inner_sum(const job *j, const float *row, float *y, int32_t o, const int k) {
  const float *q[4];
  float w[4];
  int32_t n = j->g.inner, i = 0;
  for (int t = 0; t < k; t++) {
    int64_t at = t * (int64_t)j->g.out_columns + o;
    q[t] = row + (int64_t)(j->column_index[at] < 0 ? 0 : j->column_index[at]) * n, w[t] = weight(j->column_bits + at);
  }
  for (; i + FL_VL <= n; i += FL_VL) {
    vf sum = v_load(q[0] + i) * w[0];
    for (int t = 1; t < k; t++) sum += v_load(q[t] + i) * w[t];
    v_store(y + i, sum);
  }
  for (; i < n; i++) {
    float sum = q[0][i] * w[0];
    for (int t = 1; t < k; t++) sum += q[t][i] * w[t];
    y[i] = sum;
  }
}

static void fill_inner(float *y, float value, int32_t n) {
  for (int32_t i = 0; i < n; i++) y[i] = value;
}

static void columns_inner(const job *j, const float *row, float *y) {
  for (int32_t o = 0; o < j->g.out_columns; o++) {
    float *to = y + o * j->g.yc;
    if (!row || j->column_index[o] < 0) fill_inner(to, j->fill, j->g.inner);
    else if (j->column_taps == 1) inner_sum(j, row, to, o, 1);
    else if (j->column_taps == 2) inner_sum(j, row, to, o, 2);
    else if (j->column_taps == 4) inner_sum(j, row, to, o, 4);
    else {
      fill_inner(to, 0.0f, j->g.inner);
      for (int32_t k = 0; k < j->column_taps; k++) {
        int64_t at = k * (int64_t)j->g.out_columns + o;
        if (j->column_index[at] >= 0) add_row(to, row + (int64_t)j->column_index[at] * j->g.inner, weight(j->column_bits + at), j->g.inner);
      }
    }
  }
}

/* Columns one float wide, y contiguous. No index is negative. */
static void columns_gather(const job *j, const float *row, float *y) {
  int32_t n = j->g.out_columns, o = 0;
  for (; o + FL_VL <= n; o += FL_VL) {
    vf sum = {0};
    for (int32_t k = 0; k < j->column_taps; k++) {
      int64_t at = k * (int64_t)n + o;
      sum += gather(row, j->column_index + at) * (vf)*(const vi_u *)(j->column_bits + at);
    }
    v_store(y + o, sum);
  }
  for (; o < n; o++) {
    float sum = 0.0f;
    for (int32_t k = 0; k < j->column_taps; k++) sum += row[j->column_index[k * (int64_t)n + o]] * weight(j->column_bits + k * (int64_t)n + o);
    y[o] = sum;
  }
}

static bool all_inside(const int32_t *index, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (index[i] < 0) return false;
  return true;
}

static bool contiguous(const fl_resize *g) {
  if (g->inner == 0) return false;
  if (g->inner > 1) return g->xi == 1 && g->yi == 1 && (g->xc == g->inner || g->in_columns == 1);
  return (g->xc == 1 || g->in_columns == 1) && (g->yc == 1 || g->out_columns == 1);
}

static fl_status blend(const fl_call *c) {
  const fl_resize_f32_params *p = c->params;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  job j = {fl_resize_of(x, y, p->rows, p->columns, p->inner), p->table, NULL, NULL, NULL, p->row_taps, p->column_taps, p->fill};
  int64_t n = (int64_t)p->row_taps * j.g.out_rows, m = (int64_t)p->column_taps * j.g.out_columns;
  j.row_bits = p->table + n, j.column_index = p->table + 2 * n, j.column_bits = p->table + 2 * n + m;
  if (!contiguous(&j.g) || (j.g.inner == 1 && !all_inside(j.column_index, m))) return fl_resize_f32_generic(c);
  int64_t rows = j.g.outer * j.g.out_rows;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t xo, yo;
    int32_t o = (int32_t)(r % j.g.out_rows);
    fl_resize_at(x, y, p->rows, p->columns, p->inner, r / j.g.out_rows, &xo, &yo);
    const float *row = blended(&j, (const float *)c->p[0] + xo, o, c->scratch);
    float *to = (float *)c->p[1] + yo + o * j.g.yr;
    if (j.g.inner > 1) columns_inner(&j, row, to);
    else if (row) columns_gather(&j, row, to);
    else fill_inner(to, j.fill, j.g.out_columns);
  }
  return FL_OK;
}

FL_INLINE void copy_inner(float *y, const float *x, int32_t n) {
  int32_t i = 0;
  for (; i + FL_VL <= n; i += FL_VL) v_store(y + i, v_load(x + i));
  for (; i < n; i++) y[i] = x[i];
}

static void pick(const fl_resize *g, const int32_t *index, const float *x, float *y) {
  int32_t o = 0, n = g->out_columns;
  if (g->inner > 1) {
    for (; o < n; o++) copy_inner(y + o * g->yc, x + index[o] * g->xc, g->inner);
    return;
  }
  for (; o + FL_VL <= n; o += FL_VL) v_store(y + o, gather(x, index + o));
  for (; o < n; o++) y[o] = x[index[o]];
}

static fl_status nearest(const fl_call *c) {
  const fl_resize_nearest_params *p = c->params;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  fl_resize g = fl_resize_of(x, y, p->rows, p->columns, p->inner);
  int64_t rows = g.outer * g.out_rows, n = p->rows >= 0 ? g.out_rows : 0;
  if (fl_dtype_size(x->dtype) != 4 || !contiguous(&g) || !all_inside(p->table, n + g.out_columns)) return fl_resize_nearest_generic(c);
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t xo, yo;
    int32_t o = (int32_t)(r % g.out_rows);
    fl_resize_at(x, y, p->rows, p->columns, p->inner, r / g.out_rows, &xo, &yo);
    pick(&g, p->table + n, (const float *)c->p[0] + xo + (n ? p->table[o] : 0) * g.xr, (float *)c->p[1] + yo + o * g.yr);
  }
  return FL_OK;
}
