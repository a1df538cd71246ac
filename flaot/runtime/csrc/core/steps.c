#include "core/kernel_table.h"
#include "core/verify.h"

static fl_status check_record(const fl_plan *plan, const fl_plan_step *s) {
  uint32_t count = (uint32_t)s->in_count + s->out_count;
  if (s->reserved != 0 || s->flags & ~(uint32_t)FL_STEP_PARALLEL) return FL_PLAN_RESERVED;
  if (s->opcode > FL_OPCODE_DMA || s->device >= plan->device_count || count > FL_MAX_OPERANDS) return FL_PLAN_STEP;
  if (s->operands > plan->operand_count || count > plan->operand_count - s->operands) return FL_PLAN_STEP;
  if (s->params % 4 != 0 || s->params_size % 4 != 0 || s->params_size > FL_MAX_PARAMS) return FL_PLAN_STEP;
  if (s->params > plan->params_size || s->params_size > plan->params_size - s->params) return FL_PLAN_STEP;
  for (uint32_t i = 0; i < count; i++)
    if (plan->operands[s->operands + i] >= plan->tensor_count) return FL_PLAN_STEP;
  return FL_OK;
}

static fl_status check_scratch(const fl_plan *plan, const fl_plan_step *s) {
  uint64_t arena = plan->entry->arena;
  if (s->device != 0) return FL_OK; /* judged with the launch */
  if (s->scratch_size == 0) return s->scratch_offset == 0 ? FL_OK : FL_PLAN_STEP;
  if (s->scratch_offset % FL_MIN_ALIGNMENT != 0) return FL_PLAN_STEP;
  if (s->scratch_offset > arena || s->scratch_size > arena - s->scratch_offset) return FL_PLAN_STEP;
  return !(s->flags & FL_STEP_PARALLEL) || s->scratch_size <= plan->entry->scratch ? FL_OK : FL_PLAN_STEP;
}

static bool same_view(const fl_tensor *a, const fl_tensor *b) {
  if (a->dtype != b->dtype || a->space != b->space || a->port != b->port || a->offset != b->offset || !fl_same_dims(a, b)) return false;
  for (unsigned i = 0; i < a->rank; i++)
    if (a->dims[i] != 1 && a->strides[i] != b->strides[i]) return false;
  return true;
}

static bool in_scratch(const fl_plan_step *s, const fl_tensor *t) {
  int64_t low, high;
  fl_extent(t, &low, &high);
  if (t->space != FL_ARENA || low == high || s->scratch_size == 0 || s->device != 0) return false;
  uint64_t start = t->offset - (uint64_t)-low, end = t->offset + (uint64_t)high;
  return start < s->scratch_offset + s->scratch_size && s->scratch_offset < end;
}

/* Outputs are writable, reach no byte twice and are disjoint from everything but an input that is the same view. */
static fl_status check_aliasing(const fl_plan_step *s, const fl_tensor *const *t) {
  uint32_t count = (uint32_t)s->in_count + s->out_count;
  for (uint32_t i = 0; i < count; i++)
    if (in_scratch(s, t[i])) return FL_PLAN_STEP;
  for (uint32_t o = s->in_count; o < count; o++) {
    if (t[o]->space != FL_ARENA && t[o]->space != FL_OUTPUT && !fl_on_device(t[o])) return FL_PLAN_STEP;
    if (!fl_elements_apart(t[o])) return FL_PLAN_STEP;
    for (uint32_t i = 0; i < o; i++)
      if (!fl_disjoint(t[i], t[o]) && !(i < s->in_count && same_view(t[i], t[o]))) return FL_PLAN_STEP;
  }
  return FL_OK;
}

static fl_status check_kernel(const fl_plan *plan, const fl_plan_step *s, const fl_tensor *const *t, uint32_t isa) {
  void *null[FL_MAX_OPERANDS] = {0};
  const fl_kernel *k = fl_find_kernel(s->kernel);
  if (!k) return FL_PLAN_KERNEL;
  for (uint32_t i = 0; i < (uint32_t)s->in_count + s->out_count; i++)
    if (fl_on_device(t[i]) || t[i]->window != 0) return FL_PLAN_STEP;
  if (k->isa & ~isa) return FL_DEVICE_ISA;
  fl_call c = {t, null, s->in_count, s->out_count, plan->params + s->params, s->params_size, NULL, (size_t)s->scratch_size, 0, 1};
  return k->check(&c);
}

static fl_status check_step(fl_plan *plan, const fl_plan_step *s, uint32_t isa) {
  const fl_tensor *t[FL_MAX_OPERANDS] = {0};
  fl_status status = check_record(plan, s);
  if (status == FL_OK) status = check_scratch(plan, s);
  if (status != FL_OK) return status;
  for (uint32_t i = 0; i < (uint32_t)s->in_count + s->out_count; i++) t[i] = &plan->tensors[plan->operands[s->operands + i]];
  if (s->opcode == FL_OPCODE_TRANSFER) return fl_verify_transfer(plan, s, t);
  if (s->opcode == FL_OPCODE_DMA) return fl_verify_dma(plan, s, t);
  status = check_aliasing(s, t);
  if (status != FL_OK) return status;
  return s->device != 0 ? fl_verify_launch(plan, s, t) : check_kernel(plan, s, t, isa);
}

fl_status fl_verify_steps(fl_plan *plan, uint32_t isa) {
  fl_status status = FL_OK;
  for (size_t i = 0; i < plan->step_count && status == FL_OK; i++) {
    plan->record = (uint32_t)i;
    status = check_step(plan, &plan->steps[i], isa);
  }
  return status;
}
