/* What a chip's compute units do, on the host: kernels on operands widened to float32, results narrowed as the chip rounds. */
#ifndef FLAOT_NPU_SIM_COMPUTE_H
#define FLAOT_NPU_SIM_COMPUTE_H
#include "flaot/adapter.h"

/* Memory computing takes for itself; grows as launches need it. All zero at first, given back by fl_compute_close. */
typedef struct fl_compute {
  uint8_t *bytes;
  size_t room;
} fl_compute;

/* Runs a launch; stored[i] is where the host keeps element (0, ..., 0) of operand i. */
fl_status fl_compute_launch(fl_compute *c, const fl_chip *chip, const fl_launch *launch, void *const *stored);

void fl_compute_close(fl_compute *c);

#endif
