/* A chip on the host: memory with addresses of its own (memory.c), traps (traps.c), and what its units compute (compute.c).
   self: the fl_team that shares the work of launches, or null. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/kernel_table.h"
#include "core/verify.h"
#include "npu_sim/csrc/compute.h"
#include "npu_sim/csrc/memory.h"
#include "npu_sim/csrc/traps.h"

typedef struct sim {
  fl_chip chip;
  fl_memories memories;
  fl_compute compute;
  fl_counters counters;
  char message[FL_MESSAGE];
} sim;

extern const fl_adapter fl_npu_sim;

static void sim_close(void *device) {
  sim *s = device;
  fl_memory_close(&s->memories);
  fl_compute_close(&s->compute);
  free(s);
}

static fl_status sim_open(void *self, const fl_chip *chip, void **device) {
  sim *s = calloc(1, sizeof *s);
  if (!s) return FL_DEVICE_MEMORY;
  s->chip = *chip, s->compute.team = self;
  fl_status status = fl_memory_open(&s->memories, chip);
  if (status == FL_OK) *device = s;
  else sim_close(s);
  return status;
}

static fl_status sim_alloc(void *device, fl_memory memory, uint64_t size, uint32_t alignment, uint64_t *address) {
  sim *s = device;
  s->message[0] = 0;
  return fl_memory_alloc(&s->memories, &s->chip, memory, size, alignment, address, s->message);
}

static fl_status outside(sim *s, const char *what, uint64_t address) {
  snprintf(s->message, FL_MESSAGE, "address: %s at 0x%" PRIx64 " leaves the chip's memory", what, address);
  return FL_TRAP_ADDRESS;
}

/* The bytes of the transfer are ordered after what they touch; without a command they belong to no run. */
static fl_status check_copy(sim *s, const fl_command *command, fl_place place, uint64_t size, bool writes) {
  if (!command) {
    if (writes && place.at == 0 && size == place.block->size) place.block->shadow.given = true;
    return FL_OK;
  }
  fl_status status = fl_memory_begin(&s->memories, command);
  return status == FL_OK ? fl_memory_transfer(&s->memories, place, size, writes, s->message) : status;
}

static fl_status sim_copy(void *device, const fl_command *command, fl_direction direction, uint64_t address, void *host, uint64_t size) {
  sim *s = device;
  bool into = direction == FL_TO_DEVICE;
  s->message[0] = 0;
  fl_place place = {0};
  if (size <= INT64_MAX) place = fl_memory_find(&s->memories, address, 0, (int64_t)size);
  if (!place.block) return outside(s, "a transfer", address);
  fl_status status = check_copy(s, command, place, size, into);
  if (status != FL_OK) return status;
  if (size > 0) memcpy(into ? fl_bytes_at(place) : host, into ? host : fl_bytes_at(place), (size_t)size);
  if (!command) return FL_OK;
  s->counters.copies++;
  if (!s->chip.zero_copy) *(into ? &s->counters.bytes_to_device : &s->counters.bytes_from_device) += size;
  return FL_OK;
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Axes of a move, outermost first in the target's memory: those of size 1 gone, those that lie together on both sides merged. */
typedef struct axes {
  unsigned count;
  int64_t n[FL_MAX_RANK], a[FL_MAX_RANK], b[FL_MAX_RANK];
} axes;

static void add_axis(axes *x, int64_t n, int64_t a, int64_t b) {
  unsigned i = x->count++;
  for (; i > 0 && (x->b[i - 1] < 0 ? -x->b[i - 1] : x->b[i - 1]) < (b < 0 ? -b : b); i--)
    x->n[i] = x->n[i - 1], x->a[i] = x->a[i - 1], x->b[i] = x->b[i - 1];
  x->n[i] = n, x->a[i] = a, x->b[i] = b;
}

static axes axes_of(const fl_tensor *a, const fl_tensor *b) {
  axes sorted = {0}, merged = {0};
  for (unsigned i = 0; i < a->rank; i++)
    if (a->dims[i] != 1) add_axis(&sorted, a->dims[i], a->strides[i], b->strides[i]);
  for (unsigned i = 0; i < sorted.count; i++) {
    unsigned last = merged.count;
    int64_t n = sorted.n[i];
    bool together = last > 0 && merged.a[last - 1] == n * sorted.a[i] && merged.b[last - 1] == n * sorted.b[i];
    if (!together) merged.n[merged.count++] = 1;
    merged.n[merged.count - 1] *= n, merged.a[merged.count - 1] = sorted.a[i], merged.b[merged.count - 1] = sorted.b[i];
  }
  return merged;
}

static void move_axis(const axes *x, unsigned axis, size_t size, const uint8_t *from, uint8_t *to) {
  if (axis == x->count) {
    memcpy(to, from, size);
    return;
  }
  ptrdiff_t step_a = (ptrdiff_t)size * (ptrdiff_t)x->a[axis], step_b = (ptrdiff_t)size * (ptrdiff_t)x->b[axis];
  bool inner = axis + 1 == x->count;
  if (inner && x->a[axis] == 1 && x->b[axis] == 1) memcpy(to, from, size * (size_t)x->n[axis]);
  else if (inner && size == 2)
    for (int64_t i = 0; i < x->n[axis]; i++, from += step_a, to += step_b) memcpy(to, from, 2);
  else
    for (int64_t i = 0; i < x->n[axis]; i++) move_axis(x, axis + 1, size, from + i * step_a, to + i * step_b);
}

static void move(const fl_tensor *a, const uint8_t *from, const fl_tensor *b, uint8_t *to) {
  axes x = axes_of(a, b);
  if (fl_elements(a) > 0) move_axis(&x, 0, fl_dtype_size(a->dtype), from, to);
}

static fl_status find(sim *s, const fl_tensor *t, uint64_t address, const char *what, fl_place *place) {
  int64_t low, high;
  *place = (fl_place){0};
  if (fl_extent(t, &low, &high)) *place = fl_memory_find(&s->memories, address, low, high);
  return place->block ? FL_OK : outside(s, what, address);
}

static fl_status sim_dma(void *device, const fl_dma *dma) {
  sim *s = device;
  fl_place place[2];
  uint64_t start = now();
  s->message[0] = 0;
  fl_status status = fl_trap_of_dma(&s->chip, dma, s->message);
  for (unsigned i = 0; i < 2 && status == FL_OK; i++) status = find(s, dma->t[i], dma->address[i], "an operand", &place[i]);
  if (status == FL_OK) status = fl_memory_begin(&s->memories, &dma->command);
  for (unsigned i = 0; i < 2 && status == FL_OK; i++) status = fl_memory_use(&s->memories, place[i], dma->t[i], i, i == 1, s->message);
  if (status != FL_OK) return status;
  move(dma->t[0], fl_bytes_at(place[0]), dma->t[1], fl_bytes_at(place[1]));
  uint64_t size = (uint64_t)fl_elements(dma->t[0]) * fl_dtype_size(dma->t[0]->dtype);
  s->counters.dmas++, *(place[1].block->on_chip ? &s->counters.bytes_in : &s->counters.bytes_out) += size;
  s->counters.nanoseconds += now() - start;
  return FL_OK;
}

/* Units compute on on-chip memory, in a plan that has any; what only moves elements may be the DMA engine's work on the chip's memory. */
static fl_status check_memory(sim *s, const fl_launch *l, uint32_t traits, fl_place place, uint32_t i) {
  bool engine = (traits & FL_KERNEL_MOVES) && l->command.queue < s->chip.channels;
  if (place.block->on_chip || engine || s->memories.on_chip == 0) return FL_OK;
  snprintf(s->message, FL_MESSAGE, "memory: operand %u of step %u on unit %s lies in off-chip memory, where units do not compute", i,
           l->command.step, l->unit);
  return FL_TRAP_MEMORY;
}

static fl_status use_operands(sim *s, const fl_launch *l, uint32_t traits, const fl_place *place) {
  fl_status status = fl_memory_begin(&s->memories, &l->command);
  uint32_t read = traits & FL_KERNEL_UPDATES ? l->n_in + l->n_out : l->n_in;
  for (uint32_t i = 0; i < read && status == FL_OK; i++) status = fl_memory_use(&s->memories, place[i], l->t[i], i, false, s->message);
  for (uint32_t i = l->n_in; i < l->n_in + l->n_out && status == FL_OK; i++)
    status = fl_memory_use(&s->memories, place[i], l->t[i], i, true, s->message);
  return status;
}

static fl_status sim_launch(void *device, const fl_launch *l) {
  sim *s = device;
  fl_place place[FL_MAX_OPERANDS] = {{0}};
  void *stored[FL_MAX_OPERANDS] = {0};
  uint64_t start = now();
  const fl_kernel *k = fl_find_kernel(l->kernel);
  uint32_t traits = k ? k->traits : 0;
  s->message[0] = 0;
  fl_status status = fl_trap_of(&s->chip, l, s->message);
  for (uint32_t i = 0; i < l->n_in + l->n_out && status == FL_OK; i++) {
    status = find(s, l->t[i], l->address[i], "an operand", &place[i]);
    if (status == FL_OK) status = check_memory(s, l, traits, place[i], i);
  }
  if (status == FL_OK) status = use_operands(s, l, traits, place);
  if (status != FL_OK) return status;
  for (uint32_t i = 0; i < l->n_in + l->n_out; i++) stored[i] = fl_bytes_at(place[i]);
  status = fl_compute_launch(&s->compute, &s->chip, l, stored);
  s->counters.launches++, s->counters.nanoseconds += now() - start;
  return status;
}

static fl_status sim_sync(void *device) {
  (void)device;
  return FL_OK;
}

static const char *sim_message(void *device) { return ((sim *)device)->message; }

static void sim_counters(void *device, fl_counters *counters) {
  const sim *s = device;
  *counters = s->counters;
  counters->on_chip_peak = fl_memory_peak(&s->memories);
}

const fl_adapter fl_npu_sim = {FL_ADAPTER_ABI, NULL, "npu_sim", "1", NULL, sim_open, sim_alloc, sim_copy, sim_dma, sim_launch, sim_sync,
                               sim_close, sim_message, sim_counters};
