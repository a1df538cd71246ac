/* AVX2 and FMA. */
#define FL_WIDTH 32
#define FL_LOOPS fl_loops_avx2
#include "port/measure/loops.h"
