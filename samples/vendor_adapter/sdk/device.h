/* What the sources of libtoysdk share. */
#ifndef TOY_DEVICE_H
#define TOY_DEVICE_H
#include <stdbool.h>
#include "flaot/kernel.h"
#include "toysdk.h"

enum { TOY_QUEUES = 32, TOY_DEPTH = 64, TOY_MEMORIES = 64, TOY_TEXT = 160, TOY_PAGE = 4096 };
enum { TOY_GRANULE = 64, TOY_AXES = 5 };
#define TOY_DRAM_BYTES ((uint64_t)64 << 20)
#define TOY_SRAM_BYTES ((uint64_t)512 << 10)

typedef enum toy_lie { LIE_NONE, LIE_BFLOAT16, LIE_ALIGNMENT, LIE_LAYOUT, LIE_RANK, LIE_MEMORY, LIE_ROUNDING, LIE_COUNT } toy_lie;
typedef enum toy_work { WORK_WAIT, WORK_JOB, WORK_TRANSFER } toy_work;

typedef struct toy_entry {
  const char *name;
  fl_kernel_fn check, run;
  bool moves;      /* axes may lie in any order */
  bool transposed; /* the last two axes may be in either order */
} toy_entry;

typedef struct toy_task {
  toy_work work;
  toy_fence fence;           /* the one to wait for, or the task's own */
  uint64_t cookie;
  const toy_entry *entry;
  uint32_t inputs, outputs;
  fl_tensor *tensors;        /* the arguments follow in the same block */
  void *data[TOY_MOST_TENSORS];
  void *arguments;
  size_t argument_bytes, line_buffer;
} toy_task;

typedef struct toy_line {
  toy_task tasks[TOY_DEPTH]; /* a ring */
  uint32_t first, count;
  uint64_t submitted, done;  /* tasks with a fence */
} toy_line;

typedef struct toy_block {
  uint8_t *bytes;
  uint64_t size;
} toy_block;

struct toy_device {
  toy_lie lie;
  toy_error fault;           /* that TOY_FAULT asks for; TOY_OK: none */
  toy_block blocks[TOY_MEMORIES];
  uint32_t block_count;
  uint64_t used[2];          /* bytes of each heap */
  toy_line lines[TOY_QUEUES];
  toy_error failed;          /* of a job, not told yet */
  uint64_t failed_cookie, busy;
  bool lost;
  uint8_t *room;             /* what the units compute in */
  size_t room_size;
  char text[TOY_TEXT];
};

toy_error toy_say(toy_device *device, toy_error error, const char *format, ...);
uint8_t *toy_bytes(toy_device *device, toy_memory memory, uint64_t offset, int64_t low, int64_t high);

const toy_entry *toy_find_entry(const char *name);
/* Whether the chip takes the task, and the places of its tensors. */
toy_error toy_inspect(toy_device *device, const toy_tensor *tensors, toy_task *task);
toy_error toy_execute(toy_device *device, toy_task *task);

#endif
