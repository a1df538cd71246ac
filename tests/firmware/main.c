/* Opens the plan in flash, runs it once on inputs the emulator puts into memory, and exits with the status. */
#include "flaot/flaot.h"
#include "gen/plan.h"

extern const uint8_t plan_start[], plan_end[];
int main(void);

__attribute__((section(".arena"), aligned(64))) uint8_t arena[ARENA_BYTES];
__attribute__((section(".arena"), aligned(8))) uint8_t ports[PORT_BYTES]; /* inputs, then outputs, each at a multiple of 8; not cleared at the start */

static fl_status set_ports(fl_context *context, const fl_plan *plan) {
  fl_status status = FL_OK;
  size_t at = 0;
  for (uint32_t i = 0; i < plan->input_count && status == FL_OK; i++) {
    status = fl_set_input(context, i, ports + at, (size_t)plan->inputs[i].size);
    at += ((size_t)plan->inputs[i].size + 7) / 8 * 8;
  }
  for (uint32_t i = 0; i < plan->output_count && status == FL_OK; i++) {
    status = fl_set_output(context, i, ports + at, (size_t)plan->outputs[i].size);
    at += ((size_t)plan->outputs[i].size + 7) / 8 * 8;
  }
  return status;
}

int main(void) {
  fl_plan plan;
  fl_context context;
  fl_status status = fl_plan_open(&plan, plan_start, (size_t)(plan_end - plan_start), NULL);
  if (status == FL_OK) status = fl_context_init(&context, &plan, arena, sizeof arena, NULL);
  if (status == FL_OK) status = set_ports(&context, &plan);
  return (int)(status == FL_OK ? fl_run(&context) : status);
}
