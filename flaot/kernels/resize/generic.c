/* y = blend of x along one or two axes: each output row is a weighted sum of input rows, each output column of that row's columns.
   The table holds, for rows (if any) and then columns, taps x outputs indices and as many weights; index -1 gives the fill value. */
#include "gen/params.h"
#include "resize/axes.h"

fl_status fl_resize_f32_check(const fl_call *c) {
  const fl_resize_f32_params *p = c->params;
  if (c->n_in != 1 || c->n_out != 1 || c->params_size < sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  if (x->dtype != FL_F32 || !fl_resize_ok(x, y, p->rows, p->columns, p->inner) || p->row_taps < 0 || p->column_taps < 1) return FL_PLAN_PARAMS;
  fl_resize g = fl_resize_of(x, y, p->rows, p->columns, p->inner);
  if ((p->rows >= 0) != (p->row_taps > 0)) return FL_PLAN_PARAMS;
  int64_t n = (int64_t)p->row_taps * g.out_rows, m = (int64_t)p->column_taps * g.out_columns;
  if (n > INT32_MAX || m > INT32_MAX || c->params_size != sizeof *p + 8 * (size_t)(n + m)) return FL_PLAN_PARAMS;
  if (!fl_resize_indices_ok(p->table, n, g.in_rows) || !fl_resize_indices_ok(p->table + 2 * n, m, g.in_columns)) return FL_PLAN_PARAMS;
  return (int64_t)g.in_columns * g.inner <= (int64_t)(c->scratch_size / sizeof(float)) ? FL_OK : FL_PLAN_PARAMS;
}

static float weight(const int32_t *bits) {
  float f;
  __builtin_memcpy(&f, bits, sizeof f);
  return f;
}

/* row[] = sum over taps of input rows; false when the row lies outside. */
static bool blend_rows(const fl_resize_f32_params *p, const fl_resize *g, const float *x, int32_t o, float *row) {
  int64_t n = (int64_t)p->row_taps * g->out_rows;
  for (int32_t k = 0; k < p->row_taps || k == 0; k++) {
    int32_t from = p->row_taps ? p->table[k * (int64_t)g->out_rows + o] : 0;
    float w = p->row_taps ? weight(p->table + n + k * (int64_t)g->out_rows + o) : 1.0f;
    if (from < 0) return false;
    if (k > 0 && w == 0.0f) continue;
    const float *q = x + from * g->xr;
    for (int32_t i = 0; i < g->in_columns; i++)
      for (int32_t j = 0; j < g->inner; j++) {
        float v = w * q[i * g->xc + j * g->xi], *to = row + (int64_t)i * g->inner + j;
        *to = k == 0 ? v : *to + v;
      }
  }
  return true;
}

static void blend_columns(const fl_resize_f32_params *p, const fl_resize *g, const float *row, float *y, bool inside) {
  const int32_t *index = p->table + 2 * (int64_t)p->row_taps * g->out_rows, *bits = index + (int64_t)p->column_taps * g->out_columns;
  for (int32_t o = 0; o < g->out_columns; o++)
    for (int32_t j = 0; j < g->inner; j++) {
      float sum = 0.0f;
      if (!inside || index[o] < 0) {
        y[o * g->yc + j * g->yi] = p->fill;
        continue;
      }
      for (int32_t k = 0; k < p->column_taps; k++) {
        int64_t at = k * (int64_t)g->out_columns + o;
        float w = weight(bits + at);
        if (w != 0.0f && index[at] >= 0) sum += w * row[(int64_t)index[at] * g->inner + j];
      }
      y[o * g->yc + j * g->yi] = sum;
    }
}

fl_status fl_resize_f32_generic(const fl_call *c) {
  if (fl_elements(c->t[1]) == 0) return FL_OK;
  const fl_resize_f32_params *p = c->params;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  fl_resize g = fl_resize_of(x, y, p->rows, p->columns, p->inner);
  int64_t rows = g.outer * g.out_rows;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t xo, yo;
    int32_t o = (int32_t)(r % g.out_rows);
    fl_resize_at(x, y, p->rows, p->columns, p->inner, r / g.out_rows, &xo, &yo);
    bool inside = blend_rows(p, &g, (const float *)c->p[0] + xo, o, c->scratch);
    blend_columns(p, &g, c->scratch, (float *)c->p[1] + yo + o * g.yr, inside);
  }
  return FL_OK;
}
