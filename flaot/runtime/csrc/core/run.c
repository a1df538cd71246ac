/* The step loop. Nothing is checked here that fl_plan_open has checked. */
#include "core/context.h"
#include "core/devices.h"
#include "core/kernel_table.h"

/* An output must not touch the arena, the plan or any other port. */
static bool output_is_free(const fl_context *c, size_t output) {
  const fl_plan *plan = c->plan;
  void *data = c->ports[plan->input_count + output];
  size_t size = (size_t)plan->outputs[output].size;
  if (fl_overlap(data, size, c->arena, c->arena_size) || fl_overlap(data, size, plan->bytes, plan->size)) return false;
  for (size_t i = 0; i < plan->input_count; i++)
    if (fl_overlap(data, size, c->ports[i], (size_t)plan->inputs[i].size)) return false;
  for (size_t i = 0; i < output; i++)
    if (fl_overlap(data, size, c->ports[plan->input_count + i], (size_t)plan->outputs[i].size)) return false;
  return true;
}

static bool input_is_free(const fl_context *c, size_t input) {
  return !fl_overlap(c->ports[input], (size_t)c->plan->inputs[input].size, c->arena, c->arena_size);
}

fl_status fl_begin(fl_context *c) {
  if (!c || c->state != FL_CONTEXT_READY) return FL_CALL_STATE;
  const fl_plan *plan = c->plan;
  c->step = 0;
  for (size_t i = 0; i < plan->input_count + plan->output_count; i++)
    if (!c->ports[i]) return FL_CALL_PORT;
  for (size_t i = 0; i < plan->input_count; i++)
    if (!input_is_free(c, i)) return FL_CALL_OVERLAP;
  for (size_t i = 0; i < plan->output_count; i++)
    if (!output_is_free(c, i)) return FL_CALL_OVERLAP;
  return FL_OK;
}

static void *locate(const fl_context *c, const fl_tensor *t) {
  switch (t->space) {
  case FL_CONSTANT: return (uint8_t *)(uintptr_t)c->plan->constants + (size_t)t->offset;
  case FL_ARENA: return c->arena + (size_t)t->offset;
  case FL_INPUT: return (uint8_t *)c->ports[t->port] + (size_t)t->offset;
  case FL_DEVICE: case FL_ON_CHIP: return NULL;
  default: return (uint8_t *)c->ports[c->plan->input_count + t->port] + (size_t)t->offset;
  }
}

typedef struct fl_job {
  const fl_call *call;
  fl_kernel_fn run;
  uint8_t *scratch; /* of the second thread */
  size_t stride;
  fl_status status[FL_MAX_THREADS];
} fl_job;

static void run_part(void *arg, uint32_t part) {
  fl_job *job = arg;
  fl_call c = *job->call;
  c.part = part;
  if (part > 0 && c.scratch_size != 0) c.scratch = job->scratch + (part - 1) * job->stride;
  job->status[part] = job->run(&c);
}

static fl_status run_parts(const fl_context *c, const fl_call *call, fl_kernel_fn run) {
  size_t stride = (size_t)c->plan->entry->scratch, further = c->team.threads - 1;
  size_t table = (c->plan->input_count + c->plan->output_count) * sizeof(void *);
  fl_job job = {call, run, c->arena + c->arena_size - table - further * stride, stride, {FL_OK}};
  c->team.parallel(c->team.self, run_part, &job, call->parts);
  fl_status status = FL_OK;
  for (uint32_t i = 0; i < call->parts && status == FL_OK; i++) status = job.status[i];
  return status;
}

static fl_status run_step(const fl_context *c, const fl_plan_step *s) {
  const fl_plan *plan = c->plan;
  const fl_tensor *t[FL_MAX_OPERANDS] = {0};
  void *p[FL_MAX_OPERANDS] = {0};
  uint32_t count = (uint32_t)s->in_count + s->out_count;
  for (uint32_t i = 0; i < count; i++) {
    t[i] = &plan->tensors[plan->operands[s->operands + i]];
    p[i] = locate(c, t[i]);
  }
  fl_status status = plan->chip_count != 0 ? fl_await_others(c, s) : FL_OK;
  if (status != FL_OK) return status;
  if (s->opcode == FL_OPCODE_TRANSFER) return fl_move(c, s, t, p);
  if (s->opcode == FL_OPCODE_DMA) return fl_dma_step(c, s, t);
  if (s->device != 0) return fl_launch_step(c, s, t);
  fl_call call = {t, p, s->in_count, s->out_count, plan->params + s->params, s->params_size, NULL, (size_t)s->scratch_size, 0, 1};
  if (s->scratch_size != 0) call.scratch = c->arena + (size_t)s->scratch_offset;
  const fl_kernel *k = fl_find_kernel(s->kernel);
  if (c->team.threads == 1 || !(s->flags & FL_STEP_PARALLEL)) return k->run(&call);
  call.parts = c->team.threads;
  return run_parts(c, &call, k->run);
}

fl_status fl_run_step(fl_context *c, uint32_t step) {
  if (!c || c->state != FL_CONTEXT_READY || step >= c->plan->step_count) return FL_CALL_STATE;
  c->step = step;
  return run_step(c, &c->plan->steps[step]);
}

fl_status fl_run(fl_context *c) {
  fl_status status = fl_begin(c);
  if (status != FL_OK) return status;
  for (; c->step < c->plan->step_count; c->step++) {
    status = run_step(c, &c->plan->steps[c->step]);
    if (status != FL_OK) return status;
  }
  return fl_sync_chips(c);
}
