/* Placing items, taking them back, and what follows for the others.

   Items are placed where nothing unplaced can come below them, so every unplaced item of their sections goes above them. Two inferences
   run to a fixpoint: a section is full when its items, each not below its `low`, stacked one upon the other pass the capacity; and an
   item that would leave more empty below it than a section has to spare stands on another one there. */
#include "pack.h"

void fl_pack_touch(fl_pack *p, uint32_t first, uint32_t last) {
  for (uint32_t s = first; s <= last; s++) {
    if (p->waiting[s]) continue;
    uint32_t at = p->queue_head + p->queued++;
    p->waiting[s] = true, p->queue[at < p->section_count ? at : at - p->section_count] = s;
  }
}

static uint32_t next_waiting(fl_pack *p) {
  uint32_t s = p->queue[p->queue_head];
  p->queue_head = p->queue_head + 1 < p->section_count ? p->queue_head + 1 : 0;
  p->queued--, p->waiting[s] = false;
  return s;
}

static bool remember(fl_pack *p, uint32_t item, int64_t low) {
  if (!fl_pack_grow(p, (void **)&p->trail, &p->trail_room, p->trail_length, sizeof *p->trail)) return false;
  p->trail[p->trail_length++] = (fl_pack_change){item, low};
  fl_pack_touch(p, p->items[item].first, p->items[item].last);
  return true;
}

void fl_pack_raise(fl_pack *p, uint32_t item, int64_t low) {
  if (p->items[item].low < low && remember(p, item, p->items[item].low)) p->items[item].low = low;
}

/* Moves the item behind the unplaced ones in the list of each of its sections. Taken back in reverse order, that needs no moves. */
static void take_out(fl_pack *p, uint32_t item) {
  const fl_pack_item *it = &p->items[item];
  for (uint32_t s = it->first; s <= it->last; s++) {
    fl_pack_section *e = &p->sections[s];
    uint32_t *place = &p->where[it->slots + s - it->first], other = e->items[--e->count];
    e->items[*place] = other, p->where[p->items[other].slots + s - p->items[other].first] = *place;
    e->items[e->count] = item, *place = e->count;
    e->need -= it->size, p->crossing[s] -= s < it->last;
  }
}

static void put_back(fl_pack *p, uint32_t item) {
  const fl_pack_item *it = &p->items[item];
  for (uint32_t s = it->first; s <= it->last; s++)
    p->sections[s].count++, p->sections[s].need += it->size, p->crossing[s] += s < it->last;
}

void fl_pack_place(fl_pack *p, uint32_t item) {
  fl_pack_item *it = &p->items[item];
  if (!remember(p, item, -1)) return;
  it->offset = it->low;
  take_out(p, item);
  for (uint32_t s = it->first; s <= it->last; s++)
    for (uint32_t i = 0; i < p->sections[s].count; i++) fl_pack_raise(p, p->sections[s].items[i], it->low + it->size);
}

static void measure(fl_pack *p, fl_pack_section *e) {
  e->floor = INT64_MAX, e->lowest = 0;
  for (uint32_t i = 0; i < e->count; i++) {
    int64_t low = p->items[e->items[i]].low;
    if (low < e->floor) e->floor = low, e->lowest = 0;
    e->lowest += low == e->floor;
  }
  e->slack = e->count ? p->capacity - e->floor - e->need : INT64_MAX;
}

/* Measures what waits without drawing conclusions. */
static void settle(fl_pack *p) {
  while (p->queued) measure(p, &p->sections[next_waiting(p)]);
}

void fl_pack_undo(fl_pack *p, size_t mark) {
  while (p->trail_length > mark) {
    fl_pack_change c = p->trail[--p->trail_length];
    if (c.low < 0) put_back(p, c.item);
    else p->items[c.item].low = c.low;
    fl_pack_touch(p, p->items[c.item].first, p->items[c.item].last);
  }
  settle(p);
}

/* Sorts the items of a section that are too high above its floor to stand on nothing into `sorted`; how many there are. */
static uint32_t sort_high(fl_pack *p, const fl_pack_section *e) {
  uint32_t high = 0;
  for (uint32_t i = 0; i < e->count; i++) {
    int64_t low = p->items[e->items[i]].low;
    if (low - e->floor <= e->slack) continue;
    uint32_t at = high++;
    for (; at && p->items[p->sorted[at - 1]].low > low; at--) p->sorted[at] = p->sorted[at - 1];
    p->sorted[at] = e->items[i];
  }
  return high;
}

/* Whether the first items of `sorted` have room above one another. (For the others, `slack` says so.) */
static bool can_be_stacked(const fl_pack *p, uint32_t count) {
  int64_t end = 0;
  for (uint32_t i = 0; i < count; i++) {
    const fl_pack_item *it = &p->items[p->sorted[i]];
    end = (it->low > end ? it->low : end) + it->size;
  }
  return end <= p->capacity;
}

/* Raises the first items of `sorted` to what they stand on at least; false when there is nothing. */
static bool lift(fl_pack *p, const fl_pack_section *e, uint32_t count) {
  int64_t least = INT64_MAX, second = INT64_MAX;
  uint32_t lowest = 0;
  for (uint32_t i = 0; i < e->count; i++) {
    int64_t top = p->items[e->items[i]].low + p->items[e->items[i]].size;
    if (top < least) second = least, least = top, lowest = e->items[i];
    else if (top < second) second = top;
  }
  for (uint32_t i = count; i--;) {
    int64_t low = p->sorted[i] == lowest ? second : least;
    if (low == INT64_MAX) return false;
    fl_pack_raise(p, p->sorted[i], low);
  }
  return true;
}

static bool can_be_filled(fl_pack *p, fl_pack_section *e) {
  measure(p, e);
  if (e->slack < 0) return false;
  uint32_t high = sort_high(p, e);
  return !high || (can_be_stacked(p, high) && lift(p, e, high));
}

bool fl_pack_propagate(fl_pack *p) {
  while (p->queued) {
    uint32_t s = next_waiting(p);
    if (can_be_filled(p, &p->sections[s])) continue;
    p->sections[s].weight += 1;
    settle(p);
    return false;
  }
  return !p->out_of_memory;
}
