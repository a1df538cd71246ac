/* Operands of gemm_f32: A [b..., m, k] of any strides; B [b..., k, n] of any strides with k or n contiguous, or packed as one
   vector; as flagged bias (a vector padded to whole SIMD vectors) and residual [b..., m, n] with contiguous n; Y with contiguous n. */
#include "common/activation.h"
#include "flaot/kernel.h"
#include "gen/params.h"
#include "matmul/gemm.h"

static bool contiguous(const fl_tensor *t, unsigned axis) { return t->dims[axis] <= 1 || t->strides[axis] == 1; }

static bool floats(const fl_tensor *t, unsigned rank) { return t->dtype == FL_F32 && t->rank == rank; }

static bool stacks(const fl_tensor *t, const fl_tensor *y) {
  for (unsigned i = 0; i + 2 < y->rank; i++)
    if (t->dims[i] != y->dims[i]) return false;
  return true;
}

fl_status fl_gemm_f32_check(const fl_call *c) {
  const fl_gemm_f32_params *p = c->params;
  if (c->params_size != sizeof *p || p->packed >> 1 || p->bias >> 1 || p->residual >> 1 || p->nv < 1 || p->nv > MAX_VECTORS) return FL_PLAN_PARAMS;
  if (p->act < 0 || p->act >= FL_ACT_COUNT || p->act == FL_ACT_PRELU || (p->vl != 8 && p->vl != 16)) return FL_PLAN_PARAMS;
  if (c->n_in != 2u + (unsigned)p->bias + (unsigned)p->residual || c->n_out != 1) return FL_PLAN_PARAMS;
  const fl_tensor *a = c->t[0], *b = c->t[1], *y = c->t[c->n_in];
  unsigned r = y->rank;
  if (r < 2 || !floats(a, r) || !floats(y, r) || !stacks(a, y) || !contiguous(y, r - 1)) return FL_PLAN_PARAMS;
  int64_t m = y->dims[r - 2], n = y->dims[r - 1], k = a->dims[r - 1], padded = (n + p->vl - 1) / p->vl * p->vl;
  if (a->dims[r - 2] != m) return FL_PLAN_PARAMS;
  if (p->packed) {
    if (!floats(b, 1) || !contiguous(b, 0) || b->dims[0] < padded * k) return FL_PLAN_PARAMS;
  } else {
    if (!floats(b, r) || !stacks(b, y) || b->dims[r - 2] != k || b->dims[r - 1] != n) return FL_PLAN_PARAMS;
    if (c->scratch_size / sizeof(float) < (size_t)(KC * MAX_VECTORS * p->vl)) return FL_PLAN_PARAMS;
    if (!contiguous(b, r - 1) && !contiguous(b, r - 2)) return FL_PLAN_PARAMS;
  }
  if (p->bias && (!floats(c->t[2], 1) || !contiguous(c->t[2], 0) || c->t[2]->dims[0] < padded)) return FL_PLAN_PARAMS;
  if (!p->residual) return FL_OK;
  const fl_tensor *res = c->t[2 + p->bias];
  return floats(res, r) && fl_same_dims(res, y) && contiguous(res, r - 1) ? FL_OK : FL_PLAN_PARAMS;
}
