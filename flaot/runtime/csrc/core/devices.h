/* Steps that are not the host's. */
#ifndef FLAOT_CORE_DEVICES_H
#define FLAOT_CORE_DEVICES_H
#include "core/context.h"

/* A transfer step: t and p are its input and output, p null for the one on the chip. */
fl_status fl_move(const fl_context *c, const fl_plan_step *s, const fl_tensor *const *t, void *const *p);
fl_status fl_dma_step(const fl_context *c, const fl_plan_step *s, const fl_tensor *const *t);
fl_status fl_launch_step(const fl_context *c, const fl_plan_step *s, const fl_tensor *const *t);
fl_status fl_sync_chips(const fl_context *c);

/* Until what a step waits for on other devices is done: launches and DMA steps may still be under way when they return. */
fl_status fl_await_others(const fl_context *c, const fl_plan_step *s);

#endif
