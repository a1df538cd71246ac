/* A chip on the host: memory with addresses of its own, traps, and what its units compute (compute.c).
   self: the fl_team that shares the work of launches, or null. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/verify.h"
#include "npu_sim/csrc/compute.h"
#include "npu_sim/csrc/traps.h"

enum { FL_BLOCKS = 8, FL_GUARD = 1 << 16 };

typedef struct block {
  uint64_t address, size;
  uint8_t *bytes;
} block;

typedef struct sim {
  fl_chip chip;
  block blocks[FL_BLOCKS];
  uint32_t count;
  uint64_t next; /* first address not given out */
  fl_compute compute;
  char message[FL_MESSAGE];
} sim;

extern const fl_adapter fl_npu_sim;

static fl_status sim_open(void *self, const fl_chip *chip, void **device) {
  sim *s = calloc(1, sizeof *s);
  if (!s) return FL_DEVICE_MEMORY;
  s->chip = *chip, s->next = FL_GUARD, s->compute.team = self, *device = s;
  return FL_OK;
}

static fl_status sim_alloc(void *device, fl_memory memory, uint64_t size, uint32_t alignment, uint64_t *address) {
  (void)memory;
  sim *s = device;
  if (s->count == FL_BLOCKS || size > SIZE_MAX / 2) return FL_DEVICE_MEMORY;
  block *b = &s->blocks[s->count];
  b->bytes = calloc(1, (size_t)size + 1);
  if (!b->bytes) return FL_DEVICE_MEMORY;
  b->address = (s->next + alignment - 1) / alignment * alignment, b->size = size;
  s->count++, s->next = b->address + size + FL_GUARD, *address = b->address;
  return FL_OK;
}

/* The bytes at an address, null unless [address + low, address + high) lies in one block. */
static uint8_t *at(sim *s, uint64_t address, int64_t low, int64_t high) {
  for (uint32_t i = 0; i < s->count; i++) {
    const block *b = &s->blocks[i];
    if (address < b->address || address - b->address > b->size) continue;
    int64_t offset = (int64_t)(address - b->address);
    if (offset + low >= 0 && offset + high <= (int64_t)b->size) return b->bytes + offset;
  }
  return NULL;
}

static fl_status outside(sim *s, const char *what, uint64_t address) {
  snprintf(s->message, FL_MESSAGE, "address: %s at 0x%" PRIx64 " leaves the chip's memory", what, address);
  return FL_TRAP_ADDRESS;
}

static fl_status sim_copy(void *device, const fl_command *command, fl_direction direction, uint64_t address, void *host, uint64_t size) {
  (void)command;
  sim *s = device;
  uint8_t *p = size <= INT64_MAX ? at(s, address, 0, (int64_t)size) : NULL;
  if (!p) return outside(s, "a transfer", address);
  if (direction == FL_TO_DEVICE) memcpy(p, host, (size_t)size);
  else memcpy(host, p, (size_t)size);
  return FL_OK;
}

static void move(const fl_tensor *a, const uint8_t *from, const fl_tensor *b, uint8_t *to, unsigned axis) {
  size_t size = fl_dtype_size(a->dtype);
  if (axis == a->rank) {
    memcpy(to, from, size);
    return;
  }
  ptrdiff_t step_a = (ptrdiff_t)size * a->strides[axis], step_b = (ptrdiff_t)size * b->strides[axis];
  bool run = axis + 1 == a->rank && a->strides[axis] == 1 && b->strides[axis] == 1;
  if (run) memcpy(to, from, size * (size_t)a->dims[axis]);
  else
    for (int32_t i = 0; i < a->dims[axis]; i++) move(a, from + i * step_a, b, to + i * step_b, axis + 1);
}

static fl_status sim_dma(void *device, const fl_dma *dma) {
  sim *s = device;
  uint8_t *p[2];
  for (unsigned i = 0; i < 2; i++) {
    int64_t low, high;
    p[i] = fl_extent(dma->t[i], &low, &high) ? at(s, dma->address[i], low, high) : NULL;
    if (!p[i]) return outside(s, "a transfer", dma->address[i]);
  }
  move(dma->t[0], p[0], dma->t[1], p[1], 0);
  return FL_OK;
}

static fl_status sim_launch(void *device, const fl_launch *l) {
  sim *s = device;
  void *stored[FL_MAX_OPERANDS] = {0};
  s->message[0] = 0;
  fl_status status = fl_trap_of(&s->chip, l, s->message);
  if (status != FL_OK) return status;
  for (uint32_t i = 0; i < l->n_in + l->n_out; i++) {
    int64_t low, high;
    stored[i] = fl_extent(l->t[i], &low, &high) ? at(s, l->address[i], low, high) : NULL;
    if (!stored[i]) return outside(s, "an operand", l->address[i]);
  }
  return fl_compute_launch(&s->compute, &s->chip, l, stored);
}

static fl_status sim_sync(void *device) {
  (void)device;
  return FL_OK;
}

static void sim_close(void *device) {
  sim *s = device;
  for (uint32_t i = 0; i < s->count; i++) free(s->blocks[i].bytes);
  fl_compute_close(&s->compute);
  free(s);
}

static const char *sim_message(void *device) { return ((sim *)device)->message; }

const fl_adapter fl_npu_sim = {FL_ADAPTER_ABI, NULL, "npu_sim", "1", NULL, sim_open, sim_alloc, sim_copy, sim_dma, sim_launch, sim_sync,
                               sim_close, sim_message, NULL};
