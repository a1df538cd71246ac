/* A vendor's adapter for the tests: the simulator under a device type and an ABI number of its own, which refuses chips it does not know.
   Built with -DTYPE="..." -DABI=n -DFAIL=0 or 1. */
#include "flaot/adapter.h"

extern const fl_adapter fl_npu_sim;
const fl_adapter *flaot_adapter(void);

static fl_status open_device(void *self, const fl_chip *chip, void **device) {
  (void)self;
  return FAIL ? FL_DEVICE_FAILED : fl_npu_sim.open(fl_npu_sim.self, chip, device);
}

const fl_adapter *flaot_adapter(void) {
  static fl_adapter adapter;
  adapter = fl_npu_sim;
  adapter.abi = ABI, adapter.device_type = TYPE, adapter.name = "vendor", adapter.open = open_device;
  return &adapter;
}
