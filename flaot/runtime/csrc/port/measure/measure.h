/* What a CPU does at best: operations, bytes and nanoseconds, measured by loops that do nothing else. */
#ifndef FLAOT_PORT_MEASURE_H
#define FLAOT_PORT_MEASURE_H
#include <stdint.h>

enum { FL_MEASURE_CLOCK = 0, FL_MEASURE_PEAK = 1, FL_MEASURE_READ = 2, FL_MEASURE_WRITE = 3, FL_MEASURE_COPY = 4, FL_MEASURE_CHASE = 5 };
enum { FL_MEASURE_BLOCK = 512 }; /* bytes the loops over memory move at once; working sets are multiples of twice this */

/* The loops for one instruction set. Each repeats its work 'rounds' times; bytes is the working set. */
typedef struct fl_loops {
  uint64_t flops; /* of one round of peak */
  void (*peak)(uint64_t rounds);
  void (*read)(const void *p, uint64_t bytes, uint64_t rounds);
  void (*write)(void *p, uint64_t bytes, uint64_t rounds);
  void (*copy)(void *target, const void *source, uint64_t bytes, uint64_t rounds);
} fl_loops;

extern const fl_loops fl_loops_generic, fl_loops_avx2, fl_loops_avx512;

/* The best rate seen in 'seconds', preparation included: float32 operations per second (PEAK), bytes per second, read and written ones counted (READ, WRITE,
   COPY), dependent additions per second (CLOCK), dependent loads per second at random places (CHASE), of all threads together.
   isa: FL_ISA_* bits to use; bytes: working set of each thread. Negative: -1 no memory, -2 no such threads, -3 not a measurement. */
double fl_host_measure(uint32_t what, uint32_t isa, uint32_t threads, uint64_t bytes, double seconds);

#endif
