/* Mutates single kernel calls. What check accepts is run, every part of several, on memory of exactly the operands' extents that
   ends or starts at an inaccessible page; the other side is poisoned for AddressSanitizer.
     calls N SEED PLAN...   N changes of every step of each plan (from corpus.py)
   Prints counts. A sanitizer report, a stray write or one element written by two parts ends the process with the call described. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#include "core/kernel_table.h"
#include "core/verify.h"
#include "port/host/host.h"

void __sanitizer_set_death_callback(void (*callback)(void));
void __asan_poison_memory_region(void const volatile *p, size_t size);
void __asan_unpoison_memory_region(void const volatile *p, size_t size);

enum { SLOT = 1 << 21, PAGE = 4096, FENCE = 1 << 14, WORDS = 512, MOST_ELEMENTS = 60000, MILLISECONDS = 1500, PARTS = 3 };

typedef struct call {
  const fl_kernel *kernel;
  fl_tensor t[FL_MAX_OPERANDS];
  uint32_t n_in, n_out, params[WORDS], words;
  size_t scratch;
} call;

typedef struct block { uint8_t *slot, *start, *p; size_t size; int64_t low; } block; /* p: element (0, ..., 0) */

static struct { const char *plan; size_t step, seed, round; const char *fault; const call *call; uint32_t part, parts; int alias; } current;
static struct { size_t refused, ran, failed, too_large, slow; } counts;
static block blocks[FL_MAX_OPERANDS + 1];
static sigjmp_buf too_slow;

static uint64_t state;
static uint32_t draw(size_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 33) % (below ? below : 1));
}

static void describe(void) {
  const call *c = current.call;
  fprintf(stderr, "%s: %s step %zu, seed %zu, round %zu, part %u of %u%s\n", current.fault ? current.fault : "stopped", current.plan,
          current.step, current.seed, current.round, current.part, current.parts, current.alias >= 0 ? ", in place" : "");
  if (!c) return;
  fprintf(stderr, "%s, %u inputs, %u outputs, scratch %zu\n", c->kernel->name, c->n_in, c->n_out, c->scratch);
  for (uint32_t i = 0; i < c->n_in + c->n_out; i++) {
    fprintf(stderr, "  type %u dims", c->t[i].dtype);
    for (unsigned k = 0; k < c->t[i].rank; k++) fprintf(stderr, " %d", c->t[i].dims[k]);
    fprintf(stderr, " strides");
    for (unsigned k = 0; k < c->t[i].rank; k++) fprintf(stderr, " %d", c->t[i].strides[k]);
    fprintf(stderr, "\n");
  }
  fprintf(stderr, "  params");
  for (uint32_t i = 0; i < c->words && i < 48; i++) fprintf(stderr, " %d", (int32_t)c->params[i]);
  fprintf(stderr, "\n");
}

static void fault(const char *what) {
  current.fault = what;
  describe();
  _exit(5);
}

static void interrupt(int signal) {
  (void)signal;
  siglongjmp(too_slow, 1);
}

static void limit(int milliseconds) {
  struct itimerval t = {.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000}};
  setitimer(ITIMER_PROF, &t, NULL);
}

/* Memory */

static void reserve(block *b) {
  b->slot = mmap(NULL, SLOT + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (b->slot == MAP_FAILED || mprotect(b->slot + PAGE, SLOT, PROT_READ | PROT_WRITE) != 0) abort();
}

static void release(block *b) {
  size_t from = (size_t)(b->start - b->slot) - PAGE;
  size_t before = from < FENCE ? from : FENCE, room = (size_t)SLOT - from, after = room < b->size + FENCE ? room : b->size + FENCE;
  __asan_unpoison_memory_region(b->start - before, before + after);
}

/* size bytes against the page after the slot, or from the one before it on. */
static void place(block *b, size_t size, size_t alignment, int at_end) {
  size_t from = at_end ? (SLOT - size) / alignment * alignment : 0;
  size_t before = from < FENCE ? from : FENCE, after = SLOT - from - size < FENCE ? SLOT - from - size : FENCE;
  b->size = size, b->low = 0, b->p = b->start = b->slot + PAGE + from;
  if (before) __asan_poison_memory_region(b->start - before, before);
  if (after) __asan_poison_memory_region(b->start + size, after);
}

static size_t bytes_of(const fl_tensor *t, int64_t *low) {
  int64_t high;
  return fl_extent(t, low, &high) ? (size_t)(high - *low) : SIZE_MAX;
}

static void fill_elements(block *b, unsigned dtype, uint32_t kind) {
  static const uint64_t extremes[] = {0, 1, UINT64_MAX, 0x8000000080000000u, 0x7fffffff7fffffffu, 0x7f8000007f800000u, 0xff800000ff800000u,
                                      0x7fc000007fc00000u, 0x7f7fffff7f7fffffu, 0x8000000000000000u, 0x7ff0000000000000u, 0x8080808080808080u,
                                      0x4f0000004f000000u, 0xcf000001cf000001u, 0x0000000100000001u, 0x43e0000000000000u};
  size_t item = fl_dtype_size(dtype);
  for (size_t i = 0; i + item <= b->size; i += item) {
    uint64_t value = kind == 0 ? draw(4) : kind == 1 ? extremes[draw(16)] : kind == 2 ? 0 : ((uint64_t)draw(1u << 31) << 33) ^ draw(1u << 31);
    float f = (float)draw(64) / 8 - 4;
    double d = f;
    if (kind == 0 && draw(8) == 0) value = (uint64_t)-(int64_t)value;
    if (kind == 4) value = draw(2);
    if ((kind == 0 || kind == 4) && dtype == FL_F32) memcpy(&value, &f, 4);
    if ((kind == 0 || kind == 4) && dtype == FL_F64) memcpy(&value, &d, 8);
    memcpy(b->start + i, &value, item);
  }
}

/* One byte per byte of the block: 1 when it belongs to an element. */
static uint8_t *elements_map(const block *b, const fl_tensor *t) {
  uint8_t *map = calloc(b->size + 1, 1);
  int64_t n = fl_elements(t), item = (int64_t)fl_dtype_size(t->dtype);
  for (int64_t i = 0; i < n; i++) {
    int64_t rest = i, at = 0;
    for (unsigned k = t->rank; k-- > 0; rest /= t->dims[k]) at += rest % t->dims[k] * t->strides[k];
    memset(map + at * item - b->low, 1, (size_t)item);
  }
  return map;
}

/* Running */

static fl_call arguments(const call *c, const fl_tensor **t, void *const *p) {
  for (uint32_t i = 0; i < c->n_in + c->n_out; i++) t[i] = &c->t[i];
  return (fl_call){t, p, c->n_in, c->n_out, c->params, 4 * (size_t)c->words, NULL, c->scratch, 0, 1};
}

static fl_status check(const call *c) {
  const fl_tensor *t[FL_MAX_OPERANDS] = {0};
  void *p[FL_MAX_OPERANDS] = {0};
  fl_call f = arguments(c, t, p);
  call before = *c;
  fl_status status = c->kernel->check(&f);
  if (memcmp(&before, c, sizeof before) != 0) fault("check changed the call");
  return status;
}

static void least_scratch(call *c) {
  size_t low = 0, high = c->scratch;
  while (low < high) {
    c->scratch = (low + high) / 2;
    if (check(c) == FL_OK) high = c->scratch;
    else low = c->scratch + 1;
  }
  c->scratch = high;
}

static bool same_view(const fl_tensor *a, const fl_tensor *b) {
  if (a->dtype != b->dtype || !fl_same_dims(a, b)) return false;
  for (unsigned i = 0; i < a->rank; i++)
    if (a->dims[i] != 1 && a->strides[i] != b->strides[i]) return false;
  return true;
}

/* The input an output may share its memory with, or -1. */
static int twin(const call *c) {
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->n_out > 0 && same_view(&c->t[i], &c->t[c->n_in])) return (int)i;
  return -1;
}

static bool small(const call *c) {
  int64_t low;
  for (uint32_t i = 0; i < c->n_in + c->n_out; i++)
    if (fl_elements(&c->t[i]) > MOST_ELEMENTS || bytes_of(&c->t[i], &low) > SLOT) return false;
  return c->scratch <= SLOT;
}

static fl_status run_part(const call *c, fl_call *f, uint32_t part, uint32_t parts, int at_end) {
  block *scratch = &blocks[FL_MAX_OPERANDS];
  f->part = current.part = part, f->parts = current.parts = parts;
  place(scratch, c->scratch, 64, at_end);
  memset(scratch->start, 0xff, c->scratch);
  f->scratch = scratch->start;
  fl_status status = FL_OK;
  limit(MILLISECONDS);
  if (sigsetjmp(too_slow, 1) == 0) status = c->kernel->run(f);
  else counts.slow++;
  limit(0);
  release(scratch);
  return status;
}

/* Adds the bytes the part wrote to `written`; they must be elements no other part wrote. */
static void account(const call *c, uint8_t *const *map, uint8_t *const *before, uint8_t *const *mine) {
  for (uint32_t o = c->n_in; o < c->n_in + c->n_out; o++)
    for (size_t i = 0; i < blocks[o].size; i++) {
      if (blocks[o].start[i] == before[o][i]) continue;
      if (!map[o][i]) fault("wrote between elements");
      mine[o][i] = 1;
    }
}

/* Every part on two different fillings of the outputs, so that no write goes unnoticed. */
static void run_apart(const call *c, fl_call *f, uint32_t parts, int at_end) {
  uint8_t *map[FL_MAX_OPERANDS] = {0}, *before[FL_MAX_OPERANDS] = {0}, *mine[FL_MAX_OPERANDS] = {0}, *all[FL_MAX_OPERANDS] = {0};
  uint32_t count = c->n_in + c->n_out;
  for (uint32_t o = c->n_in; o < count; o++)
    map[o] = elements_map(&blocks[o], &c->t[o]), before[o] = malloc(blocks[o].size + 1), mine[o] = calloc(blocks[o].size + 1, 1), all[o] = calloc(blocks[o].size + 1, 1);
  for (uint32_t part = 0; part < parts; part++) {
    size_t slow = counts.slow;
    for (int fill = 0; fill < 2 && counts.slow == slow; fill++) {
      for (uint32_t o = c->n_in; o < count; o++) memset(blocks[o].start, fill ? 0x55 : 0xaa, blocks[o].size), memset(before[o], fill ? 0x55 : 0xaa, blocks[o].size);
      fl_status status = run_part(c, f, part, parts, at_end);
      status == FL_OK ? counts.ran++ : counts.failed++;
      account(c, map, before, mine);
    }
    for (uint32_t o = c->n_in; o < count; o++)
      for (size_t i = 0; i < blocks[o].size; i++) {
        if (mine[o][i] && all[o][i]) fault("two parts wrote one element");
        all[o][i] |= mine[o][i], mine[o][i] = 0;
      }
  }
  for (uint32_t o = c->n_in; o < count; o++) free(map[o]), free(before[o]), free(mine[o]), free(all[o]);
}

static void run(const call *c, bool in_place) {
  const fl_tensor *t[FL_MAX_OPERANDS] = {0};
  void *p[FL_MAX_OPERANDS] = {0};
  fl_call f = arguments(c, t, p);
  uint32_t count = c->n_in + c->n_out, kind = draw(5);
  int at_end = draw(3) != 0;
  current.alias = in_place ? twin(c) : -1;
  for (uint32_t i = 0; i < count; i++) {
    int64_t low;
    size_t size = bytes_of(&c->t[i], &low);
    place(&blocks[i], size, fl_dtype_size(c->t[i].dtype), at_end);
    blocks[i].p = blocks[i].start - low, blocks[i].low = low;
    fill_elements(&blocks[i], c->t[i].dtype, draw(3) ? kind : 0);
    p[i] = blocks[i].p;
  }
  static uint8_t *copies[FL_MAX_OPERANDS];
  for (uint32_t i = 0; i < c->n_in; i++) copies[i] = memcpy(malloc(blocks[i].size + 1), blocks[i].start, blocks[i].size);
  uint32_t parts = (uint32_t[]){1, 2, 3, 7}[draw(4)];
  if (current.alias < 0) run_apart(c, &f, parts, at_end);
  else {
    p[c->n_in] = p[current.alias];
    size_t slow = counts.slow;
    for (uint32_t part = 0; part < parts && slow == counts.slow; part++) run_part(c, &f, part, parts, at_end) == FL_OK ? counts.ran++ : counts.failed++;
  }
  for (uint32_t i = 0; i < c->n_in; i++) {
    if ((int)i != current.alias && memcmp(copies[i], blocks[i].start, blocks[i].size) != 0) fault("an input changed");
    free(copies[i]);
  }
  for (uint32_t i = 0; i < count; i++) release(&blocks[i]);
}

/* Changes */

static int32_t number(int32_t old) {
  static const int32_t some[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100, 255, 256, 1 << 15, 1 << 16, 1 << 30, INT32_MAX, -1, -2, INT32_MIN};
  switch (draw(4)) {
  case 0: return old < INT32_MAX ? old + 1 : old;
  case 1: return old > INT32_MIN ? old - 1 : old;
  case 2: return some[draw(10)];
  default: return some[draw(sizeof some / sizeof *some)];
  }
}

static int32_t size_number(int32_t old) {
  int32_t n = draw(16) ? number(old) & 0x7f : number(old);
  return n < 0 ? 0 : n;
}

static void make_dense(fl_tensor *t) {
  int64_t step = 1;
  for (unsigned i = t->rank; i-- > 0;) t->strides[i] = (int32_t)step, step = step * (t->dims[i] ? t->dims[i] : 1) & 0x7fffffff;
}

/* Storage order of the axes by the strides they had, so that a new size keeps a tensor channels last. */
static void repack(fl_tensor *t, const fl_tensor *old) {
  bool done[FL_MAX_RANK] = {0};
  int64_t step = 1;
  for (unsigned n = 0; n < t->rank; n++) {
    int best = -1;
    for (unsigned i = t->rank; i-- > 0;)
      if (!done[i] && (best < 0 || llabs(old->strides[i]) < llabs(old->strides[best]))) best = (int)i;
    done[best] = true;
    if (old->strides[best] != 0 || old->dims[best] == 1) t->strides[best] = (int32_t)step, step = step * (t->dims[best] ? t->dims[best] : 1) & 0x7fffffff;
  }
}

static fl_tensor *any(call *c) { return &c->t[draw(c->n_in + c->n_out)]; }

/* One number in every place it has: sizes of several operands and often a parameter. */
static void resize_all(call *c) {
  fl_tensor *t = any(c);
  if (t->rank == 0) return;
  int32_t old = t->dims[draw(t->rank)], new = size_number(old);
  for (uint32_t i = 0; i < c->n_in + c->n_out; i++) {
    fl_tensor before = c->t[i];
    for (unsigned k = 0; k < c->t[i].rank; k++)
      if (c->t[i].dims[k] == old) c->t[i].dims[k] = new;
    if (!fl_same_dims(&before, &c->t[i])) repack(&c->t[i], &before);
  }
  if (draw(2))
    for (uint32_t i = 0; i < c->words; i++)
      if (c->params[i] == (uint32_t)old && draw(2)) c->params[i] = (uint32_t)new;
}

static void resize_one(fl_tensor *t) {
  if (t->rank == 0) return;
  fl_tensor before = *t;
  unsigned k = draw(t->rank);
  t->dims[k] = size_number(t->dims[k]);
  if (draw(4)) repack(t, &before);
}

static void change_strides(fl_tensor *t) {
  if (t->rank == 0) return;
  unsigned a = draw(t->rank), b = draw(t->rank);
  switch (draw(6)) {
  case 0: t->strides[a] = 0; break;
  case 1: t->strides[a] = t->strides[a] == INT32_MIN ? 1 : -t->strides[a]; break;
  case 2: for (unsigned i = 0; i < t->rank; i++) t->strides[i] = (int32_t)((uint32_t)t->strides[i] * 2); break;
  case 3: t->strides[a] = number(t->strides[a]); break;
  case 4: { int32_t s = t->strides[a]; t->strides[a] = t->strides[b], t->strides[b] = s; break; }
  default: make_dense(t);
  }
}

static void change_rank(call *c) {
  bool grow = draw(2);
  fl_tensor *only = draw(2) ? any(c) : NULL;
  for (uint32_t i = 0; i < c->n_in + c->n_out; i++) {
    fl_tensor *t = only ? only : &c->t[i];
    if (grow && t->rank < FL_MAX_RANK) {
      unsigned at = draw(2) ? 0 : draw(t->rank + 1u);
      memmove(t->dims + at + 1, t->dims + at, (t->rank - at) * sizeof *t->dims), memmove(t->strides + at + 1, t->strides + at, (t->rank - at) * sizeof *t->strides);
      t->dims[at] = draw(4) ? 1 : 2, t->strides[at] = 0, t->rank++;
      if (draw(2)) make_dense(t);
    }
    if (!grow && t->rank > 0) {
      unsigned at = draw(2) ? 0 : draw(t->rank);
      t->rank--;
      memmove(t->dims + at, t->dims + at + 1, (t->rank - at) * sizeof *t->dims), memmove(t->strides + at, t->strides + at + 1, (t->rank - at) * sizeof *t->strides);
      t->dims[t->rank] = t->strides[t->rank] = 0;
    }
    if (only) return;
  }
}

static void change_types(call *c) {
  uint8_t types[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}, new = types[draw(sizeof types)], old = any(c)->dtype;
  if (draw(2)) any(c)->dtype = new;
  else
    for (uint32_t i = 0; i < c->n_in + c->n_out; i++)
      if (c->t[i].dtype == old) c->t[i].dtype = new;
}

static void change_count(call *c) {
  uint32_t count = c->n_in + c->n_out;
  switch (draw(5)) {
  case 0: if (c->n_out > 0) c->n_out--; break;
  case 1: if (count < FL_MAX_OPERANDS) c->t[count] = *any(c), c->n_out++; break;
  case 2: if (c->n_in > 0) memmove(c->t, c->t + 1, (count - 1) * sizeof *c->t), c->n_in--; break;
  case 3: if (c->n_in > 0) c->n_in--, c->n_out++; break;
  default:
    if (count < FL_MAX_OPERANDS) memmove(c->t + c->n_in + 1, c->t + c->n_in, c->n_out * sizeof *c->t), c->t[c->n_in] = c->t[draw(count)], c->n_in++;
  }
}

static void change_params(call *c) {
  static const uint32_t floats[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x80000000, 0x3f800000, 0x4f000000, 0xbf800000, 1};
  if (draw(12) == 0) {
    if (draw(2) && c->words > 0) c->words--;
    else if (c->words < WORDS) c->words++;
  }
  if (c->words == 0) return;
  uint32_t at = draw(c->words);
  switch (draw(5)) {
  case 0: c->params[at] = floats[draw(8)]; break;
  case 1: c->params[at] = c->params[draw(c->words)]; break;
  case 2: c->params[at] ^= 1u << draw(32); break;
  default: c->params[at] = (uint32_t)number((int32_t)c->params[at]);
  }
}

static void change(call *c) {
  if (c->n_in + c->n_out == 0) return;
  switch (draw(16)) {
  case 0: case 1: case 2: case 3: resize_all(c); break;
  case 4: case 5: resize_one(any(c)); break;
  case 6: case 7: change_strides(any(c)); break;
  case 8: for (uint32_t i = 0; i < c->n_in + c->n_out; i++) change_strides(&c->t[i]); break;
  case 9: change_rank(c); break;
  case 10: change_types(c); break;
  case 11: change_count(c); break;
  case 12: c->t[draw(c->n_in + c->n_out)] = *any(c); break;
  default: change_params(c);
  }
}

static bool valid(const call *c) {
  int64_t low;
  for (uint32_t i = 0; i < c->n_in + c->n_out; i++)
    if (bytes_of(&c->t[i], &low) == SIZE_MAX || (i >= c->n_in && !fl_elements_apart(&c->t[i]))) return false;
  return true;
}

static void try(call *c) {
  current.call = c, current.part = current.parts = 0, current.alias = -1;
  if (!valid(c)) return;
  c->scratch = draw(2) ? (size_t)1 << 22 : draw(3) * 64 + c->scratch;
  if (check(c) != FL_OK) { counts.refused++; return; }
  if (draw(4)) least_scratch(c);
  if (!small(c)) { counts.too_large++; return; }
  run(c, draw(3) == 0);
}

static call call_of(const fl_plan *plan, size_t index) {
  const fl_plan_step *s = &plan->steps[index];
  call c = {.kernel = fl_find_kernel(s->kernel), .n_in = s->in_count, .n_out = s->out_count, .scratch = (size_t)s->scratch_size};
  for (uint32_t i = 0; i < c.n_in + c.n_out; i++) c.t[i] = plan->tensors[plan->operands[s->operands + i]];
  c.words = s->params_size / 4 < WORDS ? s->params_size / 4 : WORDS;
  memcpy(c.params, plan->params + s->params, 4 * c.words);
  return c;
}

/* The calls of one plan, from memory aligned as a plan must be. */
static void of_plan(const char *path, size_t rounds, size_t seed) {
  FILE *file = fopen(path, "rb");
  fl_machine machine = {FL_ISA_AVX2 | FL_ISA_AVX512, false, NULL};
  static _Alignas(64) uint8_t bytes[1 << 22];
  fl_plan plan;
  if (!file) exit(2);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  if (fl_plan_open(&plan, bytes, size, &machine) != FL_OK) fprintf(stderr, "%s cannot be opened\n", path), exit(2);
  for (size_t step = 0; step < plan.step_count; step++) {
    call original = call_of(&plan, step);
    if (original.kernel->isa & ~fl_host_isa()) continue;
    current.plan = path, current.step = step, current.seed = seed;
    for (size_t i = 0; i < rounds; i++) {
      call c = original;
      state = seed * 1000003 + i + 1, current.round = i;
      for (uint32_t n = i == 0 ? 0 : 1 + draw(4); n > 0; n--) change(&c);
      try(&c);
    }
  }
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  __sanitizer_set_death_callback(describe);
  signal(SIGPROF, interrupt);
  for (int i = 0; i <= FL_MAX_OPERANDS; i++) reserve(&blocks[i]);
  for (int i = 3; i < argc; i++) of_plan(argv[i], strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10));
  printf("refused %zu ran %zu failed %zu too_large %zu slow %zu\n", counts.refused, counts.ran, counts.failed, counts.too_large, counts.slow);
  return 0;
}
