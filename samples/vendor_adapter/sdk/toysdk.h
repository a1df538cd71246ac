/* libtoysdk: how programs use a Toy-NPU. The chip is this library: there is no silicon. It has 64 MB of DRAM, 512 kB of SRAM, and queues of
   jobs that it works off by itself, in no order but that which queues and fences ask for.

   A device handle is for one thread at a time; devices of several threads do not disturb each other. Functions return TOY_OK or an error, about
   which toy_explain tells more.

   The environment is read by toy_open. TOY_LIE makes the chip break a promise of its data sheet; it goes on to claim it in toy_query:
     bfloat16_is_float16   bfloat16 numbers are computed with float16's range and precision
     alignment             tensors must begin at multiples of 128 bytes instead of 64
     layout                tensors with channels last are read as if channels were first
     rank                  tensors have at most 4 axes instead of 5
     memory                half of the SRAM is not there
     rounding              results are rounded toward zero instead of half to even
   TOY_FAULT is the name of an error, such as TOY_E_LOST: the chip fails with it at the next occasion. */
#ifndef TOYSDK_H
#define TOYSDK_H
#include <stddef.h>
#include <stdint.h>

#define TOY_SDK_VERSION "3.2.1"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef enum toy_error {
  TOY_OK = 0,
  TOY_E_BUSY = -1,      /* the chip cannot be opened */
  TOY_E_CONFIG = -2,    /* TOY_LIE or TOY_FAULT is no name this SDK knows */
  TOY_E_ARGUMENT = -3,  /* a call or job that makes no sense */
  TOY_E_ENTRY = -4,     /* no entry point of that name */
  TOY_E_DRAM = -5,      /* not so much DRAM left */
  TOY_E_SRAM = -6,      /* not so much SRAM left */
  TOY_E_UNALIGNED = -7, /* a tensor begins at the wrong place */
  TOY_E_BOUNDS = -8,    /* a tensor leaves its memory object */
  TOY_E_AXES = -9,      /* more axes than the chip counts */
  TOY_E_FORMAT = -10,   /* an element format the chip does not know */
  TOY_E_ORDER = -11,    /* axes in an order the chip does not know */
  TOY_E_INDEX = -12,    /* a job met an index outside its axis */
  TOY_E_LOST = -13      /* the chip no longer answers; open it again */
} toy_error;

const char *toy_error_name(toy_error error); /* "TOY_E_LOST" */

typedef struct toy_device toy_device;
typedef uint32_t toy_memory; /* a memory object; 0 is none */
typedef uint64_t toy_fence;  /* passed when the job it was made for is done; 0 is passed */

typedef struct toy_info {
  const char *chip;
  uint32_t granule;     /* bytes: where tensors begin */
  uint32_t axes;        /* at most, of a tensor */
  uint32_t queues;
  uint64_t dram, sram;  /* bytes */
} toy_info;

toy_error toy_open(toy_device **device);
void toy_close(toy_device *device);
void toy_query(const toy_device *device, toy_info *info);
const char *toy_explain(const toy_device *device); /* about the last error; one line, "" when there is no more to say */

/* Memory objects hold their bytes until the device is closed, and begin at a multiple of 4096. */
typedef enum toy_heap { TOY_DRAM = 0, TOY_SRAM = 1 } toy_heap;
toy_error toy_memory_create(toy_device *device, toy_heap heap, uint64_t size, toy_memory *memory);
toy_error toy_memory_write(toy_device *device, toy_memory memory, uint64_t offset, const void *source, uint64_t size);
toy_error toy_memory_read(toy_device *device, toy_memory memory, uint64_t offset, void *target, uint64_t size);

typedef enum toy_format { TOY_HALF = 1, TOY_BRAIN = 2, TOY_INT8 = 3, TOY_INT32 = 4, TOY_INT64 = 5 } toy_format;

enum { TOY_MOST_AXES = 8, TOY_MOST_TENSORS = 32 };

typedef struct toy_tensor {
  toy_memory memory;
  uint64_t offset;               /* bytes, of the element with index 0 on all axes */
  uint64_t skip;                 /* of these, from where the whole begins that the tensor is a part of, which must be aligned */
  toy_format format;
  uint32_t axes;
  uint32_t size[TOY_MOST_AXES];
  int64_t pitch[TOY_MOST_AXES];  /* bytes from one element to the next */
} toy_tensor;

/* A job runs an entry point:
     toy.conv toy.deconv toy.mma toy.pool toy.pool.max toy.softmax toy.norm toy.reduce toy.lrn
     toy.lanes     a program of the vector lanes, element by element
     toy.sample toy.sample.nearest
     toy.move toy.convert     which compute nothing and take tensors with their axes in any order
   Tensors are inputs, then outputs; the arguments are those of the data sheet (here: the records of flaot's kernels, which play the silicon).
   TOY_INT8 is moved only, TOY_INT32 and TOY_INT64 are for tables of indices. */
typedef struct toy_job {
  const char *entry;
  const toy_tensor *tensors;
  uint32_t inputs, outputs;
  const void *arguments;
  size_t argument_bytes;
  size_t line_buffer;            /* bytes the unit needs to keep lines in */
  uint64_t cookie;               /* given back by toy_failed */
} toy_job;

/* Everything a job points to is copied. The fence is passed when the job is done. */
toy_error toy_submit(toy_device *device, uint32_t queue, const toy_job *job, toy_fence *fence);
/* Elements of one tensor to another with formats of one width and the same sizes, wherever they begin. */
toy_error toy_transfer(toy_device *device, uint32_t queue, const toy_tensor tensors[2], uint64_t cookie, toy_fence *fence);
/* What is submitted to the queue from now on starts after the fence. */
toy_error toy_queue_wait(toy_device *device, uint32_t queue, toy_fence fence);

/* Wait for one fence, or for everything. The first job that fails takes all that are queued with it; its error is returned here. */
toy_error toy_fence_wait(toy_device *device, toy_fence fence);
toy_error toy_finish(toy_device *device);
uint64_t toy_failed(const toy_device *device); /* the cookie of the job that failed last */
void toy_drop(toy_device *device);             /* forgets all jobs that are not done */

uint64_t toy_busy_nanoseconds(const toy_device *device);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
