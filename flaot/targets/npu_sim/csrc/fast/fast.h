/* Launches of portable kernels computed by the library's vector kernels, for CPUs with AVX2. An element of the result is the same to the
   bit whatever part of the whole its launch computes: sums start from bias and residual and run over taps, then channels, one fused
   multiplication and addition after the other; no way of computing is chosen by extents other than those summed over. */
#ifndef FLAOT_NPU_SIM_FAST_H
#define FLAOT_NPU_SIM_FAST_H
#include "flaot/adapter.h"
#include "npu_sim/csrc/compute.h"
#include "npu_sim/csrc/fast/planes.h"

typedef struct fl_fast_job {
  fl_compute *compute;
  const fl_chip *chip;
  const fl_launch *launch;
  void *const *stored; /* element (0, ..., 0) of each operand */
  bool wide;           /* the CPU has AVX-512 */
} fl_fast_job;

/* Runs a launch of the kernel. */
fl_status fl_fast_launch(fl_fast_job *job, const fl_kernel *kernel);

/* False, with nothing touched, when the launch is not one for the function. */
typedef bool fl_fast_fn(fl_fast_job *job, fl_status *status);
bool fl_fast_conv(fl_fast_job *job, fl_status *status);
bool fl_fast_matmul(fl_fast_job *job, fl_status *status);

/* Any kernel, by a vector variant of it that gives these guarantees if there is one. Operands keep the order they are stored in. */
fl_status fl_fast_any(fl_fast_job *job, const fl_kernel *kernel);

static inline int64_t fl_fast_lanes(const fl_fast_job *job) { return job->wide ? 16 : 8; }

static inline size_t fl_rounded(size_t size) { return (size + 63) / 64 * 64; }

/* Places n elements of the type behind what was placed before; NULL as long as there is no base and only the size is wanted. */
static inline void *fl_place(uint8_t *base, size_t *at, int64_t n, size_t size) {
  void *p = base ? base + *at : NULL;
  *at += fl_rounded((size_t)n * size);
  return p;
}

/* One call of conv_gemm_f32 (implicit GEMM on channels-last images) by all threads. scratch: threads times its size. */
typedef struct fl_fast_gemm {
  const fl_tensor *x, *y;
  const float *px, *weights, *bias, *residual, *slope; /* residual, slope: null for none; residual in the order of y */
  float *py;
  const void *params;
  size_t params_size;
  fl_kernel_fn run;
  uint8_t *scratch;
  size_t scratch_size; /* of one thread */
  uint32_t parts;
} fl_fast_gemm;
fl_status fl_fast_run(const fl_fast_job *job, fl_fast_gemm *g);

/* Weights as conv_gemm_f32 reads them: panels of output channels, each [tap][product][lane], absent lanes zero; times scale. */
typedef struct fl_fast_weights {
  unsigned dtype;
  const uint16_t *w;
  fl_matrix m;          /* products of a tap by outputs */
  int64_t taps[2], tap[2]; /* how many, and elements from one to the next; {1, 1} where rows are the products of all taps */
  const int32_t *to;    /* order of rows, null: as they are */
  int64_t lanes;
  float scale;
} fl_fast_weights;

int64_t fl_fast_panels(int64_t columns, int64_t lanes);
/* Panels number p0 to p1 - 1; out is where number 0 begins. */
void fl_fast_pack(const fl_fast_weights *w, int64_t p0, int64_t p1, float *out);

#endif
