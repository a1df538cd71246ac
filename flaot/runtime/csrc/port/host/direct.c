/* One kernel call outside any plan: how the compiler folds constants and tests try kernels. */
#include "core/kernel_table.h"

fl_status fl_host_call(uint32_t id, const fl_tensor *const *t, void *const *p, uint32_t n_in, uint32_t n_out, const void *params,
                       size_t params_size, void *scratch, size_t scratch_size, uint32_t parts);

fl_status fl_host_call(uint32_t id, const fl_tensor *const *t, void *const *p, uint32_t n_in, uint32_t n_out, const void *params,
                       size_t params_size, void *scratch, size_t scratch_size, uint32_t parts) {
  const fl_kernel *k = fl_find_kernel(id);
  if (!k) return FL_PLAN_KERNEL;
  if (n_in > FL_MAX_OPERANDS || n_out > FL_MAX_OPERANDS - n_in) return FL_PLAN_STEP;
  const fl_tensor *tensors[FL_MAX_OPERANDS] = {0};
  void *data[FL_MAX_OPERANDS] = {0};
  for (uint32_t i = 0; i < n_in + n_out; i++) tensors[i] = t[i];
  fl_call c = {tensors, data, n_in, n_out, params, params_size, NULL, scratch_size, 0, 1};
  fl_status status = k->check(&c);
  for (uint32_t i = 0; i < n_in + n_out; i++) data[i] = p[i];
  c.scratch = scratch, c.parts = parts;
  for (; status == FL_OK && c.part < parts; c.part++) status = k->run(&c);
  return status;
}
