/* One kernel call outside any plan: how the compiler folds constants and tests try kernels. */
#include "core/kernel_table.h"

fl_status fl_host_call(uint32_t id, const fl_tensor *const *t, void *const *p, uint32_t n_in, uint32_t n_out, const void *params,
                       size_t params_size, void *scratch, size_t scratch_size, uint32_t parts);

fl_status fl_host_call(uint32_t id, const fl_tensor *const *t, void *const *p, uint32_t n_in, uint32_t n_out, const void *params,
                       size_t params_size, void *scratch, size_t scratch_size, uint32_t parts) {
  const fl_kernel *k = fl_find_kernel(id);
  if (!k) return FL_PLAN_KERNEL;
  void *null[FL_MAX_OPERANDS] = {0};
  fl_call c = {t, null, n_in, n_out, params, params_size, NULL, scratch_size, 0, 1};
  if (n_in + n_out > FL_MAX_OPERANDS) return FL_PLAN_STEP;
  fl_status status = k->check(&c);
  c.p = p, c.scratch = scratch, c.parts = parts;
  for (; status == FL_OK && c.part < parts; c.part++) status = k->run(&c);
  return status;
}
