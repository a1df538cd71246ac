/* Depth first, over solutions in which every item stands on the bottom or on another item: one exists whenever any does.

   A choice takes a section whose lowest items nothing can come below, and tries each of them on its floor, then none of them, in which
   case each stands on something unplaced. Sections with few candidates come first, as do those that failed often. Sections no item
   crosses fall into parts that are solved one by one, and a part without a solution ends all of them. What lies below the `low` of the
   unplaced items is of no consequence, so a state is these numbers, and one that failed is not tried again. */
#include "pack.h"

enum { PROBES = 4, ORDERS = 4 };

typedef enum report { OPENED, SOLVED, REFUTED, STOPPED } report;

static uint64_t mix(uint64_t x) {
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

/* The hash of a part's state; never 0. */
static uint64_t key_of(const fl_pack *p, uint32_t first, uint32_t last) {
  uint64_t key = 0;
  for (uint32_t s = first; s <= last; s++) {
    const fl_pack_section *e = &p->sections[s];
    for (uint32_t i = 0; i < e->count; i++) {
      const fl_pack_item *it = &p->items[e->items[i]];
      if (it->first == s) key ^= mix(mix(e->items[i]) ^ (uint64_t)it->low);
    }
  }
  return key ? key : 1;
}

static bool has_failed(const fl_pack *p, uint64_t key) {
  for (uint64_t i = 0; i < PROBES; i++)
    if (p->failed[(key + i) & p->failed_mask] == key) return true;
  return false;
}

static void note_failed(fl_pack *p, uint64_t key) {
  uint64_t at = key;
  for (uint64_t i = 0; i < PROBES && p->failed[at & p->failed_mask]; i++) at = key + i;
  p->failed[at & p->failed_mask] = key;
}

/* Whether an unplaced item could still come below this one. */
static bool has_room_below(const fl_pack *p, uint32_t item) {
  const fl_pack_item *it = &p->items[item];
  for (uint32_t s = it->first; s <= it->last; s++) {
    const fl_pack_section *e = &p->sections[s];
    for (uint32_t i = 0; e->floor < it->low && i < e->count; i++) {
      const fl_pack_item *other = &p->items[e->items[i]];
      if (other != it && other->low + other->size <= it->low) return true;
    }
  }
  return false;
}

static bool can_choose(const fl_pack *p, const fl_pack_section *e) {
  for (uint32_t i = 0; i < e->count; i++)
    if (p->items[e->items[i]].low == e->floor && has_room_below(p, e->items[i])) return false;
  return true;
}

/* The section to choose for. There always is one: nothing can come below the lowest items of all. */
static uint32_t section_of(const fl_pack *p, uint32_t first, uint32_t last) {
  double least = 1e300;
  uint32_t best = first;
  for (uint32_t s = first; s <= last; s++) {
    const fl_pack_section *e = &p->sections[s];
    if (!e->count) continue;
    uint32_t ways = e->lowest + (e->slack > 0);
    double cost = ways == 1 ? 0 : ways / e->weight;
    if (cost < least && can_choose(p, e)) least = cost, best = s;
  }
  return best;
}

/* How early a candidate is tried; rounds differ in what they prefer, and later ones also by chance. */
static double rank_of(fl_pack *p, uint32_t item) {
  const fl_pack_item *it = &p->items[item];
  double length = it->last - it->first + 1, size = (double)it->size, rank = size;
  switch (p->round % ORDERS) {
  case 0: rank = length * size; break;
  case 1: rank = length; break;
  case 2: break;
  default: rank = length * length * size; break;
  }
  if (p->round < ORDERS) return rank;
  p->random = mix(p->random);
  return rank * (1 + (double)(p->random >> 40) / (1 << 25));
}

static bool are_alike(const fl_pack_item *a, const fl_pack_item *b) {
  return a->first == b->first && a->last == b->last && a->size == b->size;
}

/* Puts the candidates of the frame's section on the pile, the first to try on top; of items alike only one. */
static bool list_candidates(fl_pack *p, fl_pack_frame *f) {
  const fl_pack_section *e = &p->sections[f->section];
  for (uint32_t i = 0; i < e->count; i++) {
    uint32_t item = e->items[i];
    bool listed = p->items[item].low != e->floor;
    for (size_t c = f->next; c < f->end && !listed; c++) listed = are_alike(&p->items[p->pile[c]], &p->items[item]);
    if (listed) continue;
    if (!fl_pack_grow(p, (void **)&p->pile, &p->pile_room, f->end, sizeof *p->pile)) return false;
    p->pile[f->end++] = item;
  }
  p->pile_length = f->end;
  return true;
}

/* The best candidate not yet tried, moved to the front of them. */
static uint32_t next_candidate(fl_pack *p, fl_pack_frame *f) {
  size_t best = f->next;
  double most = -1;
  for (size_t c = f->next; c < f->end; c++) {
    double rank = rank_of(p, p->pile[c]);
    if (rank > most || (rank == most && p->pile[c] < p->pile[best])) most = rank, best = c;
  }
  uint32_t item = p->pile[best];
  p->pile[best] = p->pile[f->next], p->pile[f->next++] = item;
  return item;
}

static report open_frame(fl_pack *p, uint32_t first, uint32_t last, uint32_t section) {
  if (!fl_pack_grow(p, (void **)&p->frames, &p->frame_room, p->depth, sizeof *p->frames)) return STOPPED;
  size_t pile = p->pile_length;
  p->frames[p->depth++] = (fl_pack_frame){first, last, section, p->trail_length, pile, pile, pile, 0};
  return OPENED;
}

static report close_frame(fl_pack *p, report r) {
  p->pile_length = p->frames[--p->depth].start;
  return r;
}

/* Opens the next part of a range. */
static report advance_range(fl_pack *p, fl_pack_frame *f, report above) {
  if (above == REFUTED) return close_frame(p, REFUTED);
  while (f->first <= f->last && !p->sections[f->first].count) f->first++;
  if (f->first > f->last) return close_frame(p, SOLVED);
  uint32_t first = f->first, last = first;
  while (last < f->last && p->crossing[last]) last++;
  f->first = last + 1;
  return open_frame(p, first, last, 0);
}

/* Raises the items that may stand on the floor of a section to what they stand on instead; false when there is nothing. */
static bool leave_floor(fl_pack *p, const fl_pack_section *e) {
  const int64_t floor = e->floor;
  for (uint32_t c = 0; c < e->count; c++) {
    const fl_pack_item *it = &p->items[e->items[c]];
    if (it->low != floor) continue;
    int64_t least = INT64_MAX;
    for (uint32_t s = it->first; s <= it->last; s++)
      for (uint32_t i = 0; i < p->sections[s].count; i++) {
        const fl_pack_item *other = &p->items[p->sections[s].items[i]];
        if (other != it && other->low + other->size < least) least = other->low + other->size;
      }
    if (least == INT64_MAX) return false;
    fl_pack_raise(p, e->items[c], least);
  }
  return true;
}

/* Decides what to choose, unless the state is known to fail. */
static report begin_choice(fl_pack *p, fl_pack_frame *f) {
  f->key = key_of(p, f->first, f->last);
  if (has_failed(p, f->key)) return REFUTED;
  if (p->nodes == p->limit) return STOPPED;
  p->nodes++;
  f->section = section_of(p, f->first, f->last);
  return list_candidates(p, f) ? OPENED : STOPPED;
}

static report try_next(fl_pack *p, fl_pack_frame *f) {
  const fl_pack_section *e = &p->sections[f->section];
  for (; f->next < f->end; fl_pack_undo(p, f->mark)) {
    fl_pack_place(p, next_candidate(p, f));
    if (fl_pack_propagate(p)) return open_frame(p, f->first, f->last, FL_PACK_RANGE);
  }
  if (f->next++ == f->end && e->slack > 0) {
    if (leave_floor(p, e) && fl_pack_propagate(p)) return open_frame(p, f->first, f->last, FL_PACK_RANGE);
    fl_pack_undo(p, f->mark);
  }
  note_failed(p, f->key);
  return REFUTED;
}

static report advance_choice(fl_pack *p, fl_pack_frame *f, report above) {
  report r = above;
  if (above == OPENED) r = begin_choice(p, f);
  if (above == REFUTED) fl_pack_undo(p, f->mark);
  if (r == STOPPED || r == SOLVED || (above == OPENED && r == REFUTED)) return close_frame(p, r);
  r = try_next(p, f);
  return r == OPENED || r == STOPPED ? r : close_frame(p, r);
}

fl_pack_result fl_pack_search(fl_pack *p) {
  p->depth = p->pile_length = 0;
  report r = open_frame(p, 0, p->section_count - 1, FL_PACK_RANGE);
  while (p->depth && r != STOPPED && !p->out_of_memory) {
    fl_pack_frame *f = &p->frames[p->depth - 1];
    r = f->section == FL_PACK_RANGE ? advance_range(p, f, r) : advance_choice(p, f, r);
  }
  if (p->out_of_memory) return FL_PACK_MEMORY;
  return r == SOLVED ? FL_PACK_FITS : r == REFUTED ? FL_PACK_NONE : FL_PACK_ENDED;
}
