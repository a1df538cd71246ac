#include "npu_sim/csrc/shadow.h"
#include <stdlib.h>
#include <string.h>

/* A state: 1 + the step that wrote the bytes last (0: none) and its queue, then per queue 1 + a step that read them since and is not
   known to be complete before a later reader. State 0: nothing happened. A granule holds the number of the state of all its bytes, or
   that of a split, which has one per byte. An access turns every state it meets into the one that follows; equal ones stay equal. */
enum { STEP, QUEUE, READERS };
#define SPLIT 0x80000000u
#define NONE 0x7fffffffu

typedef struct walk {
  fl_shadow *shadow;
  fl_history *history;
  const fl_access *access;
  bool writes;
  uint32_t written; /* the state of bytes this access wrote; NONE before the first */
  fl_hazard found;
} walk;

static size_t words(const fl_history *h) { return READERS + h->queues; }

static uint32_t *state_of(const fl_history *h, uint32_t state) { return h->states + state * words(h); }

static bool grow(fl_history *h) {
  uint32_t room = h->room < 256 ? 256 : h->room * 2;
  if (h->count < h->room) return true;
  if (room >= NONE) return false;
  uint32_t *states = realloc(h->states, room * words(h) * sizeof *states);
  if (states) h->states = states;
  uint32_t *follows = realloc(h->follows, room * sizeof *follows);
  if (follows) h->follows = follows;
  uint32_t *stamp = realloc(h->stamp, room * sizeof *stamp);
  if (stamp) h->stamp = stamp;
  if (!states || !follows || !stamp) return false;
  h->room = room;
  return true;
}

/* A state that this access makes, which it does not change again. */
static uint32_t add(fl_history *h) {
  if (!grow(h)) return NONE;
  h->follows[h->count] = h->count, h->stamp[h->count] = h->access;
  return h->count++;
}

bool fl_history_open(fl_history *h, uint32_t queues) {
  h->queues = queues;
  if (!grow(h)) return false;
  fl_history_restart(h);
  return true;
}

void fl_history_restart(fl_history *h) {
  memset(h->states, 0, words(h) * sizeof *h->states);
  h->count = 1, h->access = 0, h->stamp[0] = 0, h->split_count = 0, h->split_free = NONE;
}

void fl_history_close(fl_history *h) { free(h->states), free(h->follows), free(h->stamp), free(h->split); }

bool fl_shadow_open(fl_shadow *s, uint64_t size) {
  s->size = size, s->low = size;
  s->granules = calloc((size_t)(size / FL_GRANULE + 1), sizeof *s->granules);
  return s->granules != NULL;
}

void fl_shadow_restart(fl_shadow *s) {
  uint64_t first = s->low / FL_GRANULE, last = (s->high + FL_GRANULE - 1) / FL_GRANULE;
  if (first < last) memset(s->granules + first, 0, (size_t)(last - first) * sizeof *s->granules);
  s->low = s->size, s->high = 0;
}

void fl_shadow_close(fl_shadow *s) { free(s->granules); }

static bool knows(const fl_access *a, uint32_t step, uint32_t queue) {
  return step <= a->known[queue] || (step == a->step + 1 && queue == a->queue);
}

static uint32_t hazard(walk *w, fl_hazard_kind kind, uint32_t step, uint32_t queue) {
  w->found.kind = kind, w->found.step = step - 1, w->found.queue = queue;
  return NONE;
}

static uint32_t after_read(walk *w, uint32_t old) {
  fl_history *h = w->history;
  const fl_access *a = w->access;
  const uint32_t *state = state_of(h, old);
  if (state[STEP] == 0) return hazard(w, FL_UNWRITTEN, 1, 0);
  if (!knows(a, state[STEP], state[QUEUE])) return hazard(w, FL_READS_WRITTEN, state[STEP], state[QUEUE]);
  uint32_t made = add(h);
  if (made == NONE) return hazard(w, FL_NO_ROOM, 1, 0);
  state = state_of(h, old);
  uint32_t *next = state_of(h, made);
  next[STEP] = state[STEP], next[QUEUE] = state[QUEUE];
  for (uint32_t q = 0; q < h->queues; q++) next[READERS + q] = state[READERS + q] > a->known[q] ? state[READERS + q] : 0;
  next[READERS + a->queue] = a->step + 1;
  return made;
}

static uint32_t after_write(walk *w, uint32_t old) {
  fl_history *h = w->history;
  const fl_access *a = w->access;
  const uint32_t *state = state_of(h, old);
  if (state[STEP] != 0 && !knows(a, state[STEP], state[QUEUE])) return hazard(w, FL_WRITES_WRITTEN, state[STEP], state[QUEUE]);
  for (uint32_t q = 0; q < h->queues; q++)
    if (!knows(a, state[READERS + q], q)) return hazard(w, FL_WRITES_READ, state[READERS + q], q);
  if (w->written != NONE) return w->written;
  w->written = add(h);
  if (w->written == NONE) return hazard(w, FL_NO_ROOM, 1, 0);
  uint32_t *next = state_of(h, w->written);
  memset(next, 0, words(h) * sizeof *next);
  next[STEP] = a->step + 1, next[QUEUE] = a->queue;
  return w->written;
}

/* The state that follows, NONE for a hazard. */
static uint32_t follow(walk *w, uint32_t old) {
  fl_history *h = w->history;
  if (h->stamp[old] == h->access) return h->follows[old];
  uint32_t next = w->writes ? after_write(w, old) : after_read(w, old);
  if (next != NONE) h->stamp[old] = h->access, h->follows[old] = next;
  return next;
}

static uint32_t split(fl_history *h, uint32_t state) {
  uint32_t index = h->split_free;
  if (index != NONE) {
    h->split_free = h->split[index][0];
  } else {
    uint32_t room = h->split_room < 64 ? 64 : h->split_room * 2;
    if (h->split_count == h->split_room) {
      void *more = room < NONE ? realloc(h->split, room * sizeof *h->split) : NULL;
      if (!more) return NONE;
      h->split = more, h->split_room = room;
    }
    index = h->split_count++;
  }
  for (unsigned i = 0; i < FL_GRANULE; i++) h->split[index][i] = state;
  return index;
}

/* One state for the granule again if its bytes agree. */
static void unite(fl_history *h, uint32_t *granule) {
  uint32_t index = *granule & NONE, *bytes = h->split[index], differ = 0;
  for (unsigned i = 1; i < FL_GRANULE; i++) differ |= bytes[i] ^ bytes[0];
  if (differ != 0) return;
  *granule = bytes[0], bytes[0] = h->split_free, h->split_free = index;
}

static uint32_t state_at(const walk *w, uint64_t byte) {
  uint32_t granule = w->shadow->granules[byte / FL_GRANULE];
  return granule & SPLIT ? w->history->split[granule & NONE][byte % FL_GRANULE] : granule;
}

/* The hazard's bytes: those from the first on that share its state. */
static bool stopped(walk *w, uint64_t low, uint64_t high) {
  uint32_t state = state_at(w, low);
  w->found.low = low, w->found.high = low + 1;
  if (high > w->shadow->size) high = w->shadow->size;
  while (w->found.high < high && state_at(w, w->found.high) == state) w->found.high++;
  return false;
}

static bool touch_split(walk *w, uint32_t *granule, uint64_t low, uint64_t end, uint64_t high) {
  fl_history *h = w->history;
  if (!(*granule & SPLIT)) {
    uint32_t index = split(h, *granule);
    if (index == NONE) return hazard(w, FL_NO_ROOM, 1, 0) != NONE;
    *granule = index | SPLIT;
  }
  for (uint64_t at = low; at < end; at++) {
    uint32_t *byte = &h->split[*granule & NONE][at % FL_GRANULE], next = follow(w, *byte);
    if (next == NONE) return stopped(w, at, high);
    *byte = next;
  }
  unite(h, granule);
  return true;
}

static bool touch(walk *w, uint64_t low, uint64_t high) {
  if (high == w->shadow->size) high = (high + FL_GRANULE - 1) / FL_GRANULE * FL_GRANULE;
  for (uint64_t at = low, end; at < high; at = end) {
    uint32_t *granule = &w->shadow->granules[at / FL_GRANULE];
    end = (at / FL_GRANULE + 1) * FL_GRANULE;
    if (end > high || at % FL_GRANULE != 0 || *granule & SPLIT) {
      if (end > high) end = high;
      if (!touch_split(w, granule, at, end, high)) return false;
    } else {
      uint32_t old = *granule, next = follow(w, old);
      if (next == NONE) return stopped(w, at, high);
      for (; end <= high && *granule == old; end += FL_GRANULE) *granule++ = next;
      end -= FL_GRANULE;
    }
  }
  return true;
}

static void widen(fl_shadow *s, uint64_t low, uint64_t high) {
  if (low >= high) return;
  if (low < s->low) s->low = low;
  if (high > s->high) s->high = high;
}

typedef struct axis { int64_t dim, stride; } axis; /* bytes, positive */

static bool touch_axes(walk *w, const axis *axes, unsigned count, uint64_t low, int64_t run) {
  if (count == 0) return touch(w, low, low + (uint64_t)run);
  for (int64_t i = 0; i < axes[count - 1].dim; i++)
    if (!touch_axes(w, axes, count - 1, low + (uint64_t)(i * axes[count - 1].stride), run)) return false;
  return true;
}

/* The axes that leave gaps, from the smallest stride up; the bytes of one run and the offset of the first. */
static unsigned runs_of(const fl_tensor *t, axis axes[FL_MAX_RANK], int64_t *run, int64_t *low) {
  unsigned count = 0, kept = 0;
  *run = (int64_t)fl_dtype_size(t->dtype), *low = 0;
  for (unsigned i = 0; i < t->rank; i++) {
    int64_t stride = t->strides[i] * (int64_t)fl_dtype_size(t->dtype);
    if (t->dims[i] == 1 || stride == 0) continue;
    if (stride < 0) *low += (t->dims[i] - 1) * stride, stride = -stride;
    unsigned k = count++;
    for (; k > 0 && axes[k - 1].stride > stride; k--) axes[k] = axes[k - 1];
    axes[k] = (axis){t->dims[i], stride};
  }
  for (unsigned k = 0; k < count; k++)
    if (kept == 0 && axes[k].stride <= *run) *run += (axes[k].dim - 1) * axes[k].stride;
    else axes[kept++] = axes[k];
  return kept;
}

static walk walk_of(fl_shadow *s, fl_history *h, const fl_access *a, bool writes) {
  h->access++;
  return (walk){s, h, a, writes, NONE, {FL_NO_HAZARD, 0, 0, 0, 0}};
}

fl_hazard fl_shadow_tensor(fl_shadow *s, fl_history *h, const fl_access *a, bool writes, const fl_tensor *t, uint64_t at) {
  axis axes[FL_MAX_RANK];
  int64_t run, low;
  walk w = walk_of(s, h, a, writes);
  if (s->given || fl_elements(t) == 0) return w.found;
  unsigned count = runs_of(t, axes, &run, &low);
  int64_t length = run;
  for (unsigned k = 0; k < count; k++) length += (axes[k].dim - 1) * axes[k].stride;
  uint64_t first = at - (uint64_t)-low;
  widen(s, first, first + (uint64_t)length);
  touch_axes(&w, axes, count, first, run);
  return w.found;
}

fl_hazard fl_shadow_bytes(fl_shadow *s, fl_history *h, const fl_access *a, bool writes, uint64_t low, uint64_t high) {
  walk w = walk_of(s, h, a, writes);
  if (s->given || low == high) return w.found;
  widen(s, low, high);
  touch(&w, low, high);
  return w.found;
}
