/* The memories of a simulated chip: real bytes at addresses of its own, and what commands may do with them. */
#ifndef FLAOT_NPU_SIM_MEMORY_H
#define FLAOT_NPU_SIM_MEMORY_H
#include "flaot/adapter.h"
#include "npu_sim/csrc/order.h"
#include "npu_sim/csrc/shadow.h"
#include "npu_sim/csrc/traps.h"

enum { FL_BLOCKS = 8, FL_UNWRITTEN_BYTE = 0xff };

typedef struct fl_block {
  uint64_t address, size, used; /* used: bytes from the first to the last one touched */
  uint8_t *bytes;
  bool on_chip;
  fl_shadow shadow;
} fl_block;

/* All zero at first, then opened. */
typedef struct fl_memories {
  fl_block blocks[FL_BLOCKS];
  uint32_t count;
  uint64_t next;    /* first address not given out */
  uint64_t on_chip; /* bytes of on-chip memory given out */
  fl_order order;
  fl_history history;
  fl_access access; /* of the command that came last */
} fl_memories;

/* Where an operand lies: element (0, ..., 0) is byte at of the block. */
typedef struct fl_place {
  fl_block *block;
  uint64_t at;
} fl_place;

fl_status fl_memory_open(fl_memories *m, const fl_chip *chip);
void fl_memory_close(fl_memories *m);
fl_status fl_memory_alloc(fl_memories *m, const fl_chip *chip, fl_memory memory, uint64_t size, uint32_t alignment, uint64_t *address,
                          char message[FL_MESSAGE]);

/* A command comes; the first of a run finds memory in which nothing is written but what was there before all runs. */
fl_status fl_memory_begin(fl_memories *m, const fl_command *command);

/* Where [address + low, address + high) lies; the block is null unless it is inside one. */
fl_place fl_memory_find(fl_memories *m, uint64_t address, int64_t low, int64_t high);

/* Operand i of the command that came last is read or written: FL_OK, or the hazard's trap with its sentence. */
fl_status fl_memory_use(fl_memories *m, fl_place place, const fl_tensor *t, uint32_t i, bool writes, char message[FL_MESSAGE]);

/* The same for bytes a transfer moves. */
fl_status fl_memory_transfer(fl_memories *m, fl_place place, uint64_t size, bool writes, char message[FL_MESSAGE]);

/* Bytes of on-chip memory from the first to the last one any command touched. */
uint64_t fl_memory_peak(const fl_memories *m);

static inline uint8_t *fl_bytes_at(fl_place place) { return place.block->bytes + place.at; }

#endif
