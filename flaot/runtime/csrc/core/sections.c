#include "core/verify.h"

static size_t record_size(uint32_t id) { /* 0: a section this reader does not use */
  switch (id) {
  case FL_SECTION_DEVICES: return sizeof(fl_plan_device);
  case FL_SECTION_ENTRIES: return sizeof(fl_plan_entry);
  case FL_SECTION_TENSORS: return sizeof(fl_tensor);
  case FL_SECTION_STEPS: return sizeof(fl_plan_step);
  case FL_SECTION_OPERANDS: return sizeof(uint32_t);
  case FL_SECTION_CHIPS: return sizeof(fl_plan_chip);
  case FL_SECTION_LAUNCHES: return sizeof(fl_plan_launch);
  case FL_SECTION_MACHINES: return sizeof(fl_plan_machine);
  case FL_SECTION_UNITS: return sizeof(fl_plan_unit);
  case FL_SECTION_COMMANDS: return sizeof(fl_plan_command);
  case FL_SECTION_WAITS: return sizeof(uint32_t);
  case FL_SECTION_INPUTS: case FL_SECTION_OUTPUTS: return sizeof(fl_plan_port);
  case FL_SECTION_PARAMS: case FL_SECTION_STRINGS: case FL_SECTION_CONSTANTS: return 1;
  default: return 0;
  }
}

static bool all_zero(const uint8_t *p, size_t n) {
  uint8_t any = 0;
  for (size_t i = 0; i < n; i++) any |= p[i];
  return any == 0;
}

/* One entry of the table against the end of the section before it. */
static fl_status check_section(const fl_plan *plan, const fl_plan_section *s, uint64_t end, size_t alignment) {
  size_t record = record_size(s->id);
  if (record == 0 && !(s->flags & FL_SECTION_OPTIONAL)) return FL_PLAN_SECTION;
  if (s->flags & ~(uint32_t)FL_SECTION_OPTIONAL) return FL_PLAN_RESERVED;
  if (s->offset < end || s->offset > plan->size || s->size > plan->size - s->offset) return FL_PLAN_SECTION;
  if (s->offset % alignment != 0 || s->offset - end >= alignment) return FL_PLAN_SECTION;
  if (record != 0 && s->size % record != 0) return FL_PLAN_SECTION;
  return all_zero(plan->bytes + end, (size_t)(s->offset - end)) ? FL_OK : FL_PLAN_RESERVED;
}

static const void *find(const fl_plan *plan, uint32_t id, size_t *count) {
  const fl_plan_header *h = (const void *)plan->bytes;
  const fl_plan_section *table = (const void *)(h + 1);
  *count = 0;
  for (uint32_t i = 0; i < h->section_count; i++) {
    if (table[i].id != id) continue;
    *count = (size_t)table[i].size / record_size(id);
    return plan->bytes + table[i].offset;
  }
  return plan->bytes;
}

static void bind(fl_plan *plan) {
  plan->devices = find(plan, FL_SECTION_DEVICES, &plan->device_count);
  plan->entry = find(plan, FL_SECTION_ENTRIES, &plan->entry_count);
  plan->tensors = find(plan, FL_SECTION_TENSORS, &plan->tensor_count);
  plan->steps = find(plan, FL_SECTION_STEPS, &plan->step_count);
  plan->operands = find(plan, FL_SECTION_OPERANDS, &plan->operand_count);
  plan->params = find(plan, FL_SECTION_PARAMS, &plan->params_size);
  plan->inputs = find(plan, FL_SECTION_INPUTS, &plan->input_count);
  plan->outputs = find(plan, FL_SECTION_OUTPUTS, &plan->output_count);
  plan->chips = find(plan, FL_SECTION_CHIPS, &plan->chip_count);
  plan->launches = find(plan, FL_SECTION_LAUNCHES, &plan->launch_count);
  plan->machines = find(plan, FL_SECTION_MACHINES, &plan->machine_count);
  plan->units = find(plan, FL_SECTION_UNITS, &plan->unit_count);
  plan->commands = find(plan, FL_SECTION_COMMANDS, &plan->command_count);
  plan->waits = find(plan, FL_SECTION_WAITS, &plan->wait_count);
  plan->strings = find(plan, FL_SECTION_STRINGS, &plan->strings_size);
  plan->constants = find(plan, FL_SECTION_CONSTANTS, &plan->constants_size);
}

fl_status fl_verify_sections(fl_plan *plan) {
  const fl_plan_header *h = (const void *)plan->bytes;
  const fl_plan_section *table = (const void *)(h + 1);
  if (h->section_count > (plan->size - sizeof *h) / sizeof *table) return FL_PLAN_SECTION;
  uint64_t end = sizeof *h + (uint64_t)h->section_count * sizeof *table;
  plan->alignment = h->alignment;
  for (uint32_t i = 0; i < h->section_count; i++) {
    plan->record = i;
    if (i > 0 && table[i].id <= table[i - 1].id) return FL_PLAN_SECTION;
    fl_status status = check_section(plan, &table[i], end, table[i].id == FL_SECTION_CONSTANTS ? plan->alignment : 8);
    if (status != FL_OK) return status;
    end = table[i].offset + table[i].size;
  }
  bind(plan);
  return end == plan->size ? FL_OK : FL_PLAN_SIZE;
}
