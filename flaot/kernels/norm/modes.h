/* Modes of norm_f32, and the factor each gives. */
#ifndef FLAOT_NORM_MODES_H
#define FLAOT_NORM_MODES_H
#include "gen/params.h"

/* `spread` is the sum of squares (of absolute values in mode FL_NORM_LP1) over n elements. */
static inline float norm_inverse(const fl_norm_f32_params *p, float spread, float n) {
  if (p->mode >= FL_NORM_LP1) return spread == 0.0f ? 0.0f : 1.0f / (p->mode == FL_NORM_LP1 ? spread : __builtin_sqrtf(spread));
  if (p->mode == FL_NORM_DEVIATION) return 1.0f / (__builtin_sqrtf(spread / n) + p->epsilon);
  return 1.0f / __builtin_sqrtf(spread / n + p->epsilon);
}

#endif
