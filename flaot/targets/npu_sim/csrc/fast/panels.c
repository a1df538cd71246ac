#include "npu_sim/csrc/fast/fast.h"
#include "conv/image.h"
#include <string.h>

int64_t fl_fast_panels(int64_t columns, int64_t lanes) {
  int64_t n = 0;
  for (int64_t left = (columns + lanes - 1) / lanes; left > 0; n++) left -= panel_vectors((int)lanes, left);
  return n;
}

static void pack_panel(const fl_fast_weights *w, int64_t column, int64_t width, float *out) {
  int64_t left = w->m.columns - column, depth = w->m.rows * w->taps[0] * w->taps[1];
  fl_matrix m = w->m;
  m.columns = left < width ? left : width;
  if (left < width) memset(out, 0, (size_t)(depth * width) * sizeof *out);
  for (int64_t i = 0; i < w->taps[0] * w->taps[1]; i++) {
    const uint16_t *from = w->w + column * m.right + i / w->taps[1] * w->tap[0] + i % w->taps[1] * w->tap[1];
    fl_plane_widen(w->dtype, &m, from, out + i * m.rows * width, width, w->to);
  }
  if (w->scale != 1.0f)
    for (int64_t i = 0; i < depth * width; i++) out[i] *= w->scale;
}

void fl_fast_pack(const fl_fast_weights *w, int64_t p0, int64_t p1, float *out) {
  int64_t vectors = (w->m.columns + w->lanes - 1) / w->lanes, depth = w->m.rows * w->taps[0] * w->taps[1];
  for (int64_t v = 0, p = 0; p < p1; p++) {
    int64_t count = panel_vectors((int)w->lanes, vectors - v);
    if (p >= p0) pack_panel(w, v * w->lanes, count * w->lanes, out + v * w->lanes * depth);
    v += count;
  }
}

typedef struct run {
  fl_call call;
  fl_kernel_fn fn;
  uint8_t *scratch;
  fl_status status[FL_MAX_THREADS];
} run;

static void run_part(void *arg, uint32_t part) {
  run *r = arg;
  fl_call c = r->call;
  c.part = part, c.scratch = r->scratch + part * c.scratch_size;
  r->status[part] = r->fn(&c);
}

fl_status fl_fast_run(const fl_fast_job *job, fl_fast_gemm *g) {
  const fl_tensor *t[FL_MAX_OPERANDS] = {g->x, NULL, NULL};
  void *p[FL_MAX_OPERANDS] = {(void *)(uintptr_t)g->px, (void *)(uintptr_t)g->weights, (void *)(uintptr_t)g->bias};
  uint32_t n = 3;
  if (g->residual) t[n] = g->y, p[n++] = (void *)(uintptr_t)g->residual;
  if (g->slope) p[n++] = (void *)(uintptr_t)g->slope;
  t[n] = g->y, p[n] = g->py;
  run r = {{t, p, n, 1, g->params, g->params_size, NULL, g->scratch_size, 0, g->parts}, g->run, g->scratch, {FL_OK}};
  fl_compute_parallel(job->compute, run_part, &r, g->parts);
  fl_status status = FL_OK;
  for (uint32_t i = 0; i < g->parts && status == FL_OK; i++) status = r.status[i];
  return status;
}
