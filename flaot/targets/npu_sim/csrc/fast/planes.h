/* Matrices of float16 or bfloat16 to floats and back, rows and columns at any distance, with the results of core/half.h to the bit.
   For CPUs with AVX2 and F16C. What is stored is read and written only inside the matrix. */
#ifndef FLAOT_NPU_SIM_PLANES_H
#define FLAOT_NPU_SIM_PLANES_H
#include "core/half.h"

typedef struct fl_matrix {
  int64_t rows, columns;
  int64_t down, right; /* elements from a row, from a column to the next */
} fl_matrix;

/* y: row r is number to[r], or r where to is null, of rows ys apart; columns adjacent. */
void fl_plane_widen(unsigned dtype, const fl_matrix *m, const uint16_t *x, float *y, int64_t ys, const int32_t *to);

/* x: row r at r * xs, columns adjacent. */
void fl_plane_narrow(unsigned dtype, fl_rounding mode, bool flush, const fl_matrix *m, const float *x, int64_t xs, uint16_t *y);

#endif
