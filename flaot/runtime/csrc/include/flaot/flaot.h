/* The runtime: opens a plan once, then replays it on memory of the caller. No heap, no files, no globals that change.
   A plan is immutable after fl_plan_open and may serve any number of contexts at the same time; a context is for one caller at a time.

     fl_plan plan;                               fl_context context;
     fl_plan_open(&plan, bytes, size, NULL);     size_t need = fl_arena_bytes(&plan, 1);
     fl_context_init(&context, &plan, arena, need, NULL);
     fl_set_input(&context, 0, x, sizeof x);     fl_set_output(&context, 0, y, sizeof y);
     fl_run(&context);

   Trust: the plan's bytes may be hostile; after a successful open no run reads or writes outside plan, arena and ports. The plan's
   bytes must stay unchanged while the plan is in use. */
#ifndef FLAOT_FLAOT_H
#define FLAOT_FLAOT_H
#include "flaot/adapter.h"
#include "flaot/kernel.h"

enum { FL_MAX_THREADS = 64 };

/* What the caller says about its machine; NULL stands for zeros. */
typedef struct fl_machine {
  uint32_t isa;             /* FL_ISA_* bits this CPU runs */
  bool digest_verified;     /* the caller has compared the SHA-256 already */
  const char *device_type;  /* device type this machine is; null accepts any */
} fl_machine;

/* An opened plan; owned by the caller, fields are private except record. */
typedef struct fl_plan {
  const uint8_t *bytes;
  size_t size, alignment;
  const fl_tensor *tensors;
  const struct fl_plan_device *devices;
  const struct fl_plan_entry *entry;
  const struct fl_plan_step *steps;
  const uint32_t *operands;
  const uint8_t *params, *constants, *strings;
  const struct fl_plan_port *inputs, *outputs;
  size_t tensor_count, device_count, entry_count, step_count, operand_count, params_size, constants_size, strings_size;
  size_t input_count, output_count;
  const struct fl_plan_chip *chips;
  const struct fl_plan_launch *launches;
  const struct fl_plan_machine *machines;
  const struct fl_plan_unit *units;
  const struct fl_plan_command *commands;
  const uint32_t *waits;
  size_t chip_count, launch_count, machine_count, unit_count, command_count, wait_count;
  uint32_t record;  /* after a failed open: index of the offending section, tensor, step, port (inputs, then outputs), device or chip */
  uint32_t operand; /* after FL_PLAN_ADDRESS: which operand of the step */
} fl_plan;

/* Runs fn(arg, part) for every part below parts, the parts at the same time if it can, and returns when all are done. */
typedef void (*fl_part_fn)(void *arg, uint32_t part);
typedef struct fl_team {
  void (*parallel)(void *self, fl_part_fn fn, void *arg, uint32_t parts);
  void *self;
  uint32_t threads; /* 1 to FL_MAX_THREADS */
} fl_team;

/* A chip a context runs steps on. */
enum { FL_MAX_CHIPS = 3 };
typedef struct fl_device {
  const fl_adapter *adapter; /* null: none attached */
  void *handle;
  fl_chip chip;
  uint64_t arena, constants, on_chip; /* addresses in the chip's memories */
} fl_device;

typedef struct fl_context {
  const fl_plan *plan;
  uint8_t *arena;
  size_t arena_size;
  void **ports;      /* inputs, then outputs; lies at the end of the arena */
  fl_team team;
  uint32_t state;
  uint32_t step;     /* after a failed run: the step */
  fl_device chips[FL_MAX_CHIPS];
} fl_context;

/* Verifies everything once. bytes: 8-byte aligned (the plan's alignment is faster), alive as long as the plan is used.
   Any byte string is either refused or safe to run. */
fl_status fl_plan_open(fl_plan *plan, const void *bytes, size_t size, const fl_machine *machine);

/* Bytes of arena a context needs; SIZE_MAX when it does not fit the address space. */
size_t fl_arena_bytes(const fl_plan *plan, uint32_t threads);

/* arena: aligned to plan->alignment, at least fl_arena_bytes, content without meaning. team: NULL runs on the calling thread. */
fl_status fl_context_init(fl_context *context, const fl_plan *plan, void *arena, size_t arena_size, const fl_team *team);

/* Attaches an adapter to a chip of the plan, device 1 and up: opens it, takes memory and copies the constants over. Every chip needs one
   before a run. adapter must live until fl_detach, which closes all of them; the plan need not. */
fl_status fl_attach(fl_context *context, uint32_t device, const fl_adapter *adapter);
void fl_detach(fl_context *context);

/* Row-major, in the port's element type, aligned to it; size in bytes must be exact. Kept until set again. */
fl_status fl_set_input(fl_context *context, uint32_t index, const void *data, size_t size);
fl_status fl_set_output(fl_context *context, uint32_t index, void *data, size_t size);

fl_status fl_run(fl_context *context);

/* The same in pieces, to look at memory between steps: fl_begin, then every step in order. */
fl_status fl_begin(fl_context *context);
fl_status fl_run_step(fl_context *context, uint32_t step);
uint32_t fl_step_count(const fl_plan *plan);

/* Name of input or output index; NULL when there is none. */
const char *fl_input_name(const fl_plan *plan, uint32_t index);
const char *fl_output_name(const fl_plan *plan, uint32_t index);

#endif
