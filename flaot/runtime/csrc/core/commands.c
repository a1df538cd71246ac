/* How fast chips are, and when their steps may run: machines, units, commands and waits. */
#include "core/kernel_table.h"
#include "core/verify.h"

static bool is_rate(uint64_t rate) { return rate > 0 && rate <= FL_MAX_RATE; }

static fl_status check_machine(const fl_plan_machine *m) {
  if (m->reserved != 0) return FL_PLAN_RESERVED;
  if (m->clock_khz == 0 || m->channels == 0 || m->channels >= FL_MAX_QUEUES) return FL_PLAN_MACHINE;
  if (m->transfer > FL_TRANSFER_ZERO_COPY || m->dimensions == 0 || m->dimensions > FL_MAX_RANK) return FL_PLAN_MACHINE;
  if (m->on_chip > SIZE_MAX / 2 || m->on_chip_peak > m->on_chip) return FL_PLAN_MACHINE;
  return is_rate(m->on_chip_rate) && is_rate(m->off_chip_rate) && is_rate(m->link_rate) ? FL_OK : FL_PLAN_MACHINE;
}

static bool same_text(const fl_plan *plan, uint32_t a, uint32_t b) {
  const uint8_t *x = plan->strings + a, *y = plan->strings + b;
  while (*x && *x == *y) x++, y++;
  return *x == *y;
}

/* Whether a unit before it, on the same chip, has the same name. */
static bool named_before(const fl_plan *plan, size_t unit) {
  const fl_plan_unit *u = &plan->units[unit];
  for (size_t i = unit; i > 0 && plan->units[i - 1].device == u->device; i--)
    if (same_text(plan, u->name, plan->units[i - 1].name)) return true;
  return false;
}

/* Units are sorted by device; at most FL_MAX_UNITS of each, with names that differ. */
static fl_status check_units(fl_plan *plan) {
  uint32_t alike = 0;
  for (size_t i = 0; i < plan->unit_count; i++) {
    const fl_plan_unit *u = &plan->units[i];
    plan->record = (uint32_t)i;
    alike = i > 0 && u->device == plan->units[i - 1].device ? alike + 1 : 1;
    if (u->reserved != 0) return FL_PLAN_RESERVED;
    if (u->device == 0 || u->device > plan->chip_count || (i > 0 && u->device < plan->units[i - 1].device)) return FL_PLAN_UNIT;
    if (alike > FL_MAX_UNITS || u->count == 0 || !is_rate(u->rate)) return FL_PLAN_UNIT;
    if (!fl_is_string(plan, u->name)) return FL_PLAN_STRING;
    if (named_before(plan, i)) return FL_PLAN_UNIT;
  }
  return FL_OK;
}

fl_status fl_verify_machines(fl_plan *plan) {
  plan->record = 0;
  if (plan->machine_count != plan->chip_count) return FL_PLAN_MACHINE;
  for (size_t i = 0; i < plan->machine_count; i++) {
    plan->record = (uint32_t)i;
    fl_status status = check_machine(&plan->machines[i]);
    if (status != FL_OK) return status;
  }
  return check_units(plan);
}

/* The first unit of a chip, and how many it has. */
static const fl_plan_unit *units_of(const fl_plan *plan, uint32_t device, uint32_t *count) {
  size_t first = 0;
  while (first < plan->unit_count && plan->units[first].device < device) first++;
  for (*count = 0; first + *count < plan->unit_count && plan->units[first + *count].device == device;) ++*count;
  return plan->units + first;
}

/* A unit's queue takes the launches on that unit; a channel of the DMA engine computes nothing. */
static bool launch_fits(const fl_plan *plan, const fl_plan_step *s, const fl_plan_launch *l, uint32_t queue) {
  uint32_t channels = plan->machines[s->device - 1].channels, count;
  if (queue < channels) return fl_find_kernel(s->kernel)->traits & FL_KERNEL_MOVES;
  const fl_plan_unit *unit = units_of(plan, s->device, &count);
  return queue - channels < count && same_text(plan, unit[queue - channels].name, l->unit);
}

static bool queue_fits(const fl_plan *plan, const fl_plan_step *s, const fl_plan_launch *l, uint32_t queue) {
  if (s->device == 0) return queue == FL_HOST_QUEUE;
  uint32_t channels = plan->machines[s->device - 1].channels, units;
  units_of(plan, s->device, &units);
  if (s->opcode == FL_OPCODE_CALL) return launch_fits(plan, s, l, queue);
  return s->opcode == FL_OPCODE_DMA ? queue < channels : queue == channels + units;
}

/* Steps that compute have work; the host's queue is not the plan's to hold. */
static bool amounts_fit(const fl_plan_step *s, const fl_plan_command *c) {
  if (s->device == 0 && c->hold != 0) return false;
  return c->work <= (s->opcode == FL_OPCODE_CALL ? FL_MAX_WORK : 0);
}

/* Waits follow those of the command before. */
static bool waits_fit(const fl_plan *plan, size_t step, size_t first) {
  const fl_plan_command *c = &plan->commands[step];
  if (c->first_wait != first || c->wait_count > plan->wait_count - first) return false;
  for (uint32_t i = 0; i < c->wait_count; i++)
    if (plan->waits[first + i] >= step) return false;
  return true;
}

fl_status fl_verify_commands(fl_plan *plan) {
  size_t launch = 0, wait = 0;
  plan->record = 0;
  if (plan->command_count != (plan->chip_count != 0 ? plan->step_count : 0)) return FL_PLAN_COMMAND;
  for (size_t i = 0; i < plan->command_count; i++) {
    const fl_plan_step *s = &plan->steps[i];
    const fl_plan_command *c = &plan->commands[i];
    plan->record = (uint32_t)i;
    if (!queue_fits(plan, s, &plan->launches[launch], c->queue)) return FL_PLAN_QUEUE;
    if (!amounts_fit(s, c)) return FL_PLAN_COMMAND;
    if (!waits_fit(plan, i, wait)) return FL_PLAN_WAIT;
    launch += s->device != 0 && s->opcode == FL_OPCODE_CALL, wait += c->wait_count;
  }
  return wait == plan->wait_count ? FL_OK : FL_PLAN_WAIT;
}
