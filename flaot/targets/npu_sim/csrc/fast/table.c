#include "npu_sim/csrc/fast/fast.h"
#include "core/launch.h"

fl_status fl_conv_f32_generic(const fl_call *c);
fl_status fl_matmul_generic(const fl_call *c);

static const struct {
  fl_kernel_fn portable;
  fl_fast_fn *fast;
} table[] = {
  {fl_conv_f32_generic, fl_fast_conv},
  {fl_matmul_generic, fl_fast_matmul},
};

static bool all_narrow(const fl_launch *l) {
  for (uint32_t i = 0; i < l->n_in + l->n_out; i++)
    if (!fl_is_narrow(l->t[i])) return false;
  return true;
}

fl_status fl_fast_launch(fl_fast_job *job, const fl_kernel *kernel) {
  fl_status status;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].portable == kernel->run && all_narrow(job->launch) && table[i].fast(job, &status)) return status;
  return fl_fast_any(job, kernel);
}
