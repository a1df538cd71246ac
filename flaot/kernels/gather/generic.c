/* gather: x [A, N, B], indices [K], y [A, K, B]; gather_nd: x [B, D1, ..., Dk, I], indices [B, M, k], y [B, M, I];
   gather_elements: y [i, j, k] = x [i, indices [i, j, k], k]. Indices are dense and checked as they are read. */
#include "common/move.h"
#include "gen/params.h"

static bool three(const fl_call *c) {
  return c->n_in == 2 && c->n_out == 1 && c->t[0]->dtype == c->t[2]->dtype && fl_is_index(c->t[1]) && fl_is_dense(c->t[1]);
}

fl_status fl_gather_check(const fl_call *c) {
  const fl_tensor *x = c->t[0], *k = c->t[1], *y = c->t[2];
  if (!three(c) || c->params_size != 0 || x->rank != 3 || k->rank != 1 || y->rank != 3) return FL_PLAN_PARAMS;
  return y->dims[0] == x->dims[0] && y->dims[1] == k->dims[0] && y->dims[2] == x->dims[2] ? FL_OK : FL_PLAN_PARAMS;
}

/* Single elements, y [i] = x [indices [i]]: the last axis, where a call per element would cost more than the element. */
#define PICK(T)                                                                                            \
  for (int64_t i = 0; i < n; i++) {                                                                        \
    int64_t at = fl_index(k, indices, first + i, x->dims[1]);                                              \
    if (at < 0) return FL_DATA_INDEX;                                                                      \
    ((T *)to)[i * y->strides[1]] = ((const T *)from)[at * x->strides[1]];                                  \
  }                                                                                                        \
  return FL_OK

static fl_status pick(const fl_tensor *x, const fl_tensor *k, const fl_tensor *y, const void *from, const void *indices, void *to,
                      int64_t first, int64_t n) {
  switch (fl_dtype_size(x->dtype)) {
  case 1: PICK(uint8_t);
  case 2: PICK(uint16_t);
  case 4: PICK(uint32_t);
  default: PICK(uint64_t);
  }
}

static fl_status pick_rows(const fl_call *c, int64_t r, int64_t end) {
  const fl_tensor *x = c->t[0], *k = c->t[1], *y = c->t[2];
  int64_t size = (int64_t)fl_dtype_size(x->dtype), count = k->dims[0];
  for (int64_t n; r < end; r += n) {
    int64_t a = r / count, i = r % count;
    n = count - i < end - r ? count - i : end - r;
    const char *from = (const char *)c->p[0] + a * x->strides[0] * size;
    char *to = (char *)c->p[2] + (a * y->strides[0] + i * y->strides[1]) * size;
    fl_status status = pick(x, k, y, from, c->p[1], to, i, n);
    if (status != FL_OK) return status;
  }
  return FL_OK;
}

fl_status fl_gather_generic(const fl_call *c) {
  const fl_tensor *x = c->t[0], *k = c->t[1], *y = c->t[2];
  int64_t size = (int64_t)fl_dtype_size(x->dtype), count = k->dims[0], rows = y->dims[0] * count;
  if (y->dims[2] == 0) return FL_OK;
  if (y->dims[2] == 1) return pick_rows(c, fl_split(rows, c->part, c->parts), fl_split(rows, c->part + 1, c->parts));
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t a = r / count, i = r % count, at = fl_index(k, c->p[1], i, x->dims[1]);
    if (at < 0) return FL_DATA_INDEX;
    const char *from = (const char *)c->p[0] + (a * x->strides[0] + at * x->strides[1]) * size;
    char *to = (char *)c->p[2] + (a * y->strides[0] + i * y->strides[1]) * size;
    fl_move(to, y->strides[2], from, x->strides[2], y->dims[2], size);
  }
  return FL_OK;
}

fl_status fl_gather_nd_check(const fl_call *c) {
  const fl_tensor *x = c->t[0], *k = c->t[1], *y = c->t[2];
  if (!three(c) || c->params_size != 0 || k->rank != 3 || y->rank != 3 || x->rank != k->dims[2] + 2) return FL_PLAN_PARAMS;
  if (x->dims[0] != k->dims[0] || y->dims[0] != k->dims[0] || y->dims[1] != k->dims[1]) return FL_PLAN_PARAMS;
  return y->dims[2] == x->dims[x->rank - 1] ? FL_OK : FL_PLAN_PARAMS;
}

fl_status fl_gather_nd_generic(const fl_call *c) {
  const fl_tensor *x = c->t[0], *k = c->t[1], *y = c->t[2];
  int64_t size = (int64_t)fl_dtype_size(x->dtype), length = k->dims[2], count = k->dims[1], rows = k->dims[0] * count;
  if (y->dims[2] == 0) return FL_OK;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++) {
    int64_t offset = r / count * x->strides[0];
    for (int64_t j = 0; j < length; j++) {
      int64_t at = fl_index(k, c->p[1], r * length + j, x->dims[1 + j]);
      if (at < 0) return FL_DATA_INDEX;
      offset += at * x->strides[1 + j];
    }
    char *to = (char *)c->p[2] + (r / count * y->strides[0] + r % count * y->strides[1]) * size;
    fl_move(to, y->strides[2], (const char *)c->p[0] + offset * size, x->strides[x->rank - 1], y->dims[2], size);
  }
  return FL_OK;
}

fl_status fl_gather_elements_check(const fl_call *c) {
  const fl_gather_elements_params *p = c->params;
  const fl_tensor *x = c->t[0], *k = c->t[1];
  if (!three(c) || c->params_size != sizeof *p || !fl_same_dims(k, c->t[2]) || x->rank != k->rank) return FL_PLAN_PARAMS;
  if (p->axis < 0 || p->axis >= x->rank) return FL_PLAN_PARAMS;
  for (int32_t a = 0; a < x->rank; a++)
    if (a != p->axis && k->dims[a] > x->dims[a]) return FL_PLAN_PARAMS;
  return FL_OK;
}

fl_status fl_gather_elements_generic(const fl_call *c) {
  const fl_gather_elements_params *p = c->params;
  const fl_tensor *x = c->t[0], *k = c->t[1], *y = c->t[2];
  int64_t size = (int64_t)fl_dtype_size(x->dtype), n = fl_elements(k);
  for (int64_t i = fl_split(n, c->part, c->parts), end = fl_split(n, c->part + 1, c->parts); i < end; i++) {
    int64_t rest = i, xo = 0, yo = 0, at = fl_index(k, c->p[1], i, x->dims[p->axis]);
    if (at < 0) return FL_DATA_INDEX;
    for (int32_t a = x->rank; a-- > 0; rest /= k->dims[a]) {
      int64_t j = rest % k->dims[a];
      yo += j * y->strides[a], xo += (a == p->axis ? at : j) * x->strides[a];
    }
    fl_move((char *)c->p[2] + yo * size, 1, (const char *)c->p[0] + xo * size, 1, 1, size);
  }
  return FL_OK;
}
