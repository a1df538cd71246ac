/* The runtime on an operating system: heap, threads, clock. What Python calls. */
#ifndef FLAOT_PORT_HOST_H
#define FLAOT_PORT_HOST_H
#include "flaot/flaot.h"

uint32_t fl_host_isa(void); /* FL_ISA_* this CPU and operating system run */

fl_team *fl_host_team(uint32_t threads); /* NULL when threads cannot be had */
void fl_host_team_free(fl_team *team);

#endif
