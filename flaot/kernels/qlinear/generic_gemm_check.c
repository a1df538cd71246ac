/* Checks of conv_gemm_s8; its run is in avx2.c and avx512.c. */
#include "qlinear/gemm.h"

static bool is_vector(const fl_tensor *t, int32_t size, unsigned dtype) { return t->rank == 1 && t->dims[0] == size && t->dtype == dtype; }

static bool numbers_ok(const fl_conv_gemm_s8_params *p) {
  if ((p->vl != 8 && p->vl != 16) || p->group < 1) return false;
  for (int i = 0; i < 3; i++)
    if (p->taps[i] < 1 || p->taps[i] > 4096 || p->strides[i] < 1 || p->pads[i] < 0 || p->dilations[i] < 1) return false;
  return true;
}

fl_status fl_conv_gemm_s8_check(const fl_call *c) {
  const fl_conv_gemm_s8_params *p = c->params;
  if ((c->n_in != 3 && c->n_in != 7 && c->n_in != 8) || c->n_out != 1 || c->params_size != sizeof *p || !numbers_ok(p)) return FL_PLAN_PARAMS;
  const fl_tensor *y = c->t[c->n_in], *const *t = c->t;
  if (!fl_is_byte(t[GX]) || t[GX]->rank < 3 || t[GX]->rank > 5 || y->rank != t[GX]->rank || y->dims[0] != t[GX]->dims[0]) return FL_PLAN_PARAMS;
  if (t[GX]->dims[1] % p->group || y->dims[1] % p->group || t[GX]->dims[1] > 1 << 20 || !is_vector(t[GZX], 1, t[GX]->dtype)) return FL_PLAN_PARAMS;
  fl_s8 s = fl_s8_of(p, t[GX], y);
  if (s.padded > 1 << 24 || fl_s8_scratch(&s) > (int64_t)c->scratch_size) return FL_PLAN_PARAMS;
  int64_t weights = p->group * s.columns * s.padded;
  if (weights > INT32_MAX || !is_vector(t[GW], (int32_t)weights, FL_I16) || !fl_is_dense(t[GW])) return FL_PLAN_PARAMS;
  if (c->n_in == 3) return y->dtype == FL_I32 ? FL_OK : FL_PLAN_PARAMS;
  int32_t m = y->dims[1];
  if (!fl_is_byte(y) || !is_vector(t[GSX], 1, FL_F32) || !is_vector(t[GSW], m, FL_F32) || !is_vector(t[GSY], 1, FL_F32)) return FL_PLAN_PARAMS;
  if (!is_vector(t[GZY], 1, y->dtype)) return FL_PLAN_PARAMS;
  return c->n_in == 7 || is_vector(t[GBIAS], m, FL_I32) ? FL_OK : FL_PLAN_PARAMS;
}
