#include "core/context.h"

static size_t round_up(size_t n, size_t alignment) { return (n + alignment - 1) / alignment * alignment; }

/* Arena: tensors and the first thread's scratch, the other threads' scratch, the port table. */
static size_t scratch_start(const fl_plan *plan) { return round_up((size_t)plan->entry->arena, FL_MIN_ALIGNMENT); }

size_t fl_arena_bytes(const fl_plan *plan, uint32_t threads) {
  size_t further = threads > 1 ? threads - 1 : 0, scratch = (size_t)plan->entry->scratch;
  size_t table = (plan->input_count + plan->output_count) * sizeof(void *), start = scratch_start(plan);
  if (scratch != 0 && further > (SIZE_MAX - start - table) / scratch) return SIZE_MAX;
  return start + further * scratch + table;
}

fl_status fl_context_init(fl_context *c, const fl_plan *plan, void *arena, size_t arena_size, const fl_team *team) {
  if (!c) return FL_CALL_NULL;
  *c = (fl_context){0};
  if (!plan || !plan->bytes || !arena) return FL_CALL_NULL;
  if ((uintptr_t)arena % plan->alignment != 0) return FL_CALL_ALIGN;
  uint32_t threads = team ? team->threads : 1;
  if (threads < 1 || threads > FL_MAX_THREADS || (threads > 1 && !team->parallel)) return FL_CALL_STATE;
  size_t need = fl_arena_bytes(plan, threads), table = (plan->input_count + plan->output_count) * sizeof(void *);
  if (arena_size < need || need == SIZE_MAX) return FL_CALL_ARENA;
  if (fl_overlap(arena, need, plan->bytes, plan->size)) return FL_CALL_OVERLAP;
  c->plan = plan, c->arena = arena, c->arena_size = need;
  c->ports = (void **)(void *)(c->arena + need - table);
  c->team.threads = 1;
  if (team) c->team = *team;
  for (size_t i = 0; i < plan->input_count + plan->output_count; i++) c->ports[i] = NULL;
  c->state = FL_CONTEXT_READY;
  return FL_OK;
}

bool fl_overlap(const void *a, size_t a_size, const void *b, size_t b_size) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return a_size != 0 && b_size != 0 && (x <= y ? y - x < a_size : x - y < b_size);
}

static fl_status set_port(fl_context *c, const fl_plan_port *port, size_t slot, void *data, size_t size) {
  if (size != port->size) return FL_CALL_PORT;
  if (!data && size != 0) return FL_CALL_NULL;
  if ((uintptr_t)data % fl_dtype_size(c->plan->tensors[port->tensor].dtype) != 0) return FL_CALL_ALIGN;
  c->ports[slot] = size != 0 ? data : c->arena;
  return FL_OK;
}

fl_status fl_set_input(fl_context *c, uint32_t index, const void *data, size_t size) {
  if (!c || c->state != FL_CONTEXT_READY) return FL_CALL_STATE;
  if (index >= c->plan->input_count) return FL_CALL_PORT;
  return set_port(c, &c->plan->inputs[index], index, (void *)(uintptr_t)data, size);
}

fl_status fl_set_output(fl_context *c, uint32_t index, void *data, size_t size) {
  if (!c || c->state != FL_CONTEXT_READY) return FL_CALL_STATE;
  if (index >= c->plan->output_count) return FL_CALL_PORT;
  return set_port(c, &c->plan->outputs[index], c->plan->input_count + index, data, size);
}

const char *fl_input_name(const fl_plan *plan, uint32_t index) {
  return index < plan->input_count ? (const char *)plan->strings + plan->inputs[index].name : NULL;
}

const char *fl_output_name(const fl_plan *plan, uint32_t index) {
  return index < plan->output_count ? (const char *)plan->strings + plan->outputs[index].name : NULL;
}

uint32_t fl_step_count(const fl_plan *plan) { return (uint32_t)plan->step_count; }
