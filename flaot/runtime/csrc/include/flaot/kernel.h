/* The contract between the runtime and kernels. A kernel K is
     fl_status fl_K_check(const fl_call *c);       validates params, dims and scratch once; pointers in c->p are null
     fl_status fl_K_<variant>(const fl_call *c);   runs part c->part of c->parts
   The runtime guarantees before either call: dtypes and ranks are valid, no dim is negative, those other than 0 have a product of
   at most 2^31 - 1, every element addressed by dims and strides lies inside the tensor's memory and is aligned to its type, outputs
   are writable and reach no byte twice, and an output overlaps an input only when both are the same view. t and p have
   FL_MAX_OPERANDS entries, null from the operands on. check must guarantee that run touches nothing but elements inside dims, c->params and c->scratch.
   Calls for the parts of one step run concurrently on separate scratch and must write disjoint elements. */
#ifndef FLAOT_KERNEL_H
#define FLAOT_KERNEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "flaot/status.h"

enum { FL_MAX_RANK = 8, FL_MAX_OPERANDS = 32 };

typedef enum fl_dtype { /* ONNX TensorProto.DataType */
  FL_F32 = 1, FL_U8 = 2, FL_I8 = 3, FL_U16 = 4, FL_I16 = 5, FL_I32 = 6, FL_I64 = 7, FL_BOOL = 9,
  FL_F16 = 10, FL_F64 = 11, FL_U32 = 12, FL_U64 = 13, FL_BF16 = 16
} fl_dtype;

typedef enum fl_space { FL_CONSTANT = 0, FL_ARENA = 1, FL_INPUT = 2, FL_OUTPUT = 3, FL_DEVICE = 4, FL_ON_CHIP = 5 } fl_space;

/* A strided tensor, 80 bytes, exactly as a plan stores it. Strides count elements; 0 broadcasts, negative runs backwards.
   Entries of dims and strides from rank on are zero. */
typedef struct fl_tensor {
  uint8_t dtype, rank, space, port; /* port: index of the input or output, or of the chip among the devices, else 0 */
  uint32_t window;                  /* on a chip: bytes from the start of its buffer, else 0 */
  uint64_t offset;                  /* bytes from the start of its space to element (0, ..., 0) */
  int32_t dims[FL_MAX_RANK];
  int32_t strides[FL_MAX_RANK];
} fl_tensor;

typedef struct fl_call {
  const fl_tensor *const *t; /* inputs, then outputs */
  void *const *p;            /* element (0, ..., 0) of each; null in check */
  uint32_t n_in, n_out;
  const void *params;        /* 4-byte aligned */
  size_t params_size;
  void *scratch;             /* 64-byte aligned, for this part alone; null in check */
  size_t scratch_size;
  uint32_t part, parts;
} fl_call;

typedef fl_status (*fl_kernel_fn)(const fl_call *);

typedef struct fl_kernel {
  uint32_t id;               /* FNV-1a of "name.variant" */
  uint32_t isa;              /* bit set of FL_ISA_*, what the code needs */
  uint32_t traits;           /* bit set of FL_KERNEL_* */
  fl_kernel_fn check, run;
  const char *name;          /* "name.variant" */
} fl_kernel;

enum { FL_ISA_AVX2 = 1, FL_ISA_AVX512 = 2 };
enum {
  FL_KERNEL_MOVES = 1,      /* computes nothing: a DMA engine can do it */
  FL_KERNEL_TRANSPOSED = 2, /* reads matrices with their last two axes in either order */
  FL_KERNEL_UPDATES = 4     /* outputs hold elements before the call that it keeps or combines with others */
};

extern const fl_kernel fl_kernels[]; /* sorted by id */
extern const size_t fl_kernel_count;

/* Helpers for check and run */
static inline int64_t fl_elements(const fl_tensor *t) {
  int64_t n = 1;
  for (unsigned i = 0; i < t->rank; i++) n *= t->dims[i];
  return n;
}

static inline bool fl_same_dims(const fl_tensor *a, const fl_tensor *b) {
  if (a->rank != b->rank) return false;
  for (unsigned i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

/* Row-major without gaps (axes of size 1 may have any stride). */
static inline bool fl_is_dense(const fl_tensor *t) {
  int64_t step = 1;
  for (unsigned i = t->rank; i-- > 0;) {
    if (t->dims[i] != 1 && t->strides[i] != step) return false;
    step *= t->dims[i];
  }
  return true;
}

/* First item of part `part` when n items are divided evenly over `parts`; call with part + 1 for the end. */
static inline int64_t fl_split(int64_t n, uint32_t part, uint32_t parts) { return n * part / parts; }

static inline size_t fl_dtype_size(unsigned dtype) {
  switch (dtype) {
  case FL_U8: case FL_I8: case FL_BOOL: return 1;
  case FL_U16: case FL_I16: case FL_F16: case FL_BF16: return 2;
  case FL_F32: case FL_I32: case FL_U32: return 4;
  case FL_F64: case FL_I64: case FL_U64: return 8;
  default: return 0;
  }
}

#endif
