/* LSTM, GRU and RNN with every option of ONNX. t: X [T,N,I], W [D,G*H,I], R [D,G*H,H], then as flagged in `has` B [D,2*G*H],
   lengths i32 [N], h0 [D,N,H], c0 [D,N,H], P [D,3*H]; outputs Y [T,D,N,H], final h [D,N,H], for LSTM final c [D,N,H]; any strides.
   Scratch: (G + 3) * H floats. One item of work is one sequence in one direction. */
#include "common/activation.h"
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"

enum { LSTM, GRU, RNN, CELLS };
enum { HAS_B = 1, HAS_LENGTHS = 2, HAS_H0 = 4, HAS_C0 = 8, HAS_P = 16 };
enum { SIGMOID, TANH, RELU, AFFINE, LEAKY_RELU, THRESHOLDED_RELU, SCALED_TANH, HARD_SIGMOID, ELU, SOFTSIGN, SOFTPLUS, ACTS };
static const int32_t gates_of[CELLS] = {4, 3, 1}, acts_of[CELLS] = {3, 2, 1};

typedef struct { const fl_tensor *t; const void *p; } operand;
typedef struct { operand x, w, r, b, len, h0, c0, peep, y, hn, cn; } operands;

static operands bind(const fl_call *c) {
  const fl_recurrent_params *p = c->params;
  operands o = {{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}};
  operand *all[] = {&o.x, &o.w, &o.r, &o.b, &o.len, &o.h0, &o.c0, &o.peep, &o.y, &o.hn, &o.cn};
  uint32_t at = 0;
  for (uint32_t i = 0; i < 11; i++) {
    if (i >= 3 && i < 8 && !(p->has >> (i - 3) & 1)) continue;
    if (i == 10 && p->cell != LSTM) continue;
    all[i]->t = c->t[at], all[i]->p = c->p[at], at++;
  }
  return o;
}

#ifndef FL_HALF_SUMS /* checked once, for both */
static bool is(const operand *o, unsigned dtype, unsigned rank, const int64_t *dims) {
  if (!o->t) return true;
  if (o->t->dtype != dtype || o->t->rank != rank) return false;
  for (unsigned i = 0; i < rank; i++)
    if (o->t->dims[i] != dims[i]) return false;
  return true;
}

fl_status fl_recurrent_check(const fl_call *c) {
  const fl_recurrent_params *p = c->params;
  if (c->params_size != sizeof *p || p->cell < 0 || p->cell >= CELLS || p->has < 0 || p->has > 31 || p->reverse >> 1) return FL_PLAN_PARAMS;
  if (p->cell != LSTM && (p->has & (HAS_C0 | HAS_P))) return FL_PLAN_PARAMS;
  uint32_t in = 3;
  for (int i = 0; i < 5; i++) in += (uint32_t)(p->has >> i & 1);
  if (c->n_in != in || c->n_out != (p->cell == LSTM ? 3u : 2u)) return FL_PLAN_PARAMS;
  for (int i = 0; i < 6; i++)
    if (p->act[i] < 0 || p->act[i] >= ACTS) return FL_PLAN_PARAMS;
  operands o = bind(c);
  if (o.x.t->rank != 3 || o.r.t->rank != 3) return FL_PLAN_PARAMS;
  int64_t t = o.x.t->dims[0], n = o.x.t->dims[1], i = o.x.t->dims[2], d = o.r.t->dims[0], h = o.r.t->dims[2], g = gates_of[p->cell];
  if (d != 1 && d != 2) return FL_PLAN_PARAMS;
  bool fits = is(&o.x, FL_F32, 3, (int64_t[]){t, n, i}) && is(&o.w, FL_F32, 3, (int64_t[]){d, g * h, i}) &&
    is(&o.r, FL_F32, 3, (int64_t[]){d, g * h, h}) && is(&o.b, FL_F32, 2, (int64_t[]){d, 2 * g * h}) &&
    is(&o.len, FL_I32, 1, (int64_t[]){n}) && is(&o.h0, FL_F32, 3, (int64_t[]){d, n, h}) && is(&o.c0, FL_F32, 3, (int64_t[]){d, n, h}) &&
    is(&o.peep, FL_F32, 2, (int64_t[]){d, 3 * h}) && is(&o.y, FL_F32, 4, (int64_t[]){t, d, n, h}) &&
    is(&o.hn, FL_F32, 3, (int64_t[]){d, n, h}) && is(&o.cn, FL_F32, 3, (int64_t[]){d, n, h});
  return fits && c->scratch_size / sizeof(float) >= (size_t)((g + 3) * h) ? FL_OK : FL_PLAN_PARAMS;
}
#endif

static const float *at(const operand *o, int64_t i, int64_t j, int64_t k) {
  const fl_tensor *t = o->t;
  return (const float *)o->p + i * t->strides[0] + (t->rank > 1 ? j * t->strides[1] : 0) + (t->rank > 2 ? k * t->strides[2] : 0);
}

static float activate(int32_t act, float alpha, float beta, float v) {
  switch (act) {
  case SIGMOID: return 1.0f / (1.0f + fl_expf(-v));
  case TANH: return fl_act_tanh(v);
  case RELU: return v > 0.0f ? v : 0.0f;
  case AFFINE: return alpha * v + beta;
  case LEAKY_RELU: return v >= 0.0f ? v : alpha * v;
  case THRESHOLDED_RELU: return v > alpha ? v : 0.0f;
  case SCALED_TANH: return alpha * fl_act_tanh(beta * v);
  case HARD_SIGMOID: return fl_clampf(alpha * v + beta, 0.0f, 1.0f);
  case ELU: return v >= 0.0f ? v : alpha * (fl_expf(v) - 1.0f);
  case SOFTSIGN: return v / (1.0f + (v < 0.0f ? -v : v));
  default: return v > 0.0f ? v + fl_logf(1.0f + fl_expf(-v)) : fl_logf(1.0f + fl_expf(v));
  }
}

typedef struct { const fl_recurrent_params *p; const operands *o; int64_t d, n, H; int32_t act0; float *gate, *h, *c, *rh; } cell;

static float act(const cell *s, int which, float v) {
  int i = s->act0 + which;
  return activate(s->p->act[i], s->p->alpha[i], s->p->beta[i], v);
}

static float clip(const cell *s, float v) { return s->p->clip > 0.0f ? fl_clampf(v, -s->p->clip, s->p->clip) : v; }

static float dot(const float *w, int64_t ws, const float *x, int64_t xs, int64_t n) {
  float sum = 0.0f;
  for (int64_t k = 0; k < n; k++) sum = FL_SUM(sum + w[k * ws] * x[k * xs]);
  return sum;
}

static float wx(const cell *s, int64_t t, int64_t row) {
  const operands *o = s->o;
  return dot(at(&o->w, s->d, row, 0), o->w.t->strides[2], at(&o->x, t, s->n, 0), o->x.t->strides[2], o->x.t->dims[2]);
}

static float rx(const cell *s, const float *h, int64_t row) { return dot(at(&s->o->r, s->d, row, 0), s->o->r.t->strides[2], h, 1, s->H); }

static float bias(const cell *s, int64_t row) { return s->o->b.t ? *at(&s->o->b, s->d, row, 0) : 0.0f; }

static float peep(const cell *s, int64_t row, float c) { return s->o->peep.t ? *at(&s->o->peep, s->d, row, 0) * c : 0.0f; }

static void step_lstm(const cell *s, int64_t t) {
  int64_t H = s->H;
  for (int64_t j = 0; j < 4 * H; j++) s->gate[j] = wx(s, t, j) + rx(s, s->h, j) + (bias(s, j) + bias(s, 4 * H + j));
  for (int64_t j = 0; j < H; j++) {
    float c = s->c[j], *g = s->gate + j;
    float i = act(s, 0, clip(s, g[0] + peep(s, j, c)));
    float f = s->p->flag ? 1.0f - i : act(s, 0, clip(s, g[2 * H] + peep(s, 2 * H + j, c)));
    c = f * c + i * act(s, 1, clip(s, g[3 * H]));
    s->c[j] = c, s->h[j] = act(s, 0, clip(s, g[H] + peep(s, H + j, c))) * act(s, 2, c);
  }
}

static void step_gru(const cell *s, int64_t t) {
  int64_t H = s->H;
  float *z = s->gate, *r = s->gate + H;
  for (int64_t j = 0; j < 2 * H; j++) s->gate[j] = act(s, 0, clip(s, wx(s, t, j) + rx(s, s->h, j) + (bias(s, j) + bias(s, 3 * H + j))));
  for (int64_t j = 0; j < H; j++) s->rh[j] = r[j] * s->h[j];
  for (int64_t j = 0; j < H; j++) {
    float b = bias(s, 5 * H + j), inner = s->p->flag ? r[j] * (rx(s, s->h, 2 * H + j) + b) : rx(s, s->rh, 2 * H + j) + b;
    s->gate[2 * H + j] = act(s, 1, clip(s, wx(s, t, 2 * H + j) + bias(s, 2 * H + j) + inner));
  }
  for (int64_t j = 0; j < H; j++) s->h[j] = (1.0f - z[j]) * s->gate[2 * H + j] + z[j] * s->h[j];
}

static void step_rnn(const cell *s, int64_t t) {
  for (int64_t j = 0; j < s->H; j++) s->gate[j] = act(s, 0, clip(s, wx(s, t, j) + rx(s, s->h, j) + (bias(s, j) + bias(s, s->H + j))));
  for (int64_t j = 0; j < s->H; j++) s->h[j] = s->gate[j];
}

static void put(const operand *o, int64_t offset, int64_t stride, const float *from, int64_t n) {
  float *to = (float *)(uintptr_t)o->p + offset;
  for (int64_t j = 0; j < n; j++) to[j * stride] = from ? from[j] : 0.0f;
}

static void sequence(const cell *s, int64_t length) {
  const operands *o = s->o;
  const fl_tensor *y = o->y.t;
  bool backward = s->d == 1 || s->p->reverse;
  for (int64_t j = 0; j < s->H; j++) {
    s->h[j] = o->h0.t ? *at(&o->h0, s->d, s->n, j) : 0.0f;
    s->c[j] = o->c0.t ? *at(&o->c0, s->d, s->n, j) : 0.0f;
  }
  for (int64_t i = 0; i < y->dims[0]; i++) {
    int64_t t = i < length && backward ? length - 1 - i : i;
    if (i < length) s->p->cell == LSTM ? step_lstm(s, t) : s->p->cell == GRU ? step_gru(s, t) : step_rnn(s, t);
    put(&o->y, t * y->strides[0] + s->d * y->strides[1] + s->n * y->strides[2], y->strides[3], i < length ? s->h : NULL, s->H);
  }
  const operand *finals[2] = {&o->hn, &o->cn};
  for (int k = 0; k < 2; k++) {
    const fl_tensor *f = finals[k]->t;
    if (f) put(finals[k], s->d * f->strides[0] + s->n * f->strides[1], f->strides[2], length ? k ? s->c : s->h : NULL, s->H);
  }
}

fl_status fl_recurrent_generic(const fl_call *c) {
  if (fl_elements(c->t[c->n_in + 1]) == 0) return FL_OK;
  const fl_recurrent_params *p = c->params;
  operands o = bind(c);
  int64_t H = o.r.t->dims[2], N = o.x.t->dims[1], T = o.x.t->dims[0], items = o.r.t->dims[0] * N;
  float *room = c->scratch;
  for (int64_t i = fl_split(items, c->part, c->parts), end = fl_split(items, c->part + 1, c->parts); i < end; i++) {
    int64_t d = i / N, n = i % N, length = T;
    if (o.len.t) length = ((const int32_t *)o.len.p)[n * o.len.t->strides[0]];
    if (length < 0 || length > T) return FL_DATA_INDEX;
    cell s = {p, &o, d, n, H, (int32_t)d * acts_of[p->cell], room + 3 * H, room, room + H, room + 2 * H};
    sequence(&s, length);
  }
  return FL_OK;
}
