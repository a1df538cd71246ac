#include "npu_sim/csrc/fast/fast.h"
#include <string.h>
#include "core/launch.h"
#include "gen/params.h"
#include "npu_sim/csrc/fast/tensors.h"

fl_status fl_pool_f32_generic(const fl_call *c);
fl_status fl_pool_f32_avx2(const fl_call *c);
fl_status fl_pool_f32_avx512(const fl_call *c);
fl_status fl_norm_f32_generic(const fl_call *c);
fl_status fl_norm_f32_avx2(const fl_call *c);
fl_status fl_norm_f32_avx512(const fl_call *c);
fl_status fl_softmax_f32_generic(const fl_call *c);
fl_status fl_softmax_f32_avx2(const fl_call *c);
fl_status fl_softmax_f32_avx512(const fl_call *c);
fl_status fl_attention_f32_generic(const fl_call *c);
fl_status fl_sim_attention_avx2(const fl_call *c);

enum { SMALL = 20000 };

/* A maximum is the same in any order. */
static bool is_maximum(const fl_launch *l) { return ((const fl_pool_f32_params *)l->params)->mode == FL_POOL_MAX; }

/* Windows over the last axes of dense tensors: every one is computed alike, however many there are. */
static bool is_over_rows(const fl_launch *l) {
  unsigned axes = ((const fl_norm_f32_params *)l->params)->axes, all = (1u << l->t[0]->rank) - 1, first = axes & (0u - axes);
  return axes != 0 && axes == (all & ~(first - 1));
}

static bool is_along_rows(const fl_launch *l) { return ((const fl_softmax_f32_params *)l->params)->axis == l->t[0]->rank - 1; }

static bool always(const fl_launch *l) { return (void)l, true; }

static const struct {
  fl_kernel_fn portable, avx2, avx512;
  bool (*fits)(const fl_launch *);
  bool dense; /* wants row-major operands */
} twins[] = {
  {fl_pool_f32_generic, fl_pool_f32_avx2, fl_pool_f32_avx512, is_maximum, false},
  {fl_norm_f32_generic, fl_norm_f32_avx2, fl_norm_f32_avx512, is_over_rows, true},
  {fl_softmax_f32_generic, fl_softmax_f32_avx2, fl_softmax_f32_avx512, is_along_rows, true},
  {fl_attention_f32_generic, fl_sim_attention_avx2, fl_sim_attention_avx2, always, true},
};

typedef struct any {
  const fl_fast_job *job;
  fl_kernel_fn run;
  bool updates;
  fl_tensor stored[FL_MAX_OPERANDS], wide[FL_MAX_OPERANDS]; /* stored: axes in the order of wide */
  const fl_tensor *t[FL_MAX_OPERANDS];
  void *p[FL_MAX_OPERANDS];
  uint8_t *scratch;
  uint32_t parts;
  fl_status status[FL_MAX_THREADS];
} any;

static bool converts(const any *a, uint32_t i) { return fl_is_narrow(&a->stored[i]) && fl_elements(&a->stored[i]) > 0; }

static float *row_at(const any *a, uint32_t i, int64_t row) { return (float *)a->p[i] + row * (fl_elements(&a->stored[i]) / fl_rows(&a->stored[i])); }

static void widen(void *arg, uint32_t part) {
  const any *a = arg;
  const fl_launch *l = a->job->launch;
  for (uint32_t i = 0; i < l->n_in + (a->updates ? l->n_out : 0); i++) {
    if (!converts(a, i)) continue;
    int64_t rows = fl_rows(&a->stored[i]), first = fl_split(rows, part, a->parts);
    fl_rows_widen(&a->stored[i], a->job->stored[i], first, fl_split(rows, part + 1, a->parts), row_at(a, i, first));
  }
}

static void compute(void *arg, uint32_t part) {
  any *a = arg;
  const fl_launch *l = a->job->launch;
  size_t room = fl_rounded(l->scratch_size);
  fl_call c = {a->t, a->p, l->n_in, l->n_out, l->params, l->params_size, a->scratch + part * room, l->scratch_size, part, a->parts};
  a->status[part] = a->run(&c);
}

static void narrow(void *arg, uint32_t part) {
  const any *a = arg;
  const fl_launch *l = a->job->launch;
  const fl_chip *chip = a->job->chip;
  for (uint32_t i = l->n_in; i < l->n_in + l->n_out; i++) {
    if (!converts(a, i)) continue;
    int64_t rows = fl_rows(&a->stored[i]), first = fl_split(rows, part, a->parts);
    fl_rows_narrow(&a->stored[i], (fl_rounding)chip->rounding, chip->flush, a->job->stored[i], first, fl_split(rows, part + 1, a->parts),
                   row_at(a, i, first));
  }
}

static bool choose(any *a, const fl_kernel *kernel) {
  const fl_launch *l = a->job->launch;
  a->run = kernel->run;
  for (size_t i = 0; i < sizeof twins / sizeof *twins; i++)
    if (twins[i].portable == kernel->run && twins[i].fits(l)) {
      a->run = a->job->wide ? twins[i].avx512 : twins[i].avx2;
      return twins[i].dense;
    }
  return false;
}

fl_status fl_fast_any(fl_fast_job *job, const fl_kernel *kernel) {
  const fl_launch *l = job->launch;
  any a = {.job = job, .updates = (kernel->traits & FL_KERNEL_UPDATES) != 0};
  bool dense = choose(&a, kernel);
  uint32_t count = l->n_in + l->n_out;
  int64_t elements = 0;
  size_t need = 0;
  for (uint32_t i = 0; i < count; i++) {
    bool packed = false;
    a.wide[i] = fl_widened(l->t[i]), a.stored[i] = *l->t[i], a.t[i] = &a.wide[i], a.p[i] = job->stored[i];
    elements += fl_elements(l->t[i]);
    if (!fl_is_narrow(l->t[i])) continue;
    if (!dense) a.stored[i] = fl_as_stored(l->t[i], &packed);
    if (packed) memcpy(a.wide[i].strides, l->t[i]->strides, sizeof a.wide[i].strides);
    need += fl_rounded(sizeof(float) * (size_t)fl_elements(l->t[i]));
  }
  a.parts = elements < SMALL ? 1 : fl_compute_parts(job->compute);
  if (!fl_compute_reserve(job->compute, need + a.parts * fl_rounded(l->scratch_size) + 64)) return FL_DEVICE_MEMORY;
  a.scratch = job->compute->bytes;
  uint8_t *room = a.scratch + a.parts * fl_rounded(l->scratch_size);
  for (uint32_t i = 0; i < count; i++)
    if (fl_is_narrow(l->t[i])) a.p[i] = room, room += fl_rounded(sizeof(float) * (size_t)fl_elements(l->t[i]));
  fl_compute_parallel(job->compute, widen, &a, a.parts);
  fl_compute_parallel(job->compute, compute, &a, a.parts);
  for (uint32_t i = 0; i < a.parts; i++)
    if (a.status[i] != FL_OK) return a.status[i];
  fl_compute_parallel(job->compute, narrow, &a, a.parts);
  return FL_OK;
}
