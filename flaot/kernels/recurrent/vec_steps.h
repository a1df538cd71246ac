/* The steps of LSTM, GRU and RNN with default activations, the products with X done before; operands as in generic_steps.c.
   Units go in groups of one vector. The recurrent weights of a group are one panel [k][gates][lanes], so a pass over it yields finished
   units; up to ROWS sequences share a pass. Sums too short to hide the latency of an FMA take PH steps of k side by side. */
#include "common/vmath.h"
#include "flaot/kernel.h"
#include "gen/params.h"
#include "recurrent/steps.h"

#if FL_VL == 16
enum { ROWS = 4 };
#else
enum { ROWS = 2 };
#endif

/* c[i][j] += sum over k of h[i][k] * w[k][j]. */
FL_INLINE void panel(const int MB, const int NV, const int PH, const float *const *h, int64_t depth, const float *w, vf c[][4]) {
  vf d[7][2][4];
  int64_t k = 0;
  FL_UNROLL for (int u = 1; u < PH; u++)
    FL_UNROLL for (int i = 0; i < MB; i++) FL_UNROLL for (int j = 0; j < NV; j++) d[u - 1][i][j] = (vf){0};
  FL_NO_UNROLL for (; k + PH <= depth; k += PH)
    FL_UNROLL for (int u = 0; u < PH; u++, w += NV * FL_VL) {
      vf b[4];
      FL_UNROLL for (int j = 0; j < NV; j++) b[j] = v_load(w + j * FL_VL);
      FL_UNROLL for (int l = 0; l < NV * FL_VL; l += 16) __builtin_prefetch(w + l + 512, 0, 3); /* across page borders */
      FL_UNROLL for (int i = 0; i < MB; i++) {
        vf x, *sum = u ? d[u - 1][i] : c[i];
        FL_BROADCAST(x, h[i] + k + u);
        FL_UNROLL for (int j = 0; j < NV; j++) FL_FMA(sum[j], b[j], x);
      }
      FL_FENCE;
    }
  FL_NO_UNROLL for (; k < depth; k++, w += NV * FL_VL)
    FL_UNROLL for (int i = 0; i < MB; i++) FL_UNROLL for (int j = 0; j < NV; j++) c[i][j] += v_load(w + j * FL_VL) * h[i][k];
  FL_UNROLL for (int u = 1; u < PH; u++)
    FL_UNROLL for (int i = 0; i < MB; i++) FL_UNROLL for (int j = 0; j < NV; j++) c[i][j] += d[u - 1][i][j];
}

typedef struct block { /* up to ROWS sequences of one direction at one step */
  const float *h[ROWS], *xw[ROWS];
  float *next[ROWS], *c[ROWS], *gate[ROWS];
  const float *r, *rb; /* packed weights; GRU: bias inside the reset */
  int64_t H, groups;
} block;

FL_INLINE void lstm_rows(const int MB, const int PH, const block *s) {
  for (int64_t u = 0; u < s->groups; u++) {
    const int64_t o = u * FL_VL;
    vf g[ROWS][4];
    FL_UNROLL for (int i = 0; i < MB; i++) FL_UNROLL for (int j = 0; j < 4; j++) g[i][j] = v_load(s->xw[i] + 4 * o + j * FL_VL);
    panel(MB, 4, PH, s->h, s->H, s->r + u * s->H * 4 * FL_VL, g);
    FL_UNROLL for (int i = 0; i < MB; i++) { /* gates i, o, f, c */
      vf c = v_sigmoid(g[i][2]) * v_load(s->c[i] + o) + v_sigmoid(g[i][0]) * v_tanh(g[i][3]);
      v_store(s->c[i] + o, c), v_store(s->next[i] + o, v_sigmoid(g[i][1]) * v_tanh(c));
    }
  }
}

FL_INLINE vf gru_mix(vf z, vf candidate, vf h) { return candidate + z * (h - candidate); }

FL_INLINE void gru_after_rows(const int MB, const int PH, const block *s) {
  for (int64_t u = 0; u < s->groups; u++) {
    const int64_t o = u * FL_VL;
    vf g[ROWS][4];
    FL_UNROLL for (int i = 0; i < MB; i++) {
      g[i][0] = v_load(s->xw[i] + 3 * o), g[i][1] = v_load(s->xw[i] + 3 * o + FL_VL), g[i][2] = v_load(s->rb + o);
    }
    panel(MB, 3, PH, s->h, s->H, s->r + u * s->H * 3 * FL_VL, g);
    FL_UNROLL for (int i = 0; i < MB; i++) { /* gates z, r, h */
      vf candidate = v_tanh(v_load(s->xw[i] + 3 * o + 2 * FL_VL) + v_sigmoid(g[i][1]) * g[i][2]);
      v_store(s->next[i] + o, gru_mix(v_sigmoid(g[i][0]), candidate, v_load(s->h[i] + o)));
    }
  }
}

/* Two passes: z and r h of all units first (in c and gate), then the candidates; weights [z r panels][h panels]. */
FL_INLINE void gru_before_rows(const int MB, const int P2, const int P1, const block *s) {
  for (int64_t u = 0; u < s->groups; u++) {
    const int64_t o = u * FL_VL;
    vf g[ROWS][4];
    FL_UNROLL for (int i = 0; i < MB; i++) g[i][0] = v_load(s->xw[i] + 3 * o), g[i][1] = v_load(s->xw[i] + 3 * o + FL_VL);
    panel(MB, 2, P2, s->h, s->H, s->r + u * s->H * 2 * FL_VL, g);
    FL_UNROLL for (int i = 0; i < MB; i++)
      v_store(s->c[i] + o, v_sigmoid(g[i][0])), v_store(s->gate[i] + o, v_sigmoid(g[i][1]) * v_load(s->h[i] + o));
  }
  for (int64_t u = 0; u < s->groups; u++) {
    const int64_t o = u * FL_VL;
    vf g[ROWS][4];
    FL_UNROLL for (int i = 0; i < MB; i++) g[i][0] = v_load(s->xw[i] + 3 * o + 2 * FL_VL);
    panel(MB, 1, P1, (const float *const *)s->gate, s->H, s->r + (2 * s->groups + u) * s->H * FL_VL, g);
    FL_UNROLL for (int i = 0; i < MB; i++)
      v_store(s->next[i] + o, gru_mix(v_load(s->c[i] + o), v_tanh(g[i][0]), v_load(s->h[i] + o)));
  }
}

FL_INLINE void rnn_rows(const int MB, const int PH, const bool relu, const block *s) {
  for (int64_t u = 0; u < s->groups; u++) {
    const int64_t o = u * FL_VL;
    vf g[ROWS][4];
    FL_UNROLL for (int i = 0; i < MB; i++) g[i][0] = v_load(s->xw[i] + o);
    panel(MB, 1, PH, s->h, s->H, s->r + u * s->H * FL_VL, g);
    FL_UNROLL for (int i = 0; i < MB; i++) v_store(s->next[i] + o, relu ? v_max((vf){0}, g[i][0]) : v_tanh(g[i][0]));
  }
}

#define FL_ROWS(M, P4, P3, P2, P1)                                                               \
  FL_NOINLINE void lstm_##M(const block *s) { lstm_rows(M, P4, s); }                             \
  FL_NOINLINE void gru_after_##M(const block *s) { gru_after_rows(M, P3, s); }                   \
  FL_NOINLINE void gru_before_##M(const block *s) { gru_before_rows(M, P2, P1, s); }             \
  FL_NOINLINE void rnn_tanh_##M(const block *s) { rnn_rows(M, P1, false, s); }                   \
  FL_NOINLINE void rnn_relu_##M(const block *s) { rnn_rows(M, P1, true, s); }
typedef void rows_fn(const block *);
FL_ROWS(1, 2, 3, 4, 8)
FL_ROWS(2, 1, 1, 2, 4)
#if FL_VL == 16
FL_ROWS(3, 1, 1, 1, 1)
FL_ROWS(4, 1, 1, 1, 1)
#define FL_ALL(NAME) {0, NAME##_1, NAME##_2, NAME##_3, NAME##_4}
#else
#define FL_ALL(NAME) {0, NAME##_1, NAME##_2}
#endif
static rows_fn *const steps_table[FL_STEPS_COUNT][ROWS + 1] = {FL_ALL(lstm), FL_ALL(gru_after), FL_ALL(gru_before), FL_ALL(rnn_tanh), FL_ALL(rnn_relu)};

/* H floats between a strided operand and a dense padded row. */
static void fetch(const steps_operand *o, int64_t d, int64_t n, float *to, int64_t H, int64_t padded) {
  const fl_tensor *t = o->t;
  for (int64_t j = 0; j < padded; j++) to[j] = t && j < H ? o->p[d * t->strides[0] + n * t->strides[1] + j * t->strides[2]] : 0.0f;
}

static void deliver(float *to, int64_t stride, const float *from, int64_t H) {
  if (stride == 1) {
    int64_t j = 0;
    for (; j + FL_VL <= H; j += FL_VL) v_store(to + j, v_load(from + j));
    if (j < H) v_store_n(to + j, v_load_n(from + j, (int)(H - j)), (int)(H - j));
  } else {
    for (int64_t j = 0; j < H; j++) to[j * stride] = from[j];
  }
}

/* Sequences n0..n0+rows-1 in direction d, all of the same length. */
static void sequences(const steps_operands *o, int cell, bool backward, int64_t d, int64_t n0, int rows, int64_t length, float *room) {
  const fl_tensor *y = o->y.t;
  int64_t H = y->dims[3], groups = (H + FL_VL - 1) / FL_VL, padded = groups * FL_VL, gates = steps_gates[cell];
  float *h[2][ROWS];
  block s = {.r = o->r.p + d * groups * FL_VL * gates * H, .rb = o->rb.t ? o->rb.p + d * padded : NULL, .H = H, .groups = groups};
  for (int i = 0; i < rows; i++) {
    float *mine = room + i * STEPS_STATES * padded;
    h[0][i] = mine, h[1][i] = mine + padded, s.c[i] = mine + 2 * padded, s.gate[i] = mine + 3 * padded;
    fetch(&o->h0, d, n0 + i, h[0][i], H, padded), fetch(&o->c0, d, n0 + i, s.c[i], H, padded);
  }
  for (int64_t step = 0; step < length; step++) {
    int64_t t = backward ? length - 1 - step : step;
    for (int i = 0; i < rows; i++) {
      s.h[i] = h[step & 1][i], s.next[i] = h[~step & 1][i];
      s.xw[i] = o->xw.p + t * o->xw.t->strides[0] + (n0 + i) * o->xw.t->strides[1] + d * gates * padded;
    }
    steps_table[cell][rows](&s);
    for (int i = 0; i < rows; i++)
      deliver((float *)o->y.p + t * y->strides[0] + d * y->strides[1] + (n0 + i) * y->strides[2], y->strides[3], s.next[i], H);
  }
  for (int i = 0; i < rows; i++) {
    const fl_tensor *th = o->hn.t, *tc = o->cn.t;
    for (int64_t j = 0; !length && j < padded; j++) h[0][i][j] = s.c[i][j] = 0.0f;
    deliver((float *)o->hn.p + d * th->strides[0] + (n0 + i) * th->strides[1], th->strides[2], h[length & 1][i], H);
    if (tc) deliver((float *)o->cn.p + d * tc->strides[0] + (n0 + i) * tc->strides[1], tc->strides[2], s.c[i], H);
    for (int64_t t = length; t < y->dims[0]; t++) {
      for (int64_t j = 0; j < padded; j++) h[0][i][j] = 0.0f;
      deliver((float *)o->y.p + t * y->strides[0] + d * y->strides[1] + (n0 + i) * y->strides[2], y->strides[3], h[0][i], H);
    }
  }
}

static fl_status steps_run(const fl_call *c) {
  const fl_recurrent_steps_params *p = c->params;
  if (p->vl != FL_VL) return FL_PLAN_PARAMS; /* packed for another variant */
  steps_operands o = steps_bind(c);
  if (fl_elements(o.hn.t) == 0) return FL_OK;
  int64_t T = o.y.t->dims[0], D = o.y.t->dims[1], N = o.y.t->dims[2], blocks = (N + ROWS - 1) / ROWS, items = D * blocks;
  for (int64_t i = fl_split(items, c->part, c->parts), end = fl_split(items, c->part + 1, c->parts); i < end; i++) {
    int64_t d = i / blocks, n = N * (i % blocks) / blocks, stop = N * (i % blocks + 1) / blocks;
    while (n < stop) {
      int rows = 0;
      int64_t length = T, same;
      for (; n + rows < stop; rows++) {
        same = o.lengths ? o.lengths[(n + rows) * o.length_stride] : T;
        if (same < 0 || same > T) return FL_DATA_INDEX;
        if (rows && same != length) break;
        length = same;
      }
      sequences(&o, p->cell, d == 1 || p->reverse, d, n, rows, length, c->scratch);
      n += rows;
    }
  }
  return FL_OK;
}
