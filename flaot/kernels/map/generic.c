/* Portable map kernel; see map.h. */
#include "map/check.h"
#include "map/portable.h"

fl_map_fn fl_map_portable(const fl_map_instr *in) { return map_find(in); }

fl_status fl_map_check(const fl_call *c) { return map_check(c); }

fl_status fl_map_generic(const fl_call *c) { return map_run(c, map_find); }
