/* What a chip computes on: tensors of narrow floating point as dense float32. */
#ifndef FLAOT_CORE_LAUNCH_H
#define FLAOT_CORE_LAUNCH_H
#include "flaot/kernel.h"

static inline bool fl_is_narrow(const fl_tensor *t) { return t->dtype == FL_F16 || t->dtype == FL_BF16; }

/* The tensor as the kernel sees it: float16 and bfloat16 widened into dense float32, anything else as it is. */
static inline fl_tensor fl_widened(const fl_tensor *t) {
  fl_tensor w = *t;
  if (!fl_is_narrow(t)) return w;
  w.dtype = FL_F32;
  int32_t step = 1;
  for (unsigned i = t->rank; i-- > 0;) w.strides[i] = step, step *= t->dims[i];
  return w;
}

#endif
