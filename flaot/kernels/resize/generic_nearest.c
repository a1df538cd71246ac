/* y[row, column] = x[table[row], table[column]] for elements of 1, 2, 4 or 8 bytes; index -1 gives the fill value. */
#include "gen/params.h"
#include "resize/axes.h"

fl_status fl_resize_nearest_check(const fl_call *c) {
  const fl_resize_nearest_params *p = c->params;
  if (c->n_in != 1 || c->n_out != 1 || c->params_size < sizeof *p) return FL_PLAN_PARAMS;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  if (!fl_resize_ok(x, y, p->rows, p->columns, p->inner)) return FL_PLAN_PARAMS;
  fl_resize g = fl_resize_of(x, y, p->rows, p->columns, p->inner);
  int64_t n = p->rows >= 0 ? g.out_rows : 0;
  if (c->params_size != sizeof *p + 4 * (size_t)(n + g.out_columns)) return FL_PLAN_PARAMS;
  bool ok = fl_resize_indices_ok(p->table, n, g.in_rows) && fl_resize_indices_ok(p->table + n, g.out_columns, g.in_columns);
  return ok ? FL_OK : FL_PLAN_PARAMS;
}

#define DEFINE_ROW(NAME, T)                                                                                                      \
  static void NAME(const fl_resize *g, const int32_t *index, const T *x, T *y, const void *fill, bool inside) {                  \
    T other;                                                                                                                     \
    __builtin_memcpy(&other, fill, sizeof other);                                                                                          \
    for (int32_t o = 0; o < g->out_columns; o++)                                                                                 \
      for (int32_t j = 0; j < g->inner; j++)                                                                                     \
        y[o * g->yc + j * g->yi] = inside && index[o] >= 0 ? x[index[o] * g->xc + j * g->xi] : other;                            \
  }
DEFINE_ROW(row_1, uint8_t)
DEFINE_ROW(row_2, uint16_t)
DEFINE_ROW(row_4, uint32_t)
DEFINE_ROW(row_8, uint64_t)

fl_status fl_resize_nearest_generic(const fl_call *c) {
  if (fl_elements(c->t[1]) == 0) return FL_OK;
  const fl_resize_nearest_params *p = c->params;
  const fl_tensor *x = c->t[0], *y = c->t[1];
  fl_resize g = fl_resize_of(x, y, p->rows, p->columns, p->inner);
  int64_t rows = g.outer * g.out_rows, size = (int64_t)fl_dtype_size(x->dtype);
  const int32_t *index = p->table + (p->rows >= 0 ? g.out_rows : 0);
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t xo, yo;
    fl_resize_at(x, y, p->rows, p->columns, p->inner, r / g.out_rows, &xo, &yo);
    int32_t o = (int32_t)(r % g.out_rows), from = p->rows >= 0 ? p->table[o] : 0;
    const char *in = (const char *)c->p[0] + (xo + (from < 0 ? 0 : from) * g.xr) * size;
    char *out = (char *)c->p[1] + (yo + o * g.yr) * size;
    switch (size) {
    case 1: row_1(&g, index, (const uint8_t *)(const void *)in, (uint8_t *)(void *)out, p->fill, from >= 0); break;
    case 2: row_2(&g, index, (const uint16_t *)(const void *)in, (uint16_t *)(void *)out, p->fill, from >= 0); break;
    case 4: row_4(&g, index, (const uint32_t *)(const void *)in, (uint32_t *)(void *)out, p->fill, from >= 0); break;
    default: row_8(&g, index, (const uint64_t *)(const void *)in, (uint64_t *)(void *)out, p->fill, from >= 0); break;
    }
  }
  return FL_OK;
}
