/* One kernel as a chip computes it, outside any plan: how tests try what the simulator's units do. */
#include "core/kernel_table.h"
#include "npu_sim/csrc/compute.h"
#include "port/host/host.h"

fl_status fl_sim_call(uint32_t id, const fl_tensor *const *t, void *const *p, uint32_t n_in, uint32_t n_out, const void *params,
                      size_t params_size, size_t scratch_size, uint32_t rounding, bool flush, uint32_t threads, bool portable);

/* t, p: tensors as they are stored and their elements (0, ..., 0). The kernel's check is left to the caller. */
fl_status fl_sim_call(uint32_t id, const fl_tensor *const *t, void *const *p, uint32_t n_in, uint32_t n_out, const void *params,
                      size_t params_size, size_t scratch_size, uint32_t rounding, bool flush, uint32_t threads, bool portable) {
  fl_chip chip = {.name = "", .device_type = "", .rounding = rounding, .flush = flush};
  fl_launch launch = {.kernel = id, .unit = "", .t = t, .n_in = n_in, .n_out = n_out, .params = params, .params_size = params_size,
                      .scratch_size = scratch_size};
  fl_team *team = fl_host_team(threads);
  fl_compute c = {.team = team, .portable = portable};
  fl_status status = team ? fl_compute_launch(&c, &chip, &launch, p) : FL_CALL_STATE;
  fl_compute_close(&c);
  fl_host_team_free(team);
  return status;
}
