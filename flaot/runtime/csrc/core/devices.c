/* Chips of a context: adapters attached, tensors moved, kernels launched. */
#include "core/devices.h"

static void describe_units(const fl_plan *plan, uint32_t device, fl_chip *chip) {
  chip->unit_count = 0;
  for (size_t i = 0; i < plan->unit_count; i++) {
    const fl_plan_unit *u = &plan->units[i];
    if (u->device != device) continue;
    fl_unit unit = {(const char *)plan->strings + u->name, chip->channels + chip->unit_count, u->count};
    chip->units[chip->unit_count++] = unit;
  }
  chip->queues = chip->channels + chip->unit_count + 1;
}

static fl_chip describe(const fl_plan *plan, uint32_t device) {
  const fl_plan_device *d = &plan->devices[device];
  const fl_plan_chip *c = &plan->chips[device - 1];
  const fl_plan_machine *m = &plan->machines[device - 1];
  fl_chip chip = {(const char *)plan->strings + d->name, (const char *)plan->strings + d->device_type, d->alignment, c->max_rank,
                  c->max_batch, c->max_sequence, c->max_attention, c->dtypes, c->rounding, (c->flags & FL_CHIP_FLUSH) != 0,
                  c->layout_count, (const uint8_t (*)[4])c->layouts, c->head_count, c->heads,
                  m->on_chip, m->channels, 0, m->transfer == FL_TRANSFER_ZERO_COPY, 0, {{0}}};
  describe_units(plan, device, &chip);
  return chip;
}

static bool same(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

static fl_status take_memory(fl_device *d, const fl_plan *plan, uint32_t device) {
  const fl_plan_chip *chip = &plan->chips[device - 1];
  const fl_adapter *a = d->adapter;
  const uint8_t *constants = plan->constants + (size_t)chip->constants_offset;
  fl_status status = a->alloc(d->handle, FL_MEMORY_OFF_CHIP, chip->arena, d->chip.alignment, &d->arena);
  uint32_t alignment = d->chip.alignment;
  if (status == FL_OK) status = a->alloc(d->handle, FL_MEMORY_OFF_CHIP, chip->constants_size, alignment, &d->constants);
  if (status == FL_OK) status = a->alloc(d->handle, FL_MEMORY_ON_CHIP, plan->machines[device - 1].on_chip_peak, alignment, &d->on_chip);
  if (status == FL_OK && (d->arena % alignment | d->constants % alignment | d->on_chip % alignment) != 0) status = FL_TRAP_ALIGN;
  if (status != FL_OK || chip->constants_size == 0) return status;
  return a->copy(d->handle, NULL, FL_TO_DEVICE, d->constants, (void *)(uintptr_t)constants, chip->constants_size);
}

fl_status fl_attach(fl_context *c, uint32_t device, const fl_adapter *adapter) {
  if (!c || c->state != FL_CONTEXT_READY) return FL_CALL_STATE;
  if (!adapter) return FL_CALL_NULL;
  if (device == 0 || device > c->plan->chip_count) return FL_DEVICE_MISSING;
  fl_device *d = &c->chips[device - 1];
  if (d->adapter) return FL_CALL_STATE;
  if (adapter->abi != FL_ADAPTER_ABI) return FL_DEVICE_ABI;
  d->chip = describe(c->plan, device);
  if (adapter->device_type && !same(adapter->device_type, d->chip.device_type)) return FL_DEVICE_TYPE;
  d->handle = NULL;
  fl_status status = adapter->open(adapter->self, &d->chip, &d->handle);
  if (status == FL_OK || d->handle) d->adapter = adapter;
  return status == FL_OK ? take_memory(d, c->plan, device) : status;
}

void fl_detach(fl_context *c) {
  if (!c || c->state != FL_CONTEXT_READY) return;
  for (size_t i = 0; i < FL_MAX_CHIPS; i++) { /* not the plan's count: it may be gone already */
    fl_device *d = &c->chips[i];
    if (d->adapter) d->adapter->close(d->handle);
    d->adapter = NULL, d->handle = NULL;
  }
}

static uint64_t address_of(const fl_device *d, const fl_plan_chip *chip, const fl_tensor *t) {
  if (t->space == FL_CONSTANT) return d->constants + (t->offset - chip->constants_offset);
  return (t->space == FL_ON_CHIP ? d->on_chip : d->arena) + t->offset;
}

static fl_command command_of(const fl_plan *plan, const fl_plan_step *s) {
  uint32_t step = (uint32_t)(s - plan->steps);
  const fl_plan_command *c = &plan->commands[step];
  return (fl_command){step, c->queue, plan->waits + c->first_wait, c->wait_count, c->work};
}

fl_status fl_move(const fl_context *c, const fl_plan_step *s, const fl_tensor *const *t, void *const *p) {
  const fl_device *d = &c->chips[s->device - 1];
  if (!d->adapter) return FL_DEVICE_MISSING;
  bool into = t[1]->space == FL_DEVICE;
  uint64_t size = (uint64_t)fl_elements(t[0]) * fl_dtype_size(t[0]->dtype);
  uint64_t address = address_of(d, &c->plan->chips[s->device - 1], t[into]);
  fl_command command = command_of(c->plan, s);
  if (into) return d->adapter->copy(d->handle, &command, FL_TO_DEVICE, address, p[0], size);
  fl_status status = d->adapter->sync(d->handle);
  return status == FL_OK ? d->adapter->copy(d->handle, &command, FL_FROM_DEVICE, address, p[1], size) : status;
}

fl_status fl_dma_step(const fl_context *c, const fl_plan_step *s, const fl_tensor *const *t) {
  const fl_device *d = &c->chips[s->device - 1];
  const fl_plan_chip *chip = &c->plan->chips[s->device - 1];
  if (!d->adapter) return FL_DEVICE_MISSING;
  fl_dma dma = {command_of(c->plan, s), {t[0], t[1]}, {address_of(d, chip, t[0]), address_of(d, chip, t[1])}};
  return d->adapter->dma(d->handle, &dma);
}

static const fl_plan_launch *launch_of(const fl_plan *plan, uint32_t step) {
  size_t low = 0, high = plan->launch_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (plan->launches[middle].step < step) low = middle + 1;
    else high = middle;
  }
  return &plan->launches[low];
}

fl_status fl_launch_step(const fl_context *c, const fl_plan_step *s, const fl_tensor *const *t) {
  const fl_plan *plan = c->plan;
  const fl_device *d = &c->chips[s->device - 1];
  if (!d->adapter) return FL_DEVICE_MISSING;
  const fl_plan_launch *l = launch_of(plan, (uint32_t)(s - plan->steps));
  uint64_t address[FL_MAX_OPERANDS] = {0};
  for (uint32_t i = 0; i < (uint32_t)s->in_count + s->out_count; i++) address[i] = address_of(d, &plan->chips[s->device - 1], t[i]);
  fl_launch launch = {command_of(plan, s), s->kernel, (const char *)plan->strings + l->unit, l->batch, l->sequence, l->heads, t, address,
                      s->in_count, s->out_count, plan->params + s->params, s->params_size, (size_t)s->scratch_size};
  return d->adapter->launch(d->handle, &launch);
}

fl_status fl_await_others(const fl_context *c, const fl_plan_step *s) {
  const fl_command command = command_of(c->plan, s);
  fl_status status = FL_OK;
  for (uint32_t i = 0; i < command.wait_count && status == FL_OK; i++) {
    const fl_plan_step *before = &c->plan->steps[command.waits[i]];
    if (before->device == 0 || before->device == s->device || before->opcode == FL_OPCODE_TRANSFER) continue;
    const fl_device *d = &c->chips[before->device - 1];
    if (d->adapter) status = d->adapter->sync(d->handle);
  }
  return status;
}

fl_status fl_sync_chips(const fl_context *c) {
  fl_status status = FL_OK;
  for (size_t i = 0; i < c->plan->chip_count && status == FL_OK; i++)
    if (c->chips[i].adapter) status = c->chips[i].adapter->sync(c->chips[i].handle);
  return status;
}
