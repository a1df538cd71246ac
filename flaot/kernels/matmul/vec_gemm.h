/* Y[b..., m, n] = act(sum_k A[b..., m, k] B[b..., k, n] + bias[n] + residual[b..., m, n]); operands as in generic_gemm.c.
   Constant B comes packed: panels of `nv` vectors of columns, the last with what is left, each [k][columns], zero padded.
   Other B is packed panel by panel into scratch, or read in place where few rows would not repay that.
   Rows go in blocks of MC and the depth in segments of KC, so that a panel segment stays in L1 or L2 while the block's rows pass;
   between segments partial sums rest in Y. */
#include "common/vmath.h"
#include "flaot/kernel.h"
#include "gen/params.h"
#include "matmul/gemm.h"
#include "matmul/vec_act.h"
#include "matmul/vec_tile.h"

typedef struct gemm {
  const fl_gemm_f32_params *p;
  const float *a, *b, *bias, *res;
  float *y, *room;
  int64_t m, n, k, ars, aks, brs, bns, ldy, ldr;
  int64_t vectors; /* of columns */
} gemm;

static gemm gemm_describe(const fl_call *c) {
  const fl_gemm_f32_params *p = c->params;
  const fl_tensor *a = c->t[0], *b = c->t[1], *y = c->t[c->n_in];
  unsigned r = y->rank;
  gemm g = {.p = p, .room = c->scratch, .m = y->dims[r - 2], .n = y->dims[r - 1], .k = a->dims[r - 1]};
  g.ars = a->strides[r - 2], g.aks = a->strides[r - 1], g.ldy = y->strides[r - 2], g.vectors = (g.n + FL_VL - 1) / FL_VL;
  if (!p->packed) g.brs = b->strides[r - 2], g.bns = b->strides[r - 1];
  if (p->residual) g.ldr = c->t[2 + p->bias]->strides[r - 2];
  return g;
}

/* Operands of the batch-th product. */
static void gemm_select(gemm *g, const fl_call *c, int64_t batch) {
  const fl_gemm_f32_params *p = g->p;
  const fl_tensor *a = c->t[0], *b = c->t[1], *y = c->t[c->n_in], *res = p->residual ? c->t[2 + p->bias] : NULL;
  int64_t ao = 0, bo = 0, yo = 0, ro = 0;
  for (unsigned i = y->rank - 2u; i-- > 0;) {
    int64_t at = batch % y->dims[i];
    batch /= y->dims[i];
    ao += at * a->strides[i], yo += at * y->strides[i];
    if (!p->packed) bo += at * b->strides[i];
    if (res) ro += at * res->strides[i];
  }
  g->a = (const float *)c->p[0] + ao, g->b = (const float *)c->p[1] + bo, g->y = (float *)c->p[c->n_in] + yo;
  g->bias = p->bias ? c->p[2] : NULL;
  g->res = res ? (const float *)c->p[2 + p->bias] + ro : NULL;
}

/* b[k][columns] of one panel from B, times scale. */
FL_NOINLINE void pack_rows(const gemm *g, const float *b, int64_t depth, int64_t columns, int64_t width, float *out) {
  vf scale = v_set(g->p->scale);
  for (int64_t k = 0; k < depth; k++, b += g->brs, out += width)
    for (int64_t j = 0; j < width; j += FL_VL) {
      int64_t left = columns - j;
      v_store(out + j, scale * (left >= FL_VL ? v_load(b + j) : v_load_n(b + j, left > 0 ? (int)left : 0)));
    }
}

/* The same where the depth is contiguous: 8 x 8 blocks are transposed. */
FL_NOINLINE void pack_columns(const gemm *g, const float *b, int64_t depth, int64_t columns, int64_t width, float *out) {
  __m256 scale = _mm256_set1_ps(g->p->scale);
  for (int64_t j = 0; j < width; j += 8) {
    int64_t k = 0;
    for (; k + 8 <= depth && j + 8 <= columns; k += 8) {
      __m256 r[8], s[8];
      const float *from = b + j * g->bns + k;
      for (int i = 0; i < 8; i += 4)
        for (int q = 0; q < 4; q++) /* row q of s[i + q]: columns q and q + 4 side by side */
          s[i + q] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + q * g->bns + i)), _mm_loadu_ps(from + (q + 4) * g->bns + i), 1);
      for (int i = 0; i < 8; i += 4) {
        __m256 ab0 = _mm256_unpacklo_ps(s[i], s[i + 1]), ab1 = _mm256_unpackhi_ps(s[i], s[i + 1]);
        __m256 cd0 = _mm256_unpacklo_ps(s[i + 2], s[i + 3]), cd1 = _mm256_unpackhi_ps(s[i + 2], s[i + 3]);
        r[i] = _mm256_shuffle_ps(ab0, cd0, 0x44), r[i + 1] = _mm256_shuffle_ps(ab0, cd0, 0xEE);
        r[i + 2] = _mm256_shuffle_ps(ab1, cd1, 0x44), r[i + 3] = _mm256_shuffle_ps(ab1, cd1, 0xEE);
      }
      for (int i = 0; i < 8; i++) _mm256_storeu_ps(out + (k + i) * width + j, _mm256_mul_ps(r[i], scale));
    }
    for (; k < depth; k++)
      for (int64_t i = j; i < j + 8; i++) out[k * width + i] = i < columns ? b[i * g->bns + k * g->brs] * g->p->scale : 0.0f;
  }
}

typedef struct segment { int64_t k0, kn, m0, mn; bool first, last; } segment;

/* Panel `v` (in vectors) of B for a segment: its address and row distance. */
static const float *gemm_panel(const gemm *g, const segment *s, int64_t v, int64_t vectors, int64_t *ldb) {
  int64_t width = vectors * FL_VL, n0 = v * FL_VL, columns = g->n - n0 < width ? g->n - n0 : width;
  *ldb = width;
  if (g->p->packed) return g->b + n0 * g->k + s->k0 * width;
  const float *b = g->b + n0 * g->bns + s->k0 * g->brs;
  if (g->bns == 1 && columns == width && g->m <= 2 * strip_height[vectors] && g->p->scale == 1.0f) return *ldb = g->brs, b;
  if (g->bns == 1) pack_rows(g, b, s->kn, columns, width, g->room);
  else pack_columns(g, b, s->kn, columns, width, g->room);
  return g->room;
}

static void gemm_segment(const gemm *g, const segment *s, int64_t v0, int64_t v1) {
  const fl_gemm_f32_params *p = g->p;
  for (int64_t v = v0; v < v1; v += p->nv) {
    int64_t vectors = v1 - v < p->nv ? v1 - v : p->nv, width = vectors * FL_VL, n0 = v * FL_VL, left = g->n - n0, ldb;
    const float *b = gemm_panel(g, s, v, vectors, &ldb);
    int64_t after = v + vectors, next = p->packed && after < v1 ? (v1 - after < p->nv ? v1 - after : p->nv) * FL_VL : 0;
    strip t = {
      .a = g->a + s->m0 * g->ars + s->k0 * g->aks, .ars = g->ars, .aks = g->aks, .depth = s->kn, .b = b, .ldb = ldb,
      .bias = s->first && g->bias ? g->bias + n0 : NULL, .res = s->first && g->res ? g->res + s->m0 * g->ldr + n0 : NULL,
      .y = g->y + s->m0 * g->ldy + n0, .ldy = g->ldy, .ldr = g->ldr, .more = !s->first,
      .clamp = s->last && p->act == FL_ACT_CLAMP, .lo = p->alpha, .hi = p->beta,
      .tail = left >= width ? FL_VL : (int)(left - width + FL_VL),
      .next = next ? g->b + (n0 + width) * g->k + s->k0 * next : b, .ahead = g->m > 2 ? s->kn * next : 0,
    };
    strip_all((int)vectors, &t, s->mn);
    if (s->last && p->act > FL_ACT_CLAMP) act_block(p->act, t.y, t.ldy, s->mn, left < width ? left : width, p->alpha, p->beta);
  }
}

/* Rows m0..m1-1 and vectors of columns v0..v1-1 (v0 a panel border). */
static void gemm_block(const gemm *g, int64_t m0, int64_t m1, int64_t v0, int64_t v1) {
  int64_t cuts = g->k > KC ? (g->k + KC - 1) / KC : 1, kc = g->k ? ((g->k + cuts - 1) / cuts + 3) / 4 * 4 : 1;
  int64_t mc = g->p->packed ? MC : 2 * MC, blocks = (m1 - m0 + mc - 1) / mc;
  for (int64_t i = 0; i < blocks; i++) {
    segment s = {.m0 = m0 + (m1 - m0) * i / blocks};
    s.mn = m0 + (m1 - m0) * (i + 1) / blocks - s.m0;
    for (int64_t k = 0; k == 0 || k < g->k; k += kc) {
      s.k0 = k, s.kn = g->k - k < kc ? g->k - k : kc, s.first = k == 0, s.last = k + s.kn == g->k;
      gemm_segment(g, &s, v0, v1);
    }
  }
}

static fl_status gemm_run(const fl_call *c) {
  if (((const fl_gemm_f32_params *)c->params)->vl != FL_VL) return FL_PLAN_PARAMS; /* packed for another variant */
  gemm g = gemm_describe(c);
  const fl_tensor *y = c->t[c->n_in];
  int64_t batches = 1, parts = c->parts, b0 = 0, m0 = 0, m1 = g.m, v0 = 0, v1 = g.vectors;
  for (unsigned i = 0; i + 2 < y->rank; i++) batches *= y->dims[i];
  int64_t b1 = batches, panels = (g.vectors + g.p->nv - 1) / g.p->nv;
  if (batches == 0 || g.m == 0 || g.n == 0) return FL_OK;
  if (batches >= 2 * parts || batches % parts == 0) b0 = fl_split(batches, c->part, c->parts), b1 = fl_split(batches, c->part + 1, c->parts);
  else if (g.m >= 16 * parts) m0 = fl_split(g.m, c->part, c->parts), m1 = fl_split(g.m, c->part + 1, c->parts);
  else {
    v0 = fl_split(panels, c->part, c->parts) * g.p->nv, v1 = fl_split(panels, c->part + 1, c->parts) * g.p->nv;
    v1 = v1 < g.vectors ? v1 : g.vectors;
  }
  for (int64_t b = b0; b < b1; b++) {
    gemm_select(&g, c, b);
    gemm_block(&g, m0, m1, v0, v1);
  }
  return FL_OK;
}
