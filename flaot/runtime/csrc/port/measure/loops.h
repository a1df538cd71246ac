/* The loops, FL_WIDTH bytes at a time. Included by generic.c, avx2.c and avx512.c, which define FL_WIDTH and FL_LOOPS.
   The empty assembly keeps the compiler from recognising memset and memcpy, and from dropping what nobody uses. */
#include "port/measure/measure.h"

typedef float vec __attribute__((vector_size(FL_WIDTH)));
typedef int32_t bits __attribute__((vector_size(FL_WIDTH), may_alias));

enum { CHAINS = 12, LANES = FL_WIDTH / 4, STEP = FL_MEASURE_BLOCK / FL_WIDTH };

#define UNROLL _Pragma("GCC unroll 32")
#define KEEP(x) __asm__ volatile("" ::"m"(x))
#define FENCE __asm__ volatile("" ::: "memory")

/* Twelve sums hide the latency of a multiply-add on every core so far, and fit into 16 registers with the two constants. */
static void peak(uint64_t rounds) {
  vec x[CHAINS], half = (vec){0} + 0.5f;
  UNROLL for (int i = 0; i < CHAINS; i++) x[i] = half * (float)i;
  for (; rounds; rounds--) {
    UNROLL for (int i = 0; i < CHAINS; i++) x[i] = x[i] * half + half;
  }
  vec sum = x[0];
  UNROLL for (int i = 1; i < CHAINS; i++) sum += x[i];
  KEEP(sum);
}

static void read(const void *p, uint64_t bytes, uint64_t rounds) {
  bits seen[8] = {{0}};
  for (; rounds; rounds--) {
    const bits *v = p;
    for (uint64_t n = bytes / FL_MEASURE_BLOCK; n; n--, v += STEP) {
      UNROLL for (int i = 0; i < STEP; i++) seen[i % 8] |= v[i];
    }
    FENCE;
  }
  bits all = seen[0];
  UNROLL for (int i = 1; i < 8; i++) all |= seen[i];
  KEEP(all);
}

static void write(void *p, uint64_t bytes, uint64_t rounds) {
  const bits zero = {0};
  for (; rounds; rounds--) {
    bits *v = p;
    for (uint64_t n = bytes / FL_MEASURE_BLOCK; n; n--, v += STEP) {
      UNROLL for (int i = 0; i < STEP; i++) v[i] = zero;
      FENCE;
    }
  }
}

static void copy(void *target, const void *source, uint64_t bytes, uint64_t rounds) {
  for (; rounds; rounds--) {
    bits *to = target;
    const bits *from = source;
    for (uint64_t n = bytes / FL_MEASURE_BLOCK; n; n--, to += STEP, from += STEP) {
      UNROLL for (int i = 0; i < STEP; i++) to[i] = from[i];
      FENCE;
    }
  }
}

const fl_loops FL_LOOPS = {2 * CHAINS * LANES, peak, read, write, copy};
