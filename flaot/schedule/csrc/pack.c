/* The problem as the search holds it: sections with their items, the lists that grow, and rounds with more nodes each. */
#include "pack.h"
#include <stdlib.h>

enum { ROUND_LEAST = 500, FAILED_LEAST = 1 << 10, FAILED_MOST = 1 << 22 };

bool fl_pack_grow(fl_pack *p, void **list, size_t *room, size_t length, size_t element) {
  if (length < *room) return true;
  size_t wanted = *room ? *room * 2 : 1024;
  void *more = wanted < SIZE_MAX / 2 / element ? realloc(*list, wanted * element) : NULL;
  if (!more) return !(p->out_of_memory = true);
  *list = more, *room = wanted;
  return true;
}

static void release(fl_pack *p) {
  if (p->sections) free(p->sections[0].items);
  free(p->sections), free(p->items), free(p->where), free(p->crossing), free(p->queue), free(p->sorted), free(p->waiting);
  free(p->trail), free(p->frames), free(p->pile), free(p->failed);
}

static bool allocate(fl_pack *p, size_t slots, uint64_t nodes) {
  uint64_t states = FAILED_LEAST;
  while (states < FAILED_MOST && states < 2 * nodes) states *= 2;
  p->failed_mask = states - 1;
  p->sections = calloc(p->section_count, sizeof *p->sections);
  if (!p->sections) return false;
  p->sections[0].items = calloc(slots, sizeof *p->where);
  p->where = calloc(slots, sizeof *p->where);
  p->crossing = calloc(p->section_count, sizeof *p->crossing);
  p->queue = calloc(p->section_count, sizeof *p->queue);
  p->sorted = calloc(p->item_count, sizeof *p->sorted);
  p->waiting = calloc(p->section_count, sizeof *p->waiting);
  p->failed = calloc((size_t)states, sizeof *p->failed);
  return p->sections[0].items && p->where && p->crossing && p->queue && p->sorted && p->waiting && p->failed;
}

/* Fills the lists of the sections; `where` says at which place of each list an item is. */
static void list_items(fl_pack *p) {
  for (uint32_t i = 0; i < p->item_count; i++)
    for (uint32_t s = p->items[i].first; s <= p->items[i].last; s++) p->sections[s].count++;
  for (uint32_t s = 0; s + 1 < p->section_count; s++) p->sections[s + 1].items = p->sections[s].items + p->sections[s].count;
  for (uint32_t s = 0; s < p->section_count; s++) p->sections[s].count = 0, p->sections[s].weight = 1;
  for (uint32_t i = 0; i < p->item_count; i++) {
    const fl_pack_item *it = &p->items[i];
    for (uint32_t s = it->first; s <= it->last; s++) {
      fl_pack_section *e = &p->sections[s];
      p->where[it->slots + s - it->first] = e->count;
      e->items[e->count++] = i, e->need += it->size, p->crossing[s] += s < it->last;
    }
  }
}

/* Rounds begin anew with another order of candidates and slightly more nodes; states known to fail and weights stay. */
static fl_pack_result search_in_rounds(fl_pack *p, uint64_t nodes) {
  fl_pack_touch(p, 0, p->section_count - 1);
  if (!fl_pack_propagate(p)) return p->out_of_memory ? FL_PACK_MEMORY : FL_PACK_NONE;
  const size_t start = p->trail_length;
  fl_pack_result result = FL_PACK_ENDED;
  uint64_t share = p->item_count > ROUND_LEAST / 2 ? 2 * (uint64_t)p->item_count : ROUND_LEAST;
  for (; result == FL_PACK_ENDED && p->nodes < nodes; share += share / 40, p->round++) {
    p->limit = nodes - p->nodes < share ? nodes : p->nodes + share;
    result = fl_pack_search(p);
    if (result == FL_PACK_ENDED) fl_pack_undo(p, start);
  }
  return result;
}

fl_pack_result fl_pack_within(uint32_t count, const int64_t *sizes, const uint32_t *first, const uint32_t *last, int64_t capacity,
                              uint64_t nodes, int64_t *offsets, uint64_t *spent) {
  fl_pack pack = {.capacity = capacity, .item_count = count}, *p = &pack;
  size_t slots = 0;
  fl_pack_result result = FL_PACK_MEMORY;
  p->items = calloc(count, sizeof *p->items);
  for (uint32_t i = 0; p->items && i < count; i++) {
    p->items[i] = (fl_pack_item){.size = sizes[i], .first = first[i], .last = last[i], .slots = slots};
    slots += last[i] - first[i] + 1;
    if (last[i] >= p->section_count) p->section_count = last[i] + 1;
  }
  if (p->items && allocate(p, slots, nodes)) {
    list_items(p);
    result = search_in_rounds(p, nodes);
  }
  for (uint32_t i = 0; result == FL_PACK_FITS && i < count; i++) offsets[i] = p->items[i].offset;
  *spent = p->nodes;
  release(p);
  return result;
}
