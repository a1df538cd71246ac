/* Y[b, h, i, :] = sum over j of p[j] V[b, h / group, j, :], p = softmax(softcap tanh(scale Q K^T / softcap) + mask) over the keys j;
   no tanh when softcap is 0. t: Q [b, h, i, d], K [b, g, j, d], V [b, g, j, e], optional mask [b, h, i, j], Y [b, h, i, e], any strides.
   causal: query i sees the keys j <= i + offset. Masks of -inf throughout, or no key to see: zeros with zero_blind, else NaN. No keys at
   all: zeros. Scratch holds floats: a score per key, a query, a row of Y. A dot product has LANES sums, added in order at the end (one
   sum in float16). */
#include "common/math.h"
#include "common/sum.h"
#include "flaot/kernel.h"
#include "gen/params.h"

#ifndef FL_HALF_SUMS /* checked once, for both */
fl_status fl_attention_f32_check(const fl_call *c) {
  if (c->n_in < 3 || c->n_in > 4 || c->n_out != 1 || c->params_size != sizeof(fl_attention_f32_params)) return FL_PLAN_PARAMS;
  const fl_tensor *q = c->t[0], *k = c->t[1], *v = c->t[2], *y = c->t[c->n_in];
  for (uint32_t i = 0; i <= c->n_in; i++)
    if (c->t[i]->rank != 4 || c->t[i]->dtype != FL_F32 || c->t[i]->dims[0] != q->dims[0]) return FL_PLAN_PARAMS;
  if (k->dims[1] < 1 || q->dims[1] % k->dims[1] != 0 || k->dims[3] != q->dims[3]) return FL_PLAN_PARAMS;
  if (v->dims[1] != k->dims[1] || v->dims[2] != k->dims[2]) return FL_PLAN_PARAMS;
  if (y->dims[1] != q->dims[1] || y->dims[2] != q->dims[2] || y->dims[3] != v->dims[3]) return FL_PLAN_PARAMS;
  if (c->n_in == 4) {
    const fl_tensor *m = c->t[3];
    if (m->dims[1] != q->dims[1] || m->dims[2] != q->dims[2] || m->dims[3] != k->dims[2]) return FL_PLAN_PARAMS;
  }
  uint64_t floats = (uint64_t)k->dims[2] + (uint64_t)q->dims[3] + (uint64_t)v->dims[3];
  return floats * sizeof(float) <= c->scratch_size ? FL_OK : FL_PLAN_PARAMS;
}
#endif

#ifdef FL_HALF_SUMS
enum { LANES = 1 };
#else
enum { LANES = 8 };
#endif

static float dot(const float *a, const float *b, int64_t bs, int64_t n) {
  float sums[LANES] = {0}, total = 0.0f;
  int64_t i = 0;
  if (bs == 1)
    for (; i + LANES <= n; i += LANES)
      for (int l = 0; l < LANES; l++) sums[l] = FL_SUM(sums[l] + a[i + l] * b[i + l]);
  for (; i < n; i++) sums[i % LANES] = FL_SUM(sums[i % LANES] + a[i] * b[i * bs]);
  for (int l = 0; l < LANES; l++) total += sums[l];
  return total;
}

static const float *at(const fl_call *c, uint32_t operand, int64_t b, int64_t h, int64_t i) {
  const int32_t *s = c->t[operand]->strides;
  return (const float *)c->p[operand] + b * s[0] + h * s[1] + i * s[2];
}

/* Scores of the first `seen` keys into s; their maximum. *blind: whether the mask hides all of them. */
static float score(const fl_call *c, const float *q, const float *k, const float *mask, int64_t seen, float *s, bool *blind) {
  const fl_attention_f32_params *p = c->params;
  const fl_tensor *tk = c->t[1];
  float max = -__builtin_inff();
  *blind = true;
  for (int64_t j = 0; j < seen; j++) {
    float v = dot(q, k + j * tk->strides[2], tk->strides[3], tk->dims[3]) * p->scale;
    if (p->softcap > 0.0f) v = p->softcap * fl_tanhf(v / p->softcap);
    float m = mask ? mask[j * c->t[3]->strides[3]] : 0.0f;
    *blind = *blind && m == -__builtin_inff();
    s[j] = v + m;
    max = s[j] > max ? s[j] : max;
  }
  return max;
}

/* The weights of s, in place, applied to the rows of V; out [columns] is their sum. */
static void weigh(float *s, float max, int64_t seen, const float *v, const fl_tensor *tv, float *out) {
  int64_t columns = tv->dims[3], vs = tv->strides[3];
  float sum = 0.0f;
  for (int64_t j = 0; j < seen; j++) s[j] = fl_expf(s[j] - max), sum = FL_SUM(sum + s[j]);
  for (int64_t e = 0; e < columns; e++) out[e] = 0.0f;
  for (int64_t j = 0; j < seen; j++) {
    const float *from = v + j * tv->strides[2];
    float w = s[j] / sum;
    if (vs == 1)
      for (int64_t e = 0; e < columns; e++) out[e] = FL_SUM(out[e] + w * from[e]);
    else
      for (int64_t e = 0; e < columns; e++) out[e] = FL_SUM(out[e] + w * from[e * vs]);
  }
}

static void row(const fl_call *c, int64_t b, int64_t h, int64_t i) {
  const fl_attention_f32_params *p = c->params;
  const fl_tensor *tq = c->t[0], *tv = c->t[2], *ty = c->t[c->n_in];
  int64_t keys = tv->dims[2], depth = tq->dims[3], columns = tv->dims[3], head = h / (tq->dims[1] / tv->dims[1]);
  float *s = c->scratch, *query = s + keys, *out = query + depth;
  const float *q = at(c, 0, b, h, i);
  for (int64_t d = 0; d < depth; d++) query[d] = q[d * tq->strides[3]];
  int64_t seen = keys, reach = i + p->offset + 1;
  if (p->causal && reach < keys) seen = reach > 0 ? reach : 0;
  bool blind;
  float max = score(c, query, at(c, 1, b, head, 0), c->n_in == 4 ? at(c, 3, b, h, i) : 0, seen, s, &blind);
  weigh(s, max, seen, at(c, 2, b, head, 0), tv, out);
  float *y = (float *)c->p[c->n_in] + b * ty->strides[0] + h * ty->strides[1] + i * ty->strides[2];
  float none = p->zero_blind || keys == 0 ? 0.0f : __builtin_nanf("");
  for (int64_t e = 0; e < columns; e++) y[e * ty->strides[3]] = blind ? none : out[e];
}

fl_status fl_attention_f32_generic(const fl_call *c) {
  const fl_tensor *y = c->t[c->n_in];
  if (fl_elements(y) == 0) return FL_OK;
  int64_t heads = y->dims[1], queries = y->dims[2], rows = y->dims[0] * heads * queries;
  for (int64_t r = fl_split(rows, c->part, c->parts), end = fl_split(rows, c->part + 1, c->parts); r < end; r++)
    row(c, r / queries / heads, r / queries % heads, r % queries);
  return FL_OK;
}
