#include "npu_sim/csrc/memory.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/verify.h"

enum { FL_GUARD = 1 << 16, MOST_ON_CHIP = 1 << 30 };

fl_status fl_memory_open(fl_memories *m, const fl_chip *chip) {
  m->next = FL_GUARD;
  return fl_order_open(&m->order, chip->queues) && fl_history_open(&m->history, chip->queues) ? FL_OK : FL_DEVICE_MEMORY;
}

void fl_memory_close(fl_memories *m) {
  for (uint32_t i = 0; i < m->count; i++) free(m->blocks[i].bytes), fl_shadow_close(&m->blocks[i].shadow);
  fl_order_close(&m->order), fl_history_close(&m->history);
}

static fl_status check_on_chip(const fl_memories *m, const fl_chip *chip, uint64_t size, char *message) {
  if (size > chip->on_chip || m->on_chip > chip->on_chip - size) {
    snprintf(message, FL_MESSAGE, "on_chip: the plan uses %" PRIu64 " bytes, the chip has %" PRIu64, m->on_chip + size, chip->on_chip);
    return FL_TRAP_MEMORY;
  }
  if (size <= MOST_ON_CHIP) return FL_OK;
  snprintf(message, FL_MESSAGE, "on_chip: the simulator has at most %d bytes, the plan uses %" PRIu64, MOST_ON_CHIP, size);
  return FL_DEVICE_MEMORY;
}

fl_status fl_memory_alloc(fl_memories *m, const fl_chip *chip, fl_memory memory, uint64_t size, uint32_t alignment, uint64_t *address,
                          char message[FL_MESSAGE]) {
  bool on_chip = memory == FL_MEMORY_ON_CHIP;
  fl_status status = on_chip ? check_on_chip(m, chip, size, message) : FL_OK;
  if (status != FL_OK) return status;
  if (m->count == FL_BLOCKS || size > SIZE_MAX / 2) return FL_DEVICE_MEMORY;
  fl_block *b = &m->blocks[m->count];
  b->bytes = calloc(1, (size_t)size + 1);
  if (!b->bytes) return FL_DEVICE_MEMORY;
  if (!fl_shadow_open(&b->shadow, size)) {
    free(b->bytes);
    return FL_DEVICE_MEMORY;
  }
  if (on_chip) memset(b->bytes, FL_UNWRITTEN_BYTE, (size_t)size), m->on_chip += size;
  b->address = (m->next + alignment - 1) / alignment * alignment, b->size = size, b->on_chip = on_chip;
  m->count++, m->next = b->address + size + FL_GUARD, *address = b->address;
  return FL_OK;
}

fl_status fl_memory_begin(fl_memories *m, const fl_command *c) {
  bool starts;
  if (!fl_order_begin(&m->order, c, &starts)) return FL_DEVICE_MEMORY;
  m->access = (fl_access){c->step, c->queue, m->order.known};
  if (!starts) return FL_OK;
  fl_history_restart(&m->history);
  for (uint32_t i = 0; i < m->count; i++) fl_shadow_restart(&m->blocks[i].shadow);
  return FL_OK;
}

fl_place fl_memory_find(fl_memories *m, uint64_t address, int64_t low, int64_t high) {
  for (uint32_t i = 0; i < m->count; i++) {
    fl_block *b = &m->blocks[i];
    if (address < b->address || address - b->address > b->size) continue;
    int64_t offset = (int64_t)(address - b->address);
    if (offset + low >= 0 && offset + high <= (int64_t)b->size) return (fl_place){b, (uint64_t)offset};
  }
  return (fl_place){NULL, 0};
}

static fl_status trap_of(const fl_memories *m, const fl_block *b, const fl_hazard *h, const char *who, bool writes, char *message) {
  const fl_access *a = &m->access;
  bool early = h->kind == FL_UNWRITTEN || h->kind == FL_READS_WRITTEN;
  if (h->kind == FL_NO_HAZARD) return FL_OK;
  if (h->kind == FL_NO_ROOM) return FL_DEVICE_MEMORY;
  int n = snprintf(message, FL_MESSAGE, "%s: %s of step %u on queue %u %s bytes %" PRIu64 " to %" PRIu64 " of %s memory, which ",
                   early ? "early_read" : "overlap", who, a->step, a->queue, writes ? "writes" : "reads", h->low, h->high,
                   b->on_chip ? "on-chip" : "off-chip");
  char *rest = message + n;
  size_t room = (size_t)(FL_MESSAGE - n);
  if (h->kind == FL_UNWRITTEN) snprintf(rest, room, "nothing has written");
  else
    snprintf(rest, room, "step %u on queue %u %s, and does not wait for it", h->step, h->queue,
             h->kind == FL_WRITES_READ ? "reads" : "writes");
  return early ? FL_TRAP_EARLY_READ : FL_TRAP_OVERLAP;
}

static void mark_used(fl_block *b, uint64_t end) {
  if (end > b->used) b->used = end;
}

fl_status fl_memory_use(fl_memories *m, fl_place place, const fl_tensor *t, uint32_t i, bool writes, char message[FL_MESSAGE]) {
  char who[24];
  int64_t low, high;
  if (fl_extent(t, &low, &high) && high > low) mark_used(place.block, place.at + (uint64_t)high);
  fl_hazard h = fl_shadow_tensor(&place.block->shadow, &m->history, &m->access, writes, t, place.at);
  snprintf(who, sizeof who, "operand %u", i);
  return trap_of(m, place.block, &h, who, writes, message);
}

fl_status fl_memory_transfer(fl_memories *m, fl_place place, uint64_t size, bool writes, char message[FL_MESSAGE]) {
  fl_hazard h = fl_shadow_bytes(&place.block->shadow, &m->history, &m->access, writes, place.at, place.at + size);
  return trap_of(m, place.block, &h, "the transfer", writes, message);
}

uint64_t fl_memory_peak(const fl_memories *m) {
  uint64_t peak = 0;
  for (uint32_t i = 0; i < m->count; i++) peak += m->blocks[i].on_chip ? m->blocks[i].used : 0;
  return peak;
}
