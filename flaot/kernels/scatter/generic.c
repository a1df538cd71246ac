/* scatter_nd: y [D1, ..., Dk, I], indices [M, k], updates [M, I]; scatter_elements: y [i, indices [i, j, k], k] meets updates [i, j, k].
   y holds the data already. Updates apply in order, by one thread; indices and updates are dense. */
#include "common/move.h"
#include "gen/params.h"

typedef void (*meet_fn)(void *y, int64_t ys, const void *x, int64_t n);

#define MEET(NAME, T, EXPR)                                              \
  static void NAME(void *y_, int64_t ys, const void *x_, int64_t n) {    \
    const T *x = x_;                                                     \
    T *y = y_;                                                           \
    for (int64_t i = 0; i < n; i++) {                                    \
      T a = y[i * ys], b = x[i];                                         \
      y[i * ys] = (T)(EXPR);                                             \
    }                                                                    \
  }
#define MEETS(S, T, U)                                                   \
  MEET(add_##S, T, (U)a + (U)b)                                          \
  MEET(mul_##S, T, (U)a * (U)b)                                          \
  MEET(max_##S, T, a > b || a != a ? a : b)                              \
  MEET(min_##S, T, a < b || a != a ? a : b)
#define ROW(S) {0, add_##S, mul_##S, max_##S, min_##S}

MEETS(f32, float, float)
MEETS(f64, double, double)
MEETS(i8, int8_t, uint32_t)
MEETS(i16, int16_t, uint32_t)
MEETS(i32, int32_t, uint32_t)
MEETS(i64, int64_t, uint64_t)
MEETS(u8, uint8_t, uint32_t)
MEETS(u16, uint16_t, uint32_t)
MEETS(u32, uint32_t, uint32_t)
MEETS(u64, uint64_t, uint64_t)
MEET(put_1, uint8_t, ((void)a, b))
MEET(put_2, uint16_t, ((void)a, b))
MEET(put_4, uint32_t, ((void)a, b))
MEET(put_8, uint64_t, ((void)a, b))

static meet_fn find(unsigned dtype, int32_t reduction) {
  static const meet_fn put[9] = {[1] = put_1, [2] = put_2, [4] = put_4, [8] = put_8};
  static const meet_fn by[17][5] = {
    [FL_F32] = ROW(f32), [FL_F64] = ROW(f64), [FL_I8] = ROW(i8), [FL_I16] = ROW(i16), [FL_I32] = ROW(i32), [FL_I64] = ROW(i64),
    [FL_U8] = ROW(u8), [FL_U16] = ROW(u16), [FL_U32] = ROW(u32), [FL_U64] = ROW(u64),
  };
  if (reduction < 0 || reduction > 4 || dtype > 16) return 0;
  return reduction ? by[dtype][reduction] : put[fl_dtype_size(dtype)];
}

static bool operands(const fl_call *c) {
  if (c->n_in != 2 || c->n_out != 1 || !fl_is_index(c->t[0]) || !fl_is_dense(c->t[0]) || !fl_is_dense(c->t[1])) return false;
  return c->t[1]->dtype == c->t[2]->dtype;
}

fl_status fl_scatter_nd_check(const fl_call *c) {
  const fl_scatter_nd_params *p = c->params;
  const fl_tensor *k = c->t[0], *u = c->t[1], *y = c->t[2];
  if (!operands(c) || c->params_size != sizeof *p || !find(y->dtype, p->reduction)) return FL_PLAN_PARAMS;
  if (k->rank != 2 || u->rank != 2 || u->dims[0] != k->dims[0] || y->rank != k->dims[1] + 1) return FL_PLAN_PARAMS;
  return u->dims[1] == y->dims[y->rank - 1] ? FL_OK : FL_PLAN_PARAMS;
}

fl_status fl_scatter_nd_generic(const fl_call *c) {
  const fl_scatter_nd_params *p = c->params;
  const fl_tensor *k = c->t[0], *u = c->t[1], *y = c->t[2];
  int64_t size = (int64_t)fl_dtype_size(y->dtype), length = k->dims[1], inner = u->dims[1];
  meet_fn meet = find(y->dtype, p->reduction);
  if (c->part != 0 || inner == 0) return FL_OK;
  for (int64_t m = 0; m < k->dims[0]; m++) {
    int64_t offset = 0;
    for (int64_t j = 0; j < length; j++) {
      int64_t at = fl_index(k, c->p[0], m * length + j, y->dims[j]);
      if (at < 0) return FL_DATA_INDEX;
      offset += at * y->strides[j];
    }
    meet((char *)c->p[2] + offset * size, y->strides[y->rank - 1], (const char *)c->p[1] + m * inner * size, inner);
  }
  return FL_OK;
}

fl_status fl_scatter_elements_check(const fl_call *c) {
  const fl_scatter_elements_params *p = c->params;
  const fl_tensor *k = c->t[0], *y = c->t[2];
  if (!operands(c) || c->params_size != sizeof *p || !find(y->dtype, p->reduction)) return FL_PLAN_PARAMS;
  if (!fl_same_dims(k, c->t[1]) || k->rank != y->rank || p->axis < 0 || p->axis >= y->rank) return FL_PLAN_PARAMS;
  for (int32_t a = 0; a < y->rank; a++)
    if (a != p->axis && k->dims[a] > y->dims[a]) return FL_PLAN_PARAMS;
  return FL_OK;
}

fl_status fl_scatter_elements_generic(const fl_call *c) {
  const fl_scatter_elements_params *p = c->params;
  const fl_tensor *k = c->t[0], *y = c->t[2];
  int64_t size = (int64_t)fl_dtype_size(y->dtype), n = fl_elements(k);
  meet_fn meet = find(y->dtype, p->reduction);
  for (int64_t i = 0; i < n && c->part == 0; i++) {
    int64_t rest = i, offset = 0, at = fl_index(k, c->p[0], i, y->dims[p->axis]);
    if (at < 0) return FL_DATA_INDEX;
    for (int32_t a = y->rank; a-- > 0; rest /= k->dims[a]) offset += (a == p->axis ? at : rest % k->dims[a]) * y->strides[a];
    meet((char *)c->p[2] + offset * size, 1, (const char *)c->p[1] + i * size, 1);
  }
  return FL_OK;
}
