#include "core/verify.h"

static bool nonnegative_dims(const fl_tensor *t) {
  int64_t n = 1; /* product of the sizes other than 0, so that no order of multiplying overflows */
  for (unsigned i = 0; i < t->rank; i++) {
    if (t->dims[i] < 0) return false;
    n *= t->dims[i] > 0 ? t->dims[i] : 1;
    if (n > INT32_MAX) return false;
  }
  for (unsigned i = t->rank; i < FL_MAX_RANK; i++)
    if (t->dims[i] | t->strides[i]) return false;
  return true;
}

bool fl_extent(const fl_tensor *t, int64_t *low, int64_t *high) {
  const int64_t limit = (int64_t)1 << 48;
  int64_t size = (int64_t)fl_dtype_size(t->dtype);
  *low = 0, *high = 1;
  if (size == 0 || t->rank > FL_MAX_RANK || !nonnegative_dims(t)) return false;
  for (unsigned i = 0; i < t->rank; i++) {
    int64_t reach = ((int64_t)t->dims[i] - 1) * t->strides[i];
    if (t->dims[i] > 0 && reach < 0) *low += reach;
    if (t->dims[i] > 0 && reach > 0) *high += reach;
    if (*low < -limit || *high > limit) return false;
  }
  if (fl_elements(t) == 0) *low = *high = 0;
  *low *= size, *high *= size;
  return true;
}

static const fl_plan_port *port_of(const fl_plan *plan, const fl_tensor *t) {
  if (t->space == FL_INPUT) return t->port < plan->input_count ? &plan->inputs[t->port] : NULL;
  if (t->space == FL_OUTPUT) return t->port < plan->output_count ? &plan->outputs[t->port] : NULL;
  return NULL;
}

/* Size of the tensor's space, and whether its base is aligned for the tensor's type: a port's is aligned to the port's type. */
static bool space_of(const fl_plan *plan, const fl_tensor *t, uint64_t *size) {
  const fl_plan_port *port = port_of(plan, t);
  if (t->space == FL_DEVICE || t->space == FL_ON_CHIP) {
    if (t->port == 0 || t->port >= plan->device_count) return false;
    *size = t->space == FL_DEVICE ? plan->chips[t->port - 1].arena : plan->machines[t->port - 1].on_chip_peak;
    return true;
  }
  *size = port ? port->size : t->space == FL_ARENA ? plan->entry->arena : plan->constants_size;
  if (port) return fl_dtype_size(t->dtype) <= fl_dtype_size(plan->tensors[port->tensor].dtype);
  return t->space <= FL_ARENA && t->port == 0;
}

static fl_status check_tensor(const fl_plan *plan, const fl_tensor *t) {
  int64_t low, high;
  uint64_t size;
  if (t->window != 0 && t->space != FL_DEVICE && t->space != FL_CONSTANT && t->space != FL_ON_CHIP) return FL_PLAN_RESERVED;
  if (!fl_extent(t, &low, &high) || !space_of(plan, t, &size)) return FL_PLAN_TENSOR;
  if (t->offset % fl_dtype_size(t->dtype) != 0) return FL_PLAN_TENSOR;
  if (t->offset > size || t->offset < (uint64_t)-low || (uint64_t)high > size - t->offset) return FL_PLAN_TENSOR;
  return FL_OK;
}

static fl_status check_port_index(const fl_plan *plan, const fl_plan_port *port, size_t index, unsigned space) {
  if (!fl_is_string(plan, port->name)) return FL_PLAN_STRING;
  if (port->tensor >= plan->tensor_count) return FL_PLAN_PORT;
  const fl_tensor *t = &plan->tensors[port->tensor];
  return t->space == space && t->port == index && fl_dtype_size(t->dtype) != 0 ? FL_OK : FL_PLAN_PORT;
}

static fl_status check_port_type(const fl_plan *plan, const fl_plan_port *port) {
  const fl_tensor *t = &plan->tensors[port->tensor];
  uint64_t size = (uint64_t)fl_elements(t) * fl_dtype_size(t->dtype);
  return t->offset == 0 && fl_is_dense(t) && size == port->size && size <= SIZE_MAX / 2 ? FL_OK : FL_PLAN_PORT;
}

static fl_status check_ports(fl_plan *plan, bool types) {
  fl_status status = FL_OK;
  for (size_t i = 0; i < plan->input_count + plan->output_count && status == FL_OK; i++) {
    bool input = i < plan->input_count;
    size_t index = input ? i : i - plan->input_count;
    const fl_plan_port *port = input ? &plan->inputs[index] : &plan->outputs[index];
    plan->record = (uint32_t)i;
    status = types ? check_port_type(plan, port) : check_port_index(plan, port, index, input ? FL_INPUT : FL_OUTPUT);
  }
  return status;
}

fl_status fl_verify_tensors(fl_plan *plan) {
  fl_status status = check_ports(plan, false);
  for (size_t i = 0; i < plan->tensor_count && status == FL_OK; i++) {
    plan->record = (uint32_t)i;
    status = check_tensor(plan, &plan->tensors[i]);
  }
  return status == FL_OK ? check_ports(plan, true) : status;
}
