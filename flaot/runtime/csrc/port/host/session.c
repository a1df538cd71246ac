/* Plans and contexts on the heap, for Python. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>
#include "core/context.h"
#include "port/host/host.h"

extern const fl_adapter fl_npu_sim; /* targets/npu_sim */

fl_plan *fl_host_plan(const void *bytes, size_t size, const fl_machine *machine, uint32_t result[2]);
void fl_host_plan_free(fl_plan *plan);
fl_context *fl_host_context(const fl_plan *plan, void *arena, size_t size, fl_team *team, uint32_t result[1]);
void fl_host_context_free(fl_context *context);
fl_status fl_host_attach(fl_context *context, uint32_t device, const fl_adapter *adapter);
const char *fl_host_message(const fl_context *context);
fl_status fl_host_counters(const fl_context *context, uint32_t device, fl_counters *counters);
fl_status fl_host_peek(const fl_context *context, uint32_t device, bool on_chip, uint64_t offset, void *bytes, uint64_t size);
fl_status fl_host_run(fl_context *context, void *const *ports);
fl_status fl_host_begin(fl_context *context, void *const *ports);
fl_status fl_host_steps(fl_context *context, uint32_t first, uint32_t count, uint64_t *nanoseconds);
uint32_t fl_host_failed_step(const fl_context *context);

/* result: status and record. Returns NULL unless the status is FL_OK. */
fl_plan *fl_host_plan(const void *bytes, size_t size, const fl_machine *machine, uint32_t result[2]) {
  fl_plan *plan = malloc(sizeof *plan);
  if (!plan) return NULL;
  result[0] = (uint32_t)fl_plan_open(plan, bytes, size, machine);
  result[1] = plan->record;
  if (result[0] == FL_OK) return plan;
  free(plan);
  return NULL;
}

void fl_host_plan_free(fl_plan *plan) { free(plan); }

typedef struct host_context {
  fl_context context;
  fl_adapter simulator; /* computes with the context's threads */
} host_context;

fl_context *fl_host_context(const fl_plan *plan, void *arena, size_t size, fl_team *team, uint32_t result[1]) {
  host_context *made = malloc(sizeof *made);
  if (!made) return NULL;
  made->simulator = fl_npu_sim, made->simulator.self = team;
  result[0] = (uint32_t)fl_context_init(&made->context, plan, arena, size, team);
  if (result[0] == FL_OK) return &made->context;
  free(made);
  return NULL;
}

void fl_host_context_free(fl_context *context) {
  fl_detach(context);
  free(context);
}

/* The adapter for a chip; null stands for the simulator. */
fl_status fl_host_attach(fl_context *context, uint32_t device, const fl_adapter *adapter) {
  return fl_attach(context, device, adapter ? adapter : &((host_context *)context)->simulator);
}

/* What the chip of the failed step says, or "". */
const char *fl_host_message(const fl_context *c) {
  for (size_t i = 0; i < c->plan->chip_count; i++) {
    const fl_device *d = &c->chips[i];
    const char *text = d->adapter ? d->adapter->message(d->handle) : "";
    if (text[0]) return text;
  }
  return "";
}

static const fl_device *attached(const fl_context *c, uint32_t device) {
  const fl_device *d = device > 0 && device <= c->plan->chip_count ? &c->chips[device - 1] : NULL;
  return d && d->adapter ? d : NULL;
}

/* What a chip has done; zeros when its adapter does not count. */
fl_status fl_host_counters(const fl_context *c, uint32_t device, fl_counters *counters) {
  const fl_device *d = attached(c, device);
  *counters = (fl_counters){0};
  if (!d) return FL_DEVICE_MISSING;
  if (d->adapter->counters) d->adapter->counters(d->handle, counters);
  return FL_OK;
}

/* Bytes of a chip's memory for activations, or of its on-chip memory. */
fl_status fl_host_peek(const fl_context *c, uint32_t device, bool on_chip, uint64_t offset, void *bytes, uint64_t size) {
  const fl_device *d = attached(c, device);
  if (!d) return FL_DEVICE_MISSING;
  uint64_t held = on_chip ? c->plan->machines[device - 1].on_chip_peak : c->plan->chips[device - 1].arena;
  if (offset > held || size > held - offset) return FL_CALL_PORT;
  fl_status status = d->adapter->sync(d->handle);
  return status == FL_OK ? d->adapter->copy(d->handle, NULL, FL_FROM_DEVICE, (on_chip ? d->on_chip : d->arena) + offset, bytes, size) : status;
}

/* ports: inputs, then outputs, each of the size the plan states. */
static fl_status set_ports(fl_context *c, void *const *ports) {
  const fl_plan *plan = c->plan;
  fl_status status = FL_OK;
  for (uint32_t i = 0; i < plan->input_count && status == FL_OK; i++)
    status = fl_set_input(c, i, ports[i], (size_t)plan->inputs[i].size);
  for (uint32_t i = 0; i < plan->output_count && status == FL_OK; i++)
    status = fl_set_output(c, i, ports[plan->input_count + i], (size_t)plan->outputs[i].size);
  return status;
}

fl_status fl_host_run(fl_context *c, void *const *ports) {
  fl_status status = set_ports(c, ports);
  return status == FL_OK ? fl_run(c) : status;
}

fl_status fl_host_begin(fl_context *c, void *const *ports) {
  fl_status status = set_ports(c, ports);
  return status == FL_OK ? fl_begin(c) : status;
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Steps first to first + count - 1; their times are added to nanoseconds[step] unless it is NULL. */
fl_status fl_host_steps(fl_context *c, uint32_t first, uint32_t count, uint64_t *nanoseconds) {
  fl_status status = FL_OK;
  for (uint32_t i = first; i < first + count && status == FL_OK; i++) {
    uint64_t start = nanoseconds ? now() : 0;
    status = fl_run_step(c, i);
    if (nanoseconds) nanoseconds[i] += now() - start;
  }
  return status;
}

uint32_t fl_host_failed_step(const fl_context *c) { return c->step; }
