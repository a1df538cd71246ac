/* Which commands are complete when another one starts, by queues and waits alone: vector clocks over the queues of a chip. */
#ifndef FLAOT_NPU_SIM_ORDER_H
#define FLAOT_NPU_SIM_ORDER_H
#include "flaot/adapter.h"

/* All zero at first, then opened. Steps of a run come in the order of the plan; a step that does not follow the last one starts a run. */
typedef struct fl_order {
  uint32_t queues;
  uint32_t next;    /* first step that has not come in this run */
  uint32_t *known;  /* of the command that came last: per queue, 1 + the last step complete when it starts */
  uint32_t *last;   /* per queue: 1 + its last step */
  uint32_t *rows;   /* per step of this run, see order.c */
  size_t room;
} fl_order;

bool fl_order_open(fl_order *o, uint32_t queues);
void fl_order_close(fl_order *o);

/* A command comes: sets known, and starts to whether it is the first of a run. False without memory. */
bool fl_order_begin(fl_order *o, const fl_command *c, bool *starts);

#endif
