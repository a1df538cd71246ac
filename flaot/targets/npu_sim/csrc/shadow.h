/* Who wrote every byte of a chip's memory and who reads it, and with that the hazards between commands: a read that does not come after
   the write of its bytes, a write that does not come after their earlier reads and writes. */
#ifndef FLAOT_NPU_SIM_SHADOW_H
#define FLAOT_NPU_SIM_SHADOW_H
#include "flaot/kernel.h"

enum { FL_GRANULE = 32 };

/* What happened to bytes, by number, for all memories of a chip; see shadow.c. All zero at first, then opened. */
typedef struct fl_history {
  uint32_t queues;
  uint32_t count, room;      /* states */
  uint32_t *states;
  uint32_t *follows, *stamp; /* per state: the one that follows in the access of that stamp */
  uint32_t access;
  uint32_t (*split)[FL_GRANULE];
  uint32_t split_count, split_room, split_free;
} fl_history;

/* One number per granule of a memory. */
typedef struct fl_shadow {
  uint32_t *granules;
  uint64_t size;         /* bytes */
  uint64_t low, high;    /* bytes touched since the run began */
  bool given;            /* written before all runs, and only read in them */
} fl_shadow;

/* A command at work on its operands. */
typedef struct fl_access {
  uint32_t step, queue;
  const uint32_t *known; /* per queue: 1 + the last step complete when it starts */
} fl_access;

typedef enum fl_hazard_kind { FL_NO_HAZARD, FL_UNWRITTEN, FL_READS_WRITTEN, FL_WRITES_READ, FL_WRITES_WRITTEN, FL_NO_ROOM } fl_hazard_kind;

typedef struct fl_hazard {
  fl_hazard_kind kind;
  uint64_t low, high;    /* bytes of the memory */
  uint32_t step, queue;  /* the other command */
} fl_hazard;

bool fl_history_open(fl_history *h, uint32_t queues);
void fl_history_restart(fl_history *h);
void fl_history_close(fl_history *h);

bool fl_shadow_open(fl_shadow *s, uint64_t size);
void fl_shadow_restart(fl_shadow *s);
void fl_shadow_close(fl_shadow *s);

/* The command reads or writes the elements of t, of which (0, ..., 0) lies at a byte of the memory; inside it, as the caller knows. */
fl_hazard fl_shadow_tensor(fl_shadow *s, fl_history *h, const fl_access *a, bool writes, const fl_tensor *t, uint64_t at);

/* The same for the bytes [low, high). */
fl_hazard fl_shadow_bytes(fl_shadow *s, fl_history *h, const fl_access *a, bool writes, uint64_t low, uint64_t high);

#endif
