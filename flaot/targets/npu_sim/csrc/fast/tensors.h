/* Strided tensors of float16 or bfloat16 to dense floats and back, by rows: their last axis, numbered through all others. */
#ifndef FLAOT_NPU_SIM_TENSORS_H
#define FLAOT_NPU_SIM_TENSORS_H
#include "npu_sim/csrc/fast/planes.h"

int64_t fl_rows(const fl_tensor *t);

/* Rows first to end - 1; dense is where row number first lies. */
void fl_rows_widen(const fl_tensor *t, const void *stored, int64_t first, int64_t end, float *dense);
void fl_rows_narrow(const fl_tensor *t, fl_rounding mode, bool flush, void *stored, int64_t first, int64_t end, const float *dense);

/* The tensor with its axes in the order it is stored in, where its elements lie side by side; else as it is. */
fl_tensor fl_as_stored(const fl_tensor *t, bool *packed);

#endif
