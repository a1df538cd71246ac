#include "npu_sim/csrc/order.h"
#include <stdlib.h>
#include <string.h>

/* A row: 1 + the command's queue (0: the step is not this chip's), 1 + the last transfer that came before or with the step, then per
   queue 1 + the last step complete when the command is. */
enum { OWNER, LINK, COMPLETE };

static uint32_t *row_of(const fl_order *o, uint32_t step) { return o->rows + (size_t)step * (o->queues + COMPLETE); }

bool fl_order_open(fl_order *o, uint32_t queues) {
  o->queues = queues;
  o->known = calloc(queues, sizeof *o->known), o->last = calloc(queues, sizeof *o->last);
  return o->known && o->last;
}

void fl_order_close(fl_order *o) { free(o->known), free(o->last), free(o->rows); }

static bool reserve(fl_order *o, size_t steps) {
  if (steps <= o->room) return true;
  size_t room = steps * 2;
  uint32_t *rows = realloc(o->rows, room * (o->queues + COMPLETE) * sizeof *rows);
  if (!rows) return false;
  o->rows = rows, o->room = room;
  return true;
}

static void join(fl_order *o, const uint32_t *row) {
  for (uint32_t q = 0; q < o->queues; q++)
    if (row[COMPLETE + q] > o->known[q]) o->known[q] = row[COMPLETE + q];
}

/* The host and other chips see a chip through transfers alone: after one of their steps, the transfers before it are complete. */
static void join_wait(fl_order *o, uint32_t step) {
  const uint32_t *row = row_of(o, step);
  if (row[OWNER] == 0 && row[LINK] == 0) return;
  join(o, row[OWNER] != 0 ? row : row_of(o, row[LINK] - 1));
}

bool fl_order_begin(fl_order *o, const fl_command *c, bool *starts) {
  *starts = c->step < o->next || o->next == 0;
  if (*starts) o->next = 0, memset(o->last, 0, o->queues * sizeof *o->last);
  if (c->queue >= o->queues || !reserve(o, (size_t)c->step + 1)) return false;
  uint32_t *link = &o->last[o->queues - 1], *last = &o->last[c->queue];
  for (; o->next < c->step; o->next++) row_of(o, o->next)[OWNER] = 0, row_of(o, o->next)[LINK] = *link;
  memset(o->known, 0, o->queues * sizeof *o->known);
  if (*last != 0) join(o, row_of(o, *last - 1));
  for (uint32_t i = 0; i < c->wait_count; i++)
    if (c->waits[i] < c->step) join_wait(o, c->waits[i]);
  *last = c->step + 1, o->next = c->step + 1;
  uint32_t *row = row_of(o, c->step);
  row[OWNER] = c->queue + 1, row[LINK] = *link;
  memcpy(row + COMPLETE, o->known, o->queues * sizeof *o->known);
  row[COMPLETE + c->queue] = c->step + 1;
  return true;
}
