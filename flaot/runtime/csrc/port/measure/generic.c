/* Any machine: vectors of 16 bytes, in whatever registers it has. */
#define FL_WIDTH 16
#define FL_LOOPS fl_loops_generic
#include "port/measure/loops.h"
