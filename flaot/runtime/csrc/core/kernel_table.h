/* Look-up in the generated kernel table. */
#ifndef FLAOT_CORE_KERNEL_TABLE_H
#define FLAOT_CORE_KERNEL_TABLE_H
#include "flaot/kernel.h"

const fl_kernel *fl_find_kernel(uint32_t id); /* NULL when this build has no such kernel */

#endif
