#define _POSIX_C_SOURCE 200809L
#include "npu_sim/csrc/compute.h"
#include <stdlib.h>
#include "core/half.h"
#include "core/kernel_table.h"
#include "core/launch.h"
#include "npu_sim/csrc/fast/fast.h"
#include "port/host/host.h"

bool fl_compute_reserve(fl_compute *c, size_t size) {
  if (size <= c->room) return true;
  fl_compute_close(c);
  void *memory = NULL;
  if (posix_memalign(&memory, 64, size) != 0) return false;
  c->bytes = memory, c->room = size;
  return true;
}

static size_t rounded(size_t size) { return (size + 63) / 64 * 64; }

static size_t wide_size(const fl_tensor *t) { return fl_is_narrow(t) ? rounded(sizeof(float) * (size_t)fl_elements(t)) : 0; }

fl_status fl_compute_launch(fl_compute *c, const fl_chip *chip, const fl_launch *l, void *const *stored) {
  const fl_kernel *k = fl_find_kernel(l->kernel);
  if (!k) return FL_PLAN_KERNEL;
#ifdef FLAOT_AVX2
  uint32_t isa = c->portable ? 0 : fl_host_isa();
  fl_fast_job job = {c, chip, l, stored, (isa & FL_ISA_AVX512) != 0};
  if (isa & FL_ISA_AVX2) return fl_fast_launch(&job, k);
#endif
  uint32_t count = l->n_in + l->n_out;
  size_t need = rounded(l->scratch_size) + 64;
  for (uint32_t i = 0; i < count; i++) need += wide_size(l->t[i]);
  if (!fl_compute_reserve(c, need)) return FL_DEVICE_MEMORY;
  fl_tensor wide[FL_MAX_OPERANDS];
  const fl_tensor *t[FL_MAX_OPERANDS] = {0};
  void *p[FL_MAX_OPERANDS] = {0};
  uint8_t *room = c->bytes + rounded(l->scratch_size);
  for (uint32_t i = 0; i < count; i++) {
    wide[i] = fl_widened(l->t[i]), t[i] = &wide[i], p[i] = stored[i];
    if (!fl_is_narrow(l->t[i])) continue;
    p[i] = room, room += wide_size(l->t[i]);
    fl_widen(l->t[i], stored[i], p[i]); /* outputs too: some kernels (scatter) write a few elements and leave the others */
  }
  fl_call call = {t, p, l->n_in, l->n_out, l->params, l->params_size, c->bytes, l->scratch_size, 0, 1};
  fl_status status = k->run(&call);
  for (uint32_t i = l->n_in; i < count && status == FL_OK; i++)
    if (fl_is_narrow(l->t[i])) fl_narrow(l->t[i], stored[i], p[i], (fl_rounding)chip->rounding, chip->flush);
  return status;
}

void fl_compute_close(fl_compute *c) {
  free(c->bytes);
  c->bytes = NULL, c->room = 0;
}
