/* The map kernel for AVX512; see vec_map.h. */
#define FL_VL 16
#include "map/vec_map.h"

fl_status fl_map_avx512(const fl_call *c) { return map_run(c, vec_find); }
