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

void fl_pack_close(fl_pack *p) {
  if (p->sections) free(p->sections[0].items);
  free(p->sections), free(p->items), free(p->where), free(p->crossing), free(p->queue), free(p->sorted), free(p->waiting);
  free(p->trail), free(p->frames), free(p->pile), free(p->failed), free(p);
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

/* Reads the problem into `p`; the number of places in the lists of all sections. */
static size_t read_items(fl_pack *p, const int64_t *sizes, const uint32_t *first, const uint32_t *last) {
  size_t slots = 0;
  for (uint32_t i = 0; i < p->item_count; i++) {
    p->items[i] = (fl_pack_item){.size = sizes[i], .first = first[i], .last = last[i], .slots = slots};
    slots += last[i] - first[i] + 1;
    if (last[i] >= p->section_count) p->section_count = last[i] + 1;
  }
  return slots;
}

fl_pack *fl_pack_open(uint32_t count, const int64_t *sizes, const uint32_t *first, const uint32_t *last, int64_t capacity, uint64_t nodes) {
  fl_pack *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->capacity = capacity, p->item_count = count, p->budget = nodes;
  p->share = count > ROUND_LEAST / 2 ? 2 * (uint64_t)count : ROUND_LEAST;
  p->items = calloc(count, sizeof *p->items);
  if (!p->items || !allocate(p, read_items(p, sizes, first, last), nodes)) {
    fl_pack_close(p);
    return NULL;
  }
  list_items(p);
  fl_pack_touch(p, 0, p->section_count - 1);
  p->refuted = !fl_pack_propagate(p);
  p->start = p->trail_length;
  return p;
}

fl_pack_result fl_pack_advance(fl_pack *p, int64_t *offsets, uint64_t *spent) {
  fl_pack_result result = p->out_of_memory ? FL_PACK_MEMORY : FL_PACK_NONE;
  if (!p->refuted) {
    p->limit = p->budget - p->nodes < p->share ? p->budget : p->nodes + p->share;
    result = fl_pack_search(p);
    p->share += p->share / 40, p->round++;
  }
  if (result == FL_PACK_ENDED) fl_pack_undo(p, p->start);
  for (uint32_t i = 0; result == FL_PACK_FITS && i < p->item_count; i++) offsets[i] = p->items[i].offset;
  *spent = p->nodes;
  return result;
}
