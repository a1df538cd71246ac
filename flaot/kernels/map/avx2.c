/* The map kernel for AVX2; see vec_map.h. */
#define FL_VL 8
#include "map/vec_map.h"

fl_status fl_map_avx2(const fl_call *c) { return map_run(c, vec_find); }
