/* Chips: their records, and what steps may do with their memory. */
#include "core/kernel_table.h"
#include "core/launch.h"
#include "core/verify.h"
#include "gen/params.h"

static bool is_permutation(const uint8_t *axes) {
  unsigned seen = 0;
  for (unsigned i = 0; i < 4; i++) seen |= axes[i] < 4 ? 1u << axes[i] : 0;
  return seen == 15;
}

static fl_status check_chip(const fl_plan *plan, const fl_plan_chip *c, size_t index) {
  uint32_t alignment = plan->devices[index + 1].alignment;
  if (c->reserved[0] | c->reserved[1]) return FL_PLAN_RESERVED;
  if (c->device != index + 1 || alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > plan->alignment) return FL_PLAN_CHIP;
  if (c->layout_count > FL_MAX_LAYOUTS || c->head_count > FL_MAX_HEADS || c->rounding >= FL_ROUNDING_COUNT) return FL_PLAN_CHIP;
  if (c->flags & ~(uint32_t)FL_CHIP_FLUSH) return FL_PLAN_RESERVED;
  for (uint32_t i = 0; i < c->layout_count; i++)
    if (!is_permutation(&c->layouts[i * 4])) return FL_PLAN_CHIP;
  if (c->arena > SIZE_MAX / 2 || c->constants_offset % alignment != 0 || c->constants_offset % 8 != 0) return FL_PLAN_CHIP;
  return c->constants_offset <= plan->constants_size && c->constants_size <= plan->constants_size - c->constants_offset ? FL_OK
                                                                                                                       : FL_PLAN_CHIP;
}

static fl_status check_launch(const fl_plan *plan, const fl_plan_launch *l, size_t index) {
  if (l->reserved[0] | l->reserved[1] | l->reserved[2]) return FL_PLAN_RESERVED;
  if (l->step >= plan->step_count || (index > 0 && l->step <= plan->launches[index - 1].step)) return FL_PLAN_CHIP;
  const fl_plan_step *s = &plan->steps[l->step];
  if (s->device == 0 || s->opcode != FL_OPCODE_CALL) return FL_PLAN_CHIP;
  return fl_is_string(plan, l->unit) ? FL_OK : FL_PLAN_STRING;
}

fl_status fl_verify_chips(fl_plan *plan) {
  if (plan->device_count != plan->chip_count + 1 || plan->device_count > FL_MAX_DEVICES) return FL_PLAN_CHIP;
  for (size_t i = 0; i < plan->chip_count; i++) {
    plan->record = (uint32_t)i;
    fl_status status = check_chip(plan, &plan->chips[i], i);
    if (status != FL_OK) return status;
  }
  return fl_verify_machines(plan);
}

fl_status fl_verify_launches(fl_plan *plan) {
  size_t launched = 0;
  for (size_t i = 0; i < plan->step_count; i++) launched += plan->steps[i].device != 0 && plan->steps[i].opcode == FL_OPCODE_CALL;
  if (launched != plan->launch_count) return FL_PLAN_CHIP;
  for (size_t i = 0; i < plan->launch_count; i++) {
    plan->record = (uint32_t)i;
    fl_status status = check_launch(plan, &plan->launches[i], i);
    if (status != FL_OK) return status;
  }
  return FL_OK;
}

/* An operand begins, its window aside, at an aligned address of the chip's memory or of its part of the constants. */
static bool in_chip(const fl_plan *plan, uint32_t device, const fl_tensor *t) {
  const fl_plan_chip *chip = &plan->chips[device - 1];
  uint64_t base = t->offset, alignment = plan->devices[device].alignment;
  if (t->space == FL_CONSTANT) {
    int64_t low, high;
    fl_extent(t, &low, &high);
    if (t->offset < chip->constants_offset + (uint64_t)-low) return false;
    base -= chip->constants_offset;
    if ((uint64_t)high > chip->constants_size || base > chip->constants_size - (uint64_t)high) return false;
  } else if (!fl_on_device(t) || t->port != device) {
    return false;
  }
  return t->window <= base && (base - t->window) % alignment == 0;
}

fl_status fl_verify_launch(fl_plan *plan, const fl_plan_step *s, const fl_tensor *const *t) {
  fl_tensor wide[FL_MAX_OPERANDS];
  const fl_tensor *seen[FL_MAX_OPERANDS] = {0};
  void *null[FL_MAX_OPERANDS] = {0};
  const fl_kernel *k = fl_find_kernel(s->kernel);
  if (!k || k->isa != 0) return FL_PLAN_KERNEL;
  if (s->flags != 0 || s->scratch_offset != 0 || s->scratch_size > UINT32_MAX) return FL_PLAN_STEP;
  for (uint32_t i = 0; i < (uint32_t)s->in_count + s->out_count; i++) {
    plan->operand = i;
    if (!in_chip(plan, s->device, t[i]) || (t[i]->window != 0 && t[i]->space != FL_ON_CHIP && !(k->traits & FL_KERNEL_MOVES))) return FL_PLAN_ADDRESS;
    wide[i] = fl_widened(t[i]), seen[i] = &wide[i];
  }
  fl_call c = {seen, null, s->in_count, s->out_count, plan->params + s->params, s->params_size, NULL, (size_t)s->scratch_size, 0, 1};
  return k->check(&c);
}

static bool same_strides(const fl_tensor *a, const fl_tensor *b) {
  for (unsigned i = 0; i < a->rank; i++)
    if (a->dims[i] != 1 && a->strides[i] != b->strides[i]) return false;
  return true;
}

/* One tensor without gaps, from the host's memory to the chip's or back. */
fl_status fl_verify_transfer(fl_plan *plan, const fl_plan_step *s, const fl_tensor *const *t) {
  if (s->in_count != 1 || s->out_count != 1 || s->device == 0 || s->kernel | s->flags | s->params_size) return FL_PLAN_STEP;
  if (s->scratch_size != 0 || s->scratch_offset != 0) return FL_PLAN_STEP;
  const fl_tensor *a = t[0], *b = t[1];
  int64_t low, high;
  fl_extent(a, &low, &high);
  bool whole = high - low == fl_elements(a) * (int64_t)fl_dtype_size(a->dtype) && fl_elements_apart(a);
  if (a->dtype != b->dtype || !fl_same_dims(a, b) || !same_strides(a, b) || !whole || low != 0) return FL_PLAN_STEP;
  bool into = b->space == FL_DEVICE;
  plan->operand = into;
  const fl_tensor *host = into ? a : b, *chip = into ? b : a;
  if (!in_chip(plan, s->device, chip) || chip->space != FL_DEVICE || chip->window != 0) return FL_PLAN_ADDRESS;
  if (into) return !fl_on_device(host) && host->space != FL_OUTPUT ? FL_OK : FL_PLAN_STEP;
  return host->space == FL_ARENA || host->space == FL_OUTPUT ? FL_OK : FL_PLAN_STEP;
}

/* Elements from the chip's memory to its on-chip memory or back. */
fl_status fl_verify_dma(fl_plan *plan, const fl_plan_step *s, const fl_tensor *const *t) {
  if (s->in_count != 1 || s->out_count != 1 || s->device == 0 || s->kernel | s->flags | s->params_size) return FL_PLAN_STEP;
  if (s->scratch_size != 0 || s->scratch_offset != 0) return FL_PLAN_STEP;
  for (uint32_t i = 0; i < 2; i++) {
    plan->operand = i;
    if (!in_chip(plan, s->device, t[i])) return FL_PLAN_ADDRESS;
  }
  bool inward = t[1]->space == FL_ON_CHIP;
  if (t[1]->space == FL_CONSTANT || (t[0]->space == FL_ON_CHIP) == inward) return FL_PLAN_STEP;
  return t[0]->dtype == t[1]->dtype && fl_same_dims(t[0], t[1]) && fl_elements_apart(t[1]) ? FL_OK : FL_PLAN_STEP;
}
