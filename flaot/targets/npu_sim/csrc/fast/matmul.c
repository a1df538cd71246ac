#include "npu_sim/csrc/fast/fast.h"
#include "conv/image.h"
#include "gen/params.h"
#include "npu_sim/csrc/fast/tensors.h"

fl_status fl_conv_gemm_f32_avx2(const fl_call *c);
fl_status fl_conv_gemm_f32_avx512(const fl_call *c);

enum { ROWS = 192, DEPTH = 256, SMALL = 200000 };

/* Products as convolutions of one tap: rows are pixels, the depth is channels. All products that share B are one, of more rows. */
typedef struct product {
  const fl_fast_job *job;
  const fl_matmul_params *p;
  int64_t m, n, k, batches;   /* rows of one product; products */
  int64_t first, rows;        /* rows computed now, numbered through all products */
  int64_t lanes, padded;
  float *a, *b, *zeros, *sum, *y;
  uint8_t *scratch;
  size_t scratch_size;
  uint32_t parts;
} product;

/* Elements from the first product's matrix to the batch-th one's. */
static int64_t offset_of(const fl_tensor *t, int64_t batch) {
  int64_t at = 0;
  for (unsigned i = t->rank - 2u; i-- > 0; batch /= t->dims[i]) at += batch % t->dims[i] * t->strides[i];
  return at;
}

static bool is_shared(const fl_tensor *t) {
  for (unsigned i = 0; i + 2 < t->rank; i++)
    if (t->dims[i] != 1 && t->strides[i] != 0) return false;
  return true;
}

/* The rows of an operand that belong to the part, to where the first of all rows lies in dense. */
static void widen_rows(const product *g, uint32_t operand, uint32_t part, float *dense) {
  const fl_tensor *t = g->job->launch->t[operand];
  int64_t first = fl_split(g->rows, part, g->parts), end = fl_split(g->rows, part + 1, g->parts);
  fl_rows_widen(t, g->job->stored[operand], g->first + first, g->first + end, dense + first * t->dims[t->rank - 1]);
}

/* What is added to the product, beta C + D, for the rows of the part; y is room. */
static void add_up(const product *g, uint32_t part) {
  uint32_t n_in = g->job->launch->n_in;
  int64_t first = fl_split(g->rows, part, g->parts) * g->n, end = fl_split(g->rows, part + 1, g->parts) * g->n;
  widen_rows(g, 2, part, g->sum);
  if (g->p->beta != 1.0f)
    for (int64_t i = first; i < end; i++) g->sum[i] *= g->p->beta;
  if (n_in < 4) return;
  widen_rows(g, 3, part, g->y);
  for (int64_t i = first; i < end; i++) g->sum[i] += g->y[i];
}

static void prepare(void *arg, uint32_t part) {
  const product *g = arg;
  const fl_launch *l = g->job->launch;
  const fl_tensor *b = l->t[1];
  widen_rows(g, 0, part, g->a);
  if (l->n_in > 2) add_up(g, part);
  fl_fast_weights w = {b->dtype, (const uint16_t *)g->job->stored[1] + offset_of(b, g->first / g->m),
                       {g->k, g->n, b->strides[b->rank - 2], b->strides[b->rank - 1]}, {1, 1}, {0}, NULL, g->lanes, g->p->alpha};
  int64_t panels = fl_fast_panels(g->n, g->lanes);
  fl_fast_pack(&w, fl_split(panels, part, g->parts), fl_split(panels, part + 1, g->parts), g->b);
}

static void finish(void *arg, uint32_t part) {
  const product *g = arg;
  const fl_chip *chip = g->job->chip;
  uint32_t y = g->job->launch->n_in;
  int64_t first = fl_split(g->rows, part, g->parts), end = fl_split(g->rows, part + 1, g->parts);
  fl_rows_narrow(g->job->launch->t[y], (fl_rounding)chip->rounding, chip->flush, g->job->stored[y], g->first + first, g->first + end, g->y + first * g->n);
}

static fl_status multiply(const product *g) {
  const fl_matmul_params *p = g->p;
  uint32_t added = g->job->launch->n_in > 2;
  fl_conv_gemm_f32_params gemm = {.vl = (int32_t)g->lanes, .group = 1, .ksize = {1, 1}, .strides = {1, 1}, .dilations = {1, 1},
                                  .mc = ROWS, .kc = DEPTH, .residual = (int32_t)added, .act = p->act, .alpha = p->act_alpha, .beta = p->act_beta};
  int32_t rows = (int32_t)g->rows, k = (int32_t)g->k, n = (int32_t)g->n;
  fl_tensor x = {.dtype = FL_F32, .rank = 3, .dims = {1, k, rows}, .strides = {0, 1, k}}, y = {.dtype = FL_F32, .rank = 3, .dims = {1, n, rows}, .strides = {0, 1, n}};
  fl_fast_gemm run = {&x, &y, g->a, g->b, g->zeros, added ? g->sum : NULL, NULL, g->y, &gemm, sizeof gemm,
                      g->job->wide ? fl_conv_gemm_f32_avx512 : fl_conv_gemm_f32_avx2, g->scratch, g->scratch_size, g->parts};
  return fl_fast_run(g->job, &run);
}

static size_t lay_out(product *g, uint8_t *base) {
  size_t at = 0;
  g->a = fl_place(base, &at, g->rows * g->k, sizeof(float));
  g->b = fl_place(base, &at, g->padded * g->k, sizeof(float));
  g->zeros = fl_place(base, &at, g->padded, sizeof(float));
  g->sum = fl_place(base, &at, g->job->launch->n_in > 2 ? g->rows * g->n : 0, sizeof(float));
  g->y = fl_place(base, &at, g->rows * g->n, sizeof(float));
  g->scratch = fl_place(base, &at, (int64_t)g->scratch_size * g->parts, 1);
  return at;
}

bool fl_fast_matmul(fl_fast_job *job, fl_status *status) {
  const fl_launch *l = job->launch;
  const fl_tensor *a = l->t[0], *b = l->t[1], *y = l->t[l->n_in];
  product g = {.job = job, .p = l->params, .m = a->dims[a->rank - 2], .k = a->dims[a->rank - 1], .n = b->dims[b->rank - 1]};
  if (fl_elements(y) == 0 || g.k == 0 || g.p->act == FL_ACT_PRELU) return false;
  g.batches = fl_elements(y) / (g.m * g.n), g.rows = is_shared(b) ? g.m * g.batches : g.m;
  if (g.rows * g.k > INT32_MAX) return false;
  g.lanes = fl_fast_lanes(job), g.padded = round_up(g.n, g.lanes);
  g.parts = g.rows * g.n * g.k < SMALL ? 1 : fl_compute_parts(job->compute);
  g.scratch_size = (size_t)round_up(gemm_scratch(g.k, 1, ROWS), 64);
  if (!fl_compute_reserve(job->compute, lay_out(&g, NULL))) return *status = FL_DEVICE_MEMORY, true;
  lay_out(&g, job->compute->bytes);
  for (int64_t i = 0; i < g.padded; i++) g.zeros[i] = 0.0f;
  *status = FL_OK;
  for (int64_t end = g.m * g.batches; g.first < end && *status == FL_OK; g.first += g.rows) {
    fl_compute_parallel(job->compute, prepare, &g, g.parts);
    *status = multiply(&g);
    if (*status == FL_OK) fl_compute_parallel(job->compute, finish, &g, g.parts);
  }
  return true;
}
