/* Runs a loop on some threads in windows of about a millisecond and keeps the best one: other programs only ever slow a window down. */
#define _GNU_SOURCE
#include "port/measure/measure.h"
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "port/host/host.h"

static const double WINDOW = 1e-3; /* seconds */
enum { PAGE = 2 << 20, LINE = 64 };

typedef struct trial {
  const fl_loops *loops;
  uint32_t what;
  bool pinned;
  uint64_t bytes, rounds;
  void *memory[FL_MAX_THREADS], *at[FL_MAX_THREADS]; /* at: where the next chase goes on */
#ifdef __linux__
  cpu_set_t allowed;
#endif
} trial;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Dependent additions take one cycle each; a register as operand, since some cores fold constants while renaming. */
static void additions(uint64_t rounds) {
  uint64_t x = 0, one = 1;
  __asm__ volatile("" : "+r"(one));
#define ADD x += one; __asm__ volatile("" : "+r"(x));
  for (; rounds; rounds--) { ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD }
#undef ADD
}

/* A single cycle through all lines of the memory in random order (Sattolo), each line pointing to the next. */
static void link_lines(void *memory, uint64_t bytes) {
  uint64_t n = bytes / LINE, state = 88172645463325252u;
  char *base = memory;
  for (uint64_t i = 0; i < n; i++) *(void **)(void *)(base + i * LINE) = base + i * LINE;
  for (uint64_t i = n - 1; i > 0; i--) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    void **a = (void **)(void *)(base + i * LINE), **b = (void **)(void *)(base + state % i * LINE), *held = *a;
    *a = *b, *b = held;
  }
}

/* Goes on from p; where it stopped. */
static void *chase(void *from, uint64_t rounds) {
  void **p = from;
  for (; rounds; rounds--) {
    p = *p, p = *p, p = *p, p = *p, p = *p, p = *p, p = *p, p = *p;
    p = *p, p = *p, p = *p, p = *p, p = *p, p = *p, p = *p, p = *p;
  }
  return p;
}

/* What a round counts. */
static double amount(const trial *t) {
  if (t->what == FL_MEASURE_PEAK) return (double)t->loops->flops;
  return t->what == FL_MEASURE_CLOCK || t->what == FL_MEASURE_CHASE ? 16.0 : (double)t->bytes;
}

/* Puts a thread on the part-th CPU allowed: left alone, two of them may share one for the whole time when others are busy. */
static void pin(trial *t, uint32_t part) {
#ifdef __linux__
  cpu_set_t one;
  CPU_ZERO(&one);
  uint32_t seen = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (CPU_ISSET(cpu, &t->allowed) && seen++ == part) CPU_SET(cpu, &one);
  }
  (void)sched_setaffinity(0, sizeof one, &one);
#endif
  (void)t, (void)part;
}

static void prepare(void *self, uint32_t part) {
  trial *t = self;
  if (t->pinned) pin(t, part);
  t->at[part] = t->memory[part];
  if (t->what == FL_MEASURE_CHASE) link_lines(t->memory[part], t->bytes);
  else if (t->memory[part]) memset(t->memory[part], 0, t->bytes);
}

static void window(void *self, uint32_t part) {
  trial *t = self;
  char *memory = t->memory[part];
  switch (t->what) {
    case FL_MEASURE_CLOCK: additions(t->rounds); break;
    case FL_MEASURE_PEAK: t->loops->peak(t->rounds); break;
    case FL_MEASURE_READ: t->loops->read(memory, t->bytes, t->rounds); break;
    case FL_MEASURE_WRITE: t->loops->write(memory, t->bytes, t->rounds); break;
    case FL_MEASURE_COPY: t->loops->copy(memory, memory + t->bytes / 2, t->bytes / 2, t->rounds); break;
    default: t->at[part] = chase(t->at[part], t->rounds); break;
  }
}

/* Rounds double until even the fastest window is long enough, however often others were interrupted; the rate of the fastest one once
   time is up, out of sixteen at least: on a busy machine the first few may all have been interrupted. */
static double best_rate(trial *t, const fl_team *team, uint32_t threads, double end) {
  double fastest = INFINITY;
  for (int windows = 1;; windows++) {
    double begin = now();
    team->parallel(team->self, window, t, threads);
    double over = now(), took = over - begin;
    if (took < fastest) fastest = took;
    if (fastest < WINDOW / 2) t->rounds *= 2, fastest = INFINITY, windows = 0;
    else if (windows >= 16 && over > end) return amount(t) * (double)t->rounds * (double)threads / fastest;
  }
}

static const fl_loops *loops_for(uint32_t isa) {
#ifdef FLAOT_AVX512
  if (isa & FL_ISA_AVX512) return &fl_loops_avx512;
  if (isa & FL_ISA_AVX2) return &fl_loops_avx2;
#endif
  (void)isa;
  return &fl_loops_generic;
}

/* Whole huge pages: few of them keep the TLB out of what is measured. */
static void *pages(uint64_t bytes) {
  void *p = NULL;
  uint64_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
  if (posix_memalign(&p, PAGE, whole)) return NULL;
#ifdef MADV_HUGEPAGE
  (void)madvise(p, whole, MADV_HUGEPAGE);
#endif
  return p;
}

/* Runs a prepared trial on a team whose threads are each on a CPU of their own. */
static double run(trial *t, const fl_team *team, uint32_t threads, double end) {
  t->pinned = threads > 1;
#ifdef __linux__
  t->pinned = t->pinned && sched_getaffinity(0, sizeof t->allowed, &t->allowed) == 0 && CPU_COUNT(&t->allowed) >= (int)threads;
#endif
  team->parallel(team->self, prepare, t, threads);
  double rate = best_rate(t, team, threads, end);
#ifdef __linux__
  if (t->pinned) (void)sched_setaffinity(0, sizeof t->allowed, &t->allowed);
#endif
  return rate;
}

double fl_host_measure(uint32_t what, uint32_t isa, uint32_t threads, uint64_t bytes, double seconds) {
  const uint64_t unit = 2 * FL_MEASURE_BLOCK;
  if (what > FL_MEASURE_CHASE || !(seconds >= 0 && seconds < 3600) || (what >= FL_MEASURE_READ && bytes < unit)) return -3;
  double end = now() + seconds, rate = -1;
  fl_team *team = fl_host_team(threads);
  if (!team) return -2;
  trial t = {.loops = loops_for(isa & fl_host_isa()), .what = what, .bytes = what >= FL_MEASURE_READ ? bytes / unit * unit : 0, .rounds = 1};
  bool enough = true;
  for (uint32_t i = 0; t.bytes && enough && i < threads; i++) enough = (t.memory[i] = pages(t.bytes)) != NULL;
  if (enough) rate = run(&t, team, threads, end);
  for (uint32_t i = 0; i < threads; i++) free(t.memory[i]);
  fl_host_team_free(team);
  return rate;
}
