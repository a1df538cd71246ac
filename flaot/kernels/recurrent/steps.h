/* What the check and the vector variants of recurrent_steps share. */
#ifndef FLAOT_RECURRENT_STEPS_H
#define FLAOT_RECURRENT_STEPS_H
#include "flaot/kernel.h"
#include "gen/params.h"

enum { STEPS_LENGTHS = 1, STEPS_H0 = 2, STEPS_C0 = 4 };
enum { STEPS_ROWS = 4, STEPS_STATES = 4 }; /* scratch: rows x states x padded units, floats */
static const int64_t steps_gates[FL_STEPS_COUNT] = {4, 3, 3, 1, 1};

typedef struct steps_operand { const fl_tensor *t; const float *p; } steps_operand;
typedef struct steps_operands {
  steps_operand xw, r, rb, h0, c0, y, hn, cn;
  const fl_tensor *length;
  const int32_t *lengths;
  int64_t length_stride;
} steps_operands;

/* Operands by the flags in `has`; valid counts are checked before. */
static inline steps_operands steps_bind(const fl_call *c) {
  const fl_recurrent_steps_params *p = c->params;
  steps_operands o = {0};
  uint32_t i = 0;
#define FL_NEXT(X) (o.X.t = c->t[i], o.X.p = c->p[i], i++)
  FL_NEXT(xw), FL_NEXT(r);
  if (p->cell == FL_STEPS_GRU_AFTER) FL_NEXT(rb);
  if (p->has & STEPS_LENGTHS) o.length = c->t[i], o.lengths = c->p[i], o.length_stride = c->t[i]->strides[0], i++;
  if (p->has & STEPS_H0) FL_NEXT(h0);
  if (p->has & STEPS_C0) FL_NEXT(c0);
  FL_NEXT(y), FL_NEXT(hn);
  if (p->cell == FL_STEPS_LSTM) FL_NEXT(cn);
#undef FL_NEXT
  return o;
}

#endif
