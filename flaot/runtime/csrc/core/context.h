#ifndef FLAOT_CORE_CONTEXT_H
#define FLAOT_CORE_CONTEXT_H
#include "flaot/flaot.h"
#include "gen/plan.h"

enum { FL_CONTEXT_READY = 0x59444552 };

bool fl_overlap(const void *a, size_t a_size, const void *b, size_t b_size);

#endif
