#include "npu_sim/csrc/fast/fast.h"
#include "conv/image.h"
#include "gen/params.h"
#include <string.h>

fl_status fl_conv_gemm_f32_avx2(const fl_call *c);
fl_status fl_conv_gemm_f32_avx512(const fl_call *c);
fl_status fl_conv_dw_f32_avx2(const fl_call *c);
fl_status fl_conv_dw_f32_avx512(const fl_call *c);

enum { PIXELS = 192, DEPTH = 256, POINTERS = 16384, BAND_BYTES = 256 * 1024, SMALL = 200000, REACH = 1 << 29 };

/* x is widened to rows of `width` pixels of all channels. Where a row of taps reads neighbouring pixels, x has its columns of zeros and
   that row of taps is one tap of `kw` times as many channels: the same sums in the same order, in longer runs. */
typedef struct conv {
  const fl_fast_job *job;
  const fl_conv_f32_params *p;
  image x, w, r, y;
  int64_t group, lanes, padded;    /* padded: floats of one group's vectors */
  int64_t left, width;             /* columns of zeros before those of x; columns altogether */
  bool joined, depthwise, dense;   /* dense: taps and channels of a weight are neighbours */
  float *px, *pw, *bias, *slope, *pr, *py;
  int32_t *order;
  uint8_t *scratch;
  size_t scratch_size;
  int64_t mc;
  uint32_t parts;
  unsigned bias_at, residual_at, slope_at;
} conv;

static bool neighbours(const image *w) {
  return (w->w == 1 || w->sw == 1) && (w->h == 1 || w->sh == w->w) && (w->c == 1 || w->sc == w->h * w->w);
}

static conv describe(const fl_fast_job *job) {
  const fl_launch *l = job->launch;
  const fl_conv_f32_params *p = l->params;
  conv k = {.job = job, .p = p, .x = image_of(l->t[0]), .w = image_of(l->t[1]), .y = image_of(l->t[l->n_in]), .group = p->group};
  k.bias_at = 2, k.residual_at = k.bias_at + (unsigned)p->bias, k.slope_at = k.residual_at + (unsigned)p->residual;
  if (p->residual) k.r = image_of(l->t[k.residual_at]);
  k.lanes = fl_fast_lanes(job), k.dense = neighbours(&k.w);
  k.depthwise = k.w.c == 1 && k.group == k.y.c;
  k.joined = !k.depthwise && k.group == 1 && (k.w.w == 1 || p->dilations[2] == 1);
  k.left = k.joined ? p->pads[2] : 0;
  k.width = k.joined ? (k.y.w - 1) * p->strides[2] + k.w.w : k.x.w;
  k.padded = round_up(k.depthwise ? k.y.c : k.y.c / k.group, k.lanes);
  k.parts = k.y.n * k.y.c * k.y.h * k.y.w * k.w.c * k.w.h * k.w.w < SMALL ? 1 : fl_compute_parts(job->compute);
  int64_t taps = k.joined ? k.w.h : k.w.h * k.w.w, pixels = k.y.n * k.y.h * k.y.w;
  k.mc = POINTERS / taps < PIXELS ? POINTERS / taps : PIXELS;
  if (k.mc < 24) k.mc = 24;
  if (k.mc > pixels) k.mc = pixels;
  int32_t ksize[2] = {(int32_t)k.w.h, (int32_t)k.w.w};
  int64_t need = k.depthwise ? dw_scratch(k.x.c, ksize, p->strides + 1, k.y.w) : gemm_scratch(k.joined ? k.w.w * k.x.c : k.x.c, taps, k.mc);
  k.scratch_size = (size_t)round_up(need, 64);
  return k;
}

/* Gives everything its place; the size of it all. */
static size_t lay_out(conv *k, uint8_t *base) {
  size_t at = 0;
  int64_t depth = k->w.c * k->w.h * k->w.w, groups = k->depthwise ? 1 : k->group, out = k->y.n * k->y.c * k->y.h * k->y.w;
  k->px = fl_place(base, &at, k->x.n * k->x.h * k->width * k->x.c, sizeof(float));
  k->pw = fl_place(base, &at, groups * k->padded * depth, sizeof(float));
  k->bias = fl_place(base, &at, groups * k->padded, sizeof(float));
  k->slope = fl_place(base, &at, groups * k->padded, sizeof(float));
  k->py = fl_place(base, &at, out, sizeof(float));
  k->pr = fl_place(base, &at, k->p->residual ? out : 0, sizeof(float));
  k->order = fl_place(base, &at, depth, sizeof(int32_t));
  k->scratch = fl_place(base, &at, (int64_t)k->scratch_size * k->parts, 1);
  return at;
}

static void widen_row(const conv *k, int64_t row) {
  const image *x = &k->x;
  float *out = k->px + row * k->width * x->c;
  int64_t first = k->left < k->width ? k->left : k->width, last = first + x->w < k->width ? first + x->w : k->width;
  fl_matrix m = {last - first, x->c, x->sw, x->sc};
  const uint16_t *from = (const uint16_t *)k->job->stored[0] + row / x->h * x->sn + row % x->h * x->sh;
  memset(out, 0, (size_t)(first * x->c) * sizeof *out);
  fl_plane_widen(k->job->launch->t[0]->dtype, &m, from, out + first * x->c, x->c, NULL);
  memset(out + last * x->c, 0, (size_t)((k->width - last) * x->c) * sizeof *out);
}

static fl_matrix row_of(const image *y) { return (fl_matrix){y->w, y->c, y->sw, y->sc}; }

static void widen_residual(const conv *k, int64_t row) {
  fl_matrix m = row_of(&k->r);
  const uint16_t *from = (const uint16_t *)k->job->stored[k->residual_at] + row / k->r.h * k->r.sn + row % k->r.h * k->r.sh;
  fl_plane_widen(k->job->launch->t[k->residual_at]->dtype, &m, from, k->pr + row * k->r.w * k->r.c, k->r.c, NULL);
}

static void narrow_row(const conv *k, int64_t row) {
  const fl_launch *l = k->job->launch;
  fl_matrix m = row_of(&k->y);
  uint16_t *to = (uint16_t *)k->job->stored[l->n_in] + row / k->y.h * k->y.sn + row % k->y.h * k->y.sh;
  fl_plane_narrow(l->t[l->n_in]->dtype, (fl_rounding)k->job->chip->rounding, k->job->chip->flush, &m, k->py + row * k->y.w * k->y.c, k->y.c, to);
}

/* Panels of all groups, numbered through. */
static void pack(const conv *k, uint32_t part) {
  int64_t of_group = k->y.c / k->group, depth = k->w.c * k->w.h * k->w.w, panels = fl_fast_panels(of_group, k->lanes);
  const uint16_t *w = k->job->stored[1];
  fl_fast_weights a = {k->job->launch->t[1]->dtype, w, {depth, of_group, 1, k->w.sn}, {1, 1}, {0}, k->order, k->lanes, 1.0f};
  if (!k->dense) {
    a.m.rows = k->w.c, a.m.down = k->w.sc, a.to = NULL;
    a.taps[0] = k->w.h, a.taps[1] = k->w.w, a.tap[0] = k->w.sh, a.tap[1] = k->w.sw;
  } else if (k->w.h * k->w.w == 1) a.to = NULL;
  for (int64_t i = fl_split(panels * k->group, part, k->parts), end = fl_split(panels * k->group, part + 1, k->parts); i < end; i++) {
    int64_t group = i / panels, panel = i % panels;
    a.w = w + group * of_group * k->w.sn;
    fl_fast_pack(&a, panel, panel + 1, k->pw + group * k->padded * depth);
  }
}

static void pack_depthwise(const conv *k) {
  if (k->padded > k->y.c) memset(k->pw, 0, (size_t)(k->w.h * k->w.w * k->padded) * sizeof(float));
  for (int64_t i = 0; i < k->w.h; i++) {
    fl_matrix m = {k->w.w, k->y.c, k->w.sw, k->w.sn};
    fl_plane_widen(k->job->launch->t[1]->dtype, &m, (const uint16_t *)k->job->stored[1] + i * k->w.sh, k->pw + i * k->w.w * k->padded, k->padded, NULL);
  }
}

/* A value per output channel, each group padded with zeros to whole vectors; -0 becomes 0, as sums that start elsewhere would. */
static void widen_vector(const conv *k, unsigned operand, bool given, float *out) {
  int64_t groups = k->depthwise ? 1 : k->group, of_group = k->y.c / groups;
  memset(out, 0, (size_t)(groups * k->padded) * sizeof *out);
  if (!given) return;
  const fl_tensor *t = k->job->launch->t[operand];
  for (int64_t g = 0; g < groups; g++) {
    fl_matrix m = {1, of_group, 0, t->strides[0]};
    fl_plane_widen(t->dtype, &m, (const uint16_t *)k->job->stored[operand] + g * of_group * t->strides[0], out + g * k->padded, 0, NULL);
  }
  for (int64_t i = 0; i < groups * k->padded; i++) out[i] += 0.0f;
}

static void prepare(void *arg, uint32_t part) {
  const conv *k = arg;
  int64_t rows = k->x.n * k->x.h, out = k->y.n * k->y.h;
  for (int64_t i = fl_split(rows, part, k->parts), end = fl_split(rows, part + 1, k->parts); i < end; i++) widen_row(k, i);
  if (k->p->residual)
    for (int64_t i = fl_split(out, part, k->parts), end = fl_split(out, part + 1, k->parts); i < end; i++) widen_residual(k, i);
  if (!k->depthwise) pack(k, part);
  if (part != 0) return;
  if (k->depthwise) pack_depthwise(k);
  widen_vector(k, k->bias_at, k->p->bias != 0, k->bias);
  if (k->p->act == FL_ACT_PRELU) widen_vector(k, k->slope_at, true, k->slope);
}

static void finish(void *arg, uint32_t part) {
  const conv *k = arg;
  int64_t rows = k->y.n * k->y.h;
  for (int64_t i = fl_split(rows, part, k->parts), end = fl_split(rows, part + 1, k->parts); i < end; i++) narrow_row(k, i);
}

static fl_tensor image_tensor(int64_t n, int64_t c, int64_t h, int64_t w, int64_t row, int64_t pixel) {
  return (fl_tensor){.dtype = FL_F32, .rank = 4, .dims = {(int32_t)n, (int32_t)c, (int32_t)h, (int32_t)w},
                     .strides = {(int32_t)(h * row), 1, (int32_t)row, (int32_t)pixel}};
}

static fl_status multiply(const conv *k) {
  const fl_conv_f32_params *p = k->p;
  const image *x = &k->x, *y = &k->y;
  fl_conv_gemm_f32_params gemm = {(int32_t)k->lanes, p->group, {(int32_t)k->w.h, k->joined ? 1 : (int32_t)k->w.w}, {p->strides[1], p->strides[2]},
    {p->pads[1], k->joined ? 0 : p->pads[2]}, {p->dilations[1], k->joined ? 1 : p->dilations[2]}, (int32_t)k->mc, DEPTH, p->residual, p->act, p->alpha, p->beta};
  int64_t band = BAND_BYTES / (x->w * x->c * 4 * p->strides[1]);
  fl_conv_dw_f32_params dw = {(int32_t)k->lanes, {(int32_t)k->w.h, (int32_t)k->w.w}, {p->strides[1], p->strides[2]}, {p->pads[1], p->pads[2]},
    {p->dilations[1], p->dilations[2]}, band > 1 ? (int32_t)band : 1, p->residual, p->act, p->alpha, p->beta};
  int64_t channels = k->joined ? k->w.w * x->c : x->c, columns = k->joined ? k->width - k->w.w + 1 : x->w;
  fl_tensor in = image_tensor(x->n, channels, x->h, columns, k->width * x->c, x->c), out = image_tensor(y->n, y->c, y->h, y->w, y->w * y->c, y->c);
  fl_fast_gemm g = {&in, &out, k->px, k->pw, k->bias, p->residual ? k->pr : NULL, p->act == FL_ACT_PRELU ? k->slope : NULL, k->py, &gemm, sizeof gemm,
                    k->job->wide ? fl_conv_gemm_f32_avx512 : fl_conv_gemm_f32_avx2, k->scratch, k->scratch_size, k->parts};
  if (k->depthwise) g.params = &dw, g.params_size = sizeof dw, g.run = k->job->wide ? fl_conv_dw_f32_avx512 : fl_conv_dw_f32_avx2;
  return fl_fast_run(k->job, &g);
}

/* Row (channel, tap) of the stored weights is number (tap, channel) of the packed ones. */
static void order_rows(const conv *k) {
  int64_t taps = k->w.h * k->w.w;
  for (int64_t c = 0, i = 0; c < k->w.c; c++)
    for (int64_t t = 0; t < taps; t++) k->order[i++] = (int32_t)(t * k->w.c + c);
}

/* Whether coordinates and offsets fit 32 bits, as the vector kernels demand. */
static bool is_small(const conv *k) {
  const fl_conv_f32_params *p = k->p;
  int64_t out[2] = {k->y.h, k->y.w}, kernel[2] = {k->w.h, k->w.w};
  for (int i = 0; i < 2; i++)
    if (p->pads[1 + i] > REACH || out[i] * p->strides[1 + i] > REACH || kernel[i] * p->dilations[1 + i] > REACH) return false;
  return k->w.h * k->w.w <= 1 << 20 && k->x.n * k->x.h * k->width * k->x.c <= INT32_MAX;
}

bool fl_fast_conv(fl_fast_job *job, fl_status *status) {
  const fl_launch *l = job->launch;
  if (l->t[0]->rank > 4 || fl_elements(l->t[0]) == 0 || fl_elements(l->t[1]) == 0 || fl_elements(l->t[l->n_in]) == 0) return false;
  conv k = describe(job);
  if (!is_small(&k)) return false;
  if (!fl_compute_reserve(job->compute, lay_out(&k, NULL))) return *status = FL_DEVICE_MEMORY, true;
  lay_out(&k, job->compute->bytes);
  order_rows(&k);
  fl_compute_parallel(job->compute, prepare, &k, k.parts);
  *status = multiply(&k);
  if (*status == FL_OK) fl_compute_parallel(job->compute, finish, &k, k.parts);
  return true;
}
