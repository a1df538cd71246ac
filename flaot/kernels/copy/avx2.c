/* The copy kernel for AVX2; see vec_copy.h. */
#include "copy/vec_copy.h"

fl_status fl_copy_avx2(const fl_call *c) { return vec_copy(c); }
