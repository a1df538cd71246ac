/* What a chip's compute units do, on the host: kernels on operands widened to float32, results narrowed as the chip rounds. */
#ifndef FLAOT_NPU_SIM_COMPUTE_H
#define FLAOT_NPU_SIM_COMPUTE_H
#include "flaot/flaot.h"

/* Memory computing takes for itself; grows as launches need it. All zero at first, given back by fl_compute_close. */
typedef struct fl_compute {
  uint8_t *bytes;
  size_t room;
  const fl_team *team; /* who shares the work; null: the calling thread alone */
  bool portable;       /* never by vector kernels */
} fl_compute;

bool fl_compute_reserve(fl_compute *c, size_t size); /* bytes, aligned to 64; what was there before is lost */

static inline uint32_t fl_compute_parts(const fl_compute *c) { return c->team ? c->team->threads : 1; }

/* fn for every part, by the team if there is more than one. */
static inline void fl_compute_parallel(const fl_compute *c, fl_part_fn fn, void *arg, uint32_t parts) {
  if (parts > 1) c->team->parallel(c->team->self, fn, arg, parts);
  else fn(arg, 0);
}

/* Runs a launch; stored[i] is where the host keeps element (0, ..., 0) of operand i. */
fl_status fl_compute_launch(fl_compute *c, const fl_chip *chip, const fl_launch *launch, void *const *stored);

void fl_compute_close(fl_compute *c);

#endif
