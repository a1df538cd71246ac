/* Offsets below a capacity for buffers with lifetimes, by a search that counts its nodes; flaot/schedule/search.py calls it.

   A section is a moment in which a largest set of buffers is alive together; a buffer spans the sections `first` to `last`. Buffers
   that share a section must not overlap. `low` is the lowest offset at which an unplaced buffer can still end up: everything below it
   is settled in each of its sections. Sizes and offsets count units (the greatest common divisor of all sizes). */
#ifndef FLAOT_SCHEDULE_PACK_H
#define FLAOT_SCHEDULE_PACK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fl_pack_result { FL_PACK_NONE, FL_PACK_FITS, FL_PACK_ENDED, FL_PACK_MEMORY } fl_pack_result;

typedef struct fl_pack_item {
  int64_t size, low, offset;
  uint32_t first, last;
  size_t slots; /* of `where`: its position in the list of each section it spans */
} fl_pack_item;

typedef struct fl_pack_section {
  uint32_t *items; /* the unplaced ones come first */
  uint32_t count, lowest; /* unplaced items; how many of them may stand on the floor */
  int64_t need, floor, slack; /* sum of unplaced sizes; least `low`; what of the capacity may stay empty above the floor */
  double weight; /* one more for each time the section could not be filled */
} fl_pack_section;

/* What to restore: the item's former `low`, or its place when that is negative. */
typedef struct fl_pack_change {
  uint32_t item;
  int64_t low;
} fl_pack_change;

/* A range of sections to solve part by part (`section` is FL_PACK_RANGE), or a choice: what stands on the floor of a section. */
typedef struct fl_pack_frame {
  uint32_t first, last, section;
  size_t mark; /* length of the trail before the choice */
  size_t start, next, end; /* its candidates in `pile`; those from `next` on are still to be tried */
  uint64_t key;
} fl_pack_frame;

#define FL_PACK_RANGE UINT32_MAX

typedef struct fl_pack {
  int64_t capacity;
  uint32_t item_count, section_count;
  fl_pack_item *items;
  fl_pack_section *sections;
  uint32_t *where, *crossing; /* unplaced items alive in section s and in s + 1 */
  uint32_t *queue, queue_head, queued; /* a ring of the sections to look at again, each at most once */
  uint32_t *sorted; /* items of one section */
  bool *waiting;
  fl_pack_change *trail;
  fl_pack_frame *frames;
  uint32_t *pile;
  size_t trail_length, trail_room, depth, frame_room, pile_length, pile_room;
  uint64_t *failed, failed_mask; /* hashes of states without a solution */
  uint64_t nodes, limit, share, budget, random; /* nodes visited; at which this round ends; of a round; of all rounds */
  size_t start; /* length of the trail before the first choice */
  uint32_t round;
  bool refuted, out_of_memory; /* `refuted`: without any choice */
} fl_pack;

/* state.c: placing, taking back, and what follows from it. */
void fl_pack_place(fl_pack *p, uint32_t item);
void fl_pack_raise(fl_pack *p, uint32_t item, int64_t low);
void fl_pack_undo(fl_pack *p, size_t mark);
void fl_pack_touch(fl_pack *p, uint32_t first, uint32_t last);
bool fl_pack_propagate(fl_pack *p); /* false: some section cannot be filled any more */

/* search.c: runs until a solution, a proof that there is none, or the limit of nodes. */
fl_pack_result fl_pack_search(fl_pack *p);

/* pack.c: room for one more element of a list that grows; false, and `out_of_memory` set, when there is none. */
bool fl_pack_grow(fl_pack *p, void **list, size_t *room, size_t length, size_t element);

/* For each of `count` items (at least one) a size, and the first and last section it is alive in; `nodes` is what all rounds together may
   visit. Null when there is no memory. */
fl_pack *fl_pack_open(uint32_t count, const int64_t *sizes, const uint32_t *first, const uint32_t *last, int64_t capacity, uint64_t nodes);

/* Searches for one round. Rounds begin anew with another order of candidates and slightly more nodes; states known to fail and weights
   stay. Writes the offsets when the result is FL_PACK_FITS, and always the nodes spent so far. */
fl_pack_result fl_pack_advance(fl_pack *p, int64_t *offsets, uint64_t *spent);

void fl_pack_close(fl_pack *p);
#endif
