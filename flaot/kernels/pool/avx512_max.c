/* maxpool of bytes over contiguous channels. */
#include "pool/vec_max.h"

fl_status fl_maxpool_avx512(const fl_call *c) { return bytes(c); }
