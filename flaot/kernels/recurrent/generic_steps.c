/* Operands of recurrent_steps, with U = units padded to whole vectors: xw [T, N, D * gates * U], the products with X plus all biases
   outside a reset, gates interleaved per vector of units; packed recurrent weights, a vector of D * gates * U * H; for GRU with the
   linear part before the reset its inner bias [D * U]; as flagged lengths i32 [N], h0 and c0 [D, N, H]; outputs Y [T, D, N, H],
   final h [D, N, H], for LSTM final c [D, N, H]. xw, weights and bias are dense along their last axis. */
#include "recurrent/steps.h"

static bool is(const steps_operand *o, unsigned rank, const int64_t *dims) {
  if (!o->t) return true;
  if (o->t->dtype != FL_F32 || o->t->rank != rank) return false;
  for (unsigned i = 0; i < rank; i++)
    if (o->t->dims[i] != dims[i]) return false;
  return true;
}

fl_status fl_recurrent_steps_check(const fl_call *c) {
  const fl_recurrent_steps_params *p = c->params;
  if (c->params_size != sizeof *p || p->cell < 0 || p->cell >= FL_STEPS_COUNT || p->has < 0 || p->has > 7 || p->reverse >> 1) return FL_PLAN_PARAMS;
  if ((p->vl != 8 && p->vl != 16) || (p->cell != FL_STEPS_LSTM && (p->has & STEPS_C0))) return FL_PLAN_PARAMS;
  uint32_t in = 2u + (p->cell == FL_STEPS_GRU_AFTER) + (uint32_t)((p->has & 1) + (p->has >> 1 & 1) + (p->has >> 2));
  if (c->n_in != in || c->n_out != (p->cell == FL_STEPS_LSTM ? 3u : 2u)) return FL_PLAN_PARAMS;
  steps_operands o = steps_bind(c);
  if (o.y.t->rank != 4) return FL_PLAN_PARAMS;
  int64_t t = o.y.t->dims[0], d = o.y.t->dims[1], n = o.y.t->dims[2], h = o.y.t->dims[3], g = steps_gates[p->cell];
  int64_t units = (h + p->vl - 1) / p->vl * p->vl;
  if (d > 2 || h > INT32_MAX / 64 || (units && h > INT32_MAX / (d + 1) / g / units)) return FL_PLAN_PARAMS;
  bool fits = is(&o.xw, 3, (int64_t[]){t, n, d * g * units}) && is(&o.r, 1, (int64_t[]){d * g * units * h}) &&
    is(&o.rb, 1, (int64_t[]){d * units}) && is(&o.h0, 3, (int64_t[]){d, n, h}) && is(&o.c0, 3, (int64_t[]){d, n, h}) &&
    is(&o.y, 4, (int64_t[]){t, d, n, h}) && is(&o.hn, 3, (int64_t[]){d, n, h}) && is(&o.cn, 3, (int64_t[]){d, n, h});
  if (!fits || (o.xw.t->dims[2] > 1 && o.xw.t->strides[2] != 1) || (o.r.t->dims[0] > 1 && o.r.t->strides[0] != 1)) return FL_PLAN_PARAMS;
  if (o.rb.t && o.rb.t->dims[0] > 1 && o.rb.t->strides[0] != 1) return FL_PLAN_PARAMS;
  if (o.length && (o.length->dtype != FL_I32 || o.length->rank != 1 || o.length->dims[0] != n)) return FL_PLAN_PARAMS;
  return c->scratch_size / sizeof(float) >= (size_t)(STEPS_ROWS * STEPS_STATES * units) ? FL_OK : FL_PLAN_PARAMS;
}
