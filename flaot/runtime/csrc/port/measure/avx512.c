/* AVX-512. */
#define FL_WIDTH 64
#define FL_LOOPS fl_loops_avx512
#include "port/measure/loops.h"
