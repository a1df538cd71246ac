/* The adapter of the Toy-NPU: binds the commands of a plan to libtoysdk, and implements no operator. flaot/adapter.h is the contract,
   docs/adapters.md explains it.

   Addresses. The SDK knows memory objects and offsets, flaot addresses: here object m begins at address m << 40.
   Order. Queues of the plan are queues of the SDK, and a wait for a step is a wait for the fence of its job. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "flaot/adapter.h"
#include "toysdk.h"

enum { MESSAGE = 256, OBJECT_BITS = 40 };

typedef struct device {
  toy_device *toy;
  fl_chip chip;
  toy_fence *fences;      /* by step, of the run in progress; 0: done, or not the chip's */
  uint32_t fence_count;
  uint32_t next;          /* no step of the run in progress has come from here on */
  bool finished;          /* nothing is under way */
  fl_counters counters;
  char message[MESSAGE];
} device;

const fl_adapter *flaot_adapter(void);

/* -- errors: the SDK's into statuses and sentences ----------------------------------------------------------------------------------- */

static fl_status status_of(toy_error error) {
  switch (error) {
  case TOY_OK: return FL_OK;
  case TOY_E_DRAM: case TOY_E_SRAM: return FL_DEVICE_MEMORY;
  case TOY_E_UNALIGNED: return FL_TRAP_ALIGN;
  case TOY_E_BOUNDS: return FL_TRAP_ADDRESS;
  case TOY_E_AXES: return FL_TRAP_RANK;
  case TOY_E_FORMAT: return FL_TRAP_DTYPE;
  case TOY_E_ORDER: return FL_TRAP_LAYOUT;
  case TOY_E_INDEX: return FL_DATA_VALUE;
  default: return FL_DEVICE_FAILED;
  }
}

/* The status for what an SDK call returned; call says what was called, and for which step. */
static fl_status check(device *d, toy_error error, const char *call) {
  if (error == TOY_OK) return FL_OK;
  const char *more = toy_explain(d->toy);
  snprintf(d->message, MESSAGE, "%s: %s (%d)%s%s", call, toy_error_name(error), (int)error, more[0] ? ": " : "", more);
  toy_drop(d->toy); /* the run has failed; nothing of it may go on in the next one */
  return status_of(error);
}

static fl_status refuse(device *d, fl_status status, const char *what, uint64_t plan, uint64_t chip) {
  snprintf(d->message, MESSAGE, "the plan was compiled for %s %" PRIu64 ", the Toy-NPU has %" PRIu64, what, plan, chip);
  return status;
}

/* -- opening and closing ------------------------------------------------------------------------------------------------------------- */

/* What a plan may ask for is what toy_npu.hcd states; one compiled for more is refused before anything runs. */
static fl_status fits(device *d) {
  const fl_chip *c = &d->chip;
  toy_info info;
  toy_query(d->toy, &info);
  if (c->alignment % info.granule != 0) return refuse(d, FL_TRAP_ALIGN, "an alignment of", c->alignment, info.granule);
  if (c->max_rank == 0 || c->max_rank > info.axes) return refuse(d, FL_TRAP_RANK, "a highest rank of", c->max_rank, info.axes);
  if (c->on_chip > info.sram) return refuse(d, FL_DEVICE_MEMORY, "bytes of on-chip memory:", c->on_chip, info.sram);
  if (c->queues > info.queues) return refuse(d, FL_DEVICE_FAILED, "queues:", c->queues, info.queues);
  if (c->rounding != 0 || c->flush) return refuse(d, FL_DEVICE_FAILED, "a rounding of kind", c->rounding, 0);
  return FL_OK;
}

static fl_status open_device(void *self, const fl_chip *chip, void **handle) {
  (void)self;
  device *d = calloc(1, sizeof *d);
  if (!d) return FL_DEVICE_MEMORY;
  *handle = d, d->chip = *chip, d->finished = true;
  toy_error error = toy_open(&d->toy);
  if (error == TOY_OK) return fits(d);
  snprintf(d->message, MESSAGE, "toy_open: %s (%d)", toy_error_name(error), (int)error);
  return status_of(error);
}

static void close_device(void *handle) {
  device *d = handle;
  if (d->toy) toy_close(d->toy);
  free(d->fences);
  free(d);
}

static fl_status alloc(void *handle, fl_memory memory, uint64_t size, uint32_t alignment, uint64_t *address) {
  (void)alignment; /* objects begin at multiples of 4096, no plan asks for more */
  device *d = handle;
  toy_memory object = 0;
  *address = 0;
  if (size == 0) return FL_OK;
  bool on_chip = memory == FL_MEMORY_ON_CHIP;
  fl_status status = check(d, toy_memory_create(d->toy, on_chip ? TOY_SRAM : TOY_DRAM, size, &object), "toy_memory_create");
  if (status != FL_OK) return status;
  if (on_chip) d->counters.on_chip_peak += size;
  *address = (uint64_t)object << OBJECT_BITS;
  return FL_OK;
}

/* -- order: steps and fences --------------------------------------------------------------------------------------------------------- */

static toy_memory object_of(uint64_t address) { return (toy_memory)(address >> OBJECT_BITS); }

static uint64_t offset_of(uint64_t address) { return address & (((uint64_t)1 << OBJECT_BITS) - 1); }

/* What waiting for jobs returned: the first of them that failed may be one of an earlier step than the command at hand. */
static fl_status waited(device *d, toy_error error) {
  char call[48];
  snprintf(call, sizeof call, "step %" PRIu64 " failed on the chip", toy_failed(d->toy));
  return check(d, error, call);
}

static fl_status finish(device *d) {
  toy_error error = d->finished ? TOY_OK : toy_finish(d->toy);
  if (d->fences) memset(d->fences, 0, d->fence_count * sizeof *d->fences);
  d->finished = true, d->next = 0;
  return waited(d, error);
}

/* Before every command: steps come in order, so a lower one than before begins a run, after one that may have ended early. */
static fl_status begin(device *d, const fl_command *command) {
  d->message[0] = 0;
  if (command->step < d->next) {
    toy_drop(d->toy);
    finish(d);
  }
  if (command->step >= d->fence_count) {
    uint32_t count = (command->step + 1) * 2;
    toy_fence *more = realloc(d->fences, count * sizeof *more);
    if (!more) return FL_DEVICE_MEMORY;
    memset(more + d->fence_count, 0, (count - d->fence_count) * sizeof *more);
    d->fences = more, d->fence_count = count;
  }
  d->next = command->step + 1;
  return FL_OK;
}

static toy_fence fence_of(const device *d, uint32_t step) { return step < d->fence_count ? d->fences[step] : 0; }

/* A command on a queue starts after what it waits for. */
static fl_status queue_waits(device *d, const fl_command *c) {
  toy_error error = TOY_OK;
  for (uint32_t i = 0; i < c->wait_count && error == TOY_OK; i++) error = toy_queue_wait(d->toy, c->queue, fence_of(d, c->waits[i]));
  return check(d, error, "toy_queue_wait");
}

/* The host waits for it now. */
static fl_status host_waits(device *d, const fl_command *c) {
  toy_error error = TOY_OK;
  for (uint32_t i = 0; i < c->wait_count && error == TOY_OK; i++) error = toy_fence_wait(d->toy, fence_of(d, c->waits[i]));
  return waited(d, error);
}

static fl_status sync(void *handle) { return finish(handle); }

/* -- commands ------------------------------------------------------------------------------------------------------------------------ */

/* Moves the bytes before it returns, after the steps it waits for. */
static fl_status copy(void *handle, const fl_command *command, fl_direction direction, uint64_t address, void *host, uint64_t size) {
  device *d = handle;
  fl_status status = command ? begin(d, command) : FL_OK;
  if (status == FL_OK && command) status = host_waits(d, command);
  if (status != FL_OK || size == 0) return status;
  bool in = direction == FL_TO_DEVICE;
  if (command) d->counters.copies++;
  if (command && !d->chip.zero_copy) *(in ? &d->counters.bytes_to_device : &d->counters.bytes_from_device) += size;
  if (in) return check(d, toy_memory_write(d->toy, object_of(address), offset_of(address), host, size), "toy_memory_write");
  return check(d, toy_memory_read(d->toy, object_of(address), offset_of(address), host, size), "toy_memory_read");
}

static toy_format format_of(unsigned dtype) {
  switch (dtype) {
  case FL_F16: return TOY_HALF;
  case FL_BF16: return TOY_BRAIN;
  case FL_I8: return TOY_INT8;
  case FL_I32: return TOY_INT32;
  case FL_I64: return TOY_INT64;
  default: return (toy_format)0; /* the SDK refuses it */
  }
}

static toy_tensor tensor_of(const fl_tensor *t, uint64_t address) {
  toy_tensor out = {.memory = object_of(address), .offset = offset_of(address), .skip = t->window, .format = format_of(t->dtype),
                    .axes = t->rank};
  for (unsigned i = 0; i < t->rank; i++) {
    out.size[i] = (uint32_t)t->dims[i];
    out.pitch[i] = (int64_t)t->strides[i] * (int64_t)fl_dtype_size(t->dtype);
  }
  return out;
}

/* The DMA engine carries bytes of any meaning: formats of one width are alike. */
static toy_tensor carried(const fl_tensor *t, uint64_t address) {
  toy_tensor out = tensor_of(t, address);
  size_t size = fl_dtype_size(t->dtype);
  out.format = size == 1 ? TOY_INT8 : size == 2 ? TOY_HALF : size == 4 ? TOY_INT32 : TOY_INT64;
  return out;
}

static fl_status submitted(device *d, const fl_command *c, toy_error error, toy_fence fence, const char *call) {
  if (error == TOY_OK) d->fences[c->step] = fence, d->finished = false;
  return check(d, error, call);
}

static fl_status dma(void *handle, const fl_dma *m) {
  device *d = handle;
  fl_status status = begin(d, &m->command);
  if (status == FL_OK) status = queue_waits(d, &m->command);
  if (status != FL_OK) return status;
  uint64_t bytes = (uint64_t)fl_elements(m->t[0]) * fl_dtype_size(m->t[0]->dtype);
  d->counters.dmas++;
  *(m->t[1]->space == FL_ON_CHIP ? &d->counters.bytes_in : &d->counters.bytes_out) += bytes;
  toy_tensor tensors[2] = {carried(m->t[0], m->address[0]), carried(m->t[1], m->address[1])};
  toy_fence fence = 0;
  char call[64];
  snprintf(call, sizeof call, "queue %" PRIu32 ": toy_transfer", m->command.queue);
  toy_error error = toy_transfer(d->toy, m->command.queue, tensors, m->command.step, &fence);
  return submitted(d, &m->command, error, fence, call);
}

/* Kernels by the names that 'flaot inspect' shows, and the entry points that do the same. */
static const struct { const char *kernel, *entry; } bindings[] = {
  {"conv_f32.generic", "toy.conv"},       {"conv_transpose_f32.generic", "toy.deconv"}, {"matmul.generic", "toy.mma"},
  {"pool_f32.generic", "toy.pool"},       {"maxpool.generic", "toy.pool.max"},          {"softmax_f32.generic", "toy.softmax"},
  {"norm_f32.generic", "toy.norm"},       {"reduce.generic", "toy.reduce"},             {"lrn_f32.generic", "toy.lrn"},
  {"map.generic", "toy.lanes"},           {"resize_f32.generic", "toy.sample"},         {"resize_nearest.generic", "toy.sample.nearest"},
  {"copy.generic", "toy.move"},           {"recast.generic", "toy.convert"},
};

/* How plans name kernels: FNV-1a. */
static uint32_t id_of(const char *kernel) {
  uint32_t h = 0x811C9DC5u;
  for (; *kernel; kernel++) h = (h ^ (uint8_t)*kernel) * 0x01000193u;
  return h;
}

static const char *entry_of(uint32_t kernel) {
  for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++)
    if (id_of(bindings[i].kernel) == kernel) return bindings[i].entry;
  return NULL;
}

static fl_status launch(void *handle, const fl_launch *l) {
  device *d = handle;
  fl_status status = begin(d, &l->command);
  if (status == FL_OK) status = queue_waits(d, &l->command);
  if (status != FL_OK) return status;
  const char *entry = entry_of(l->kernel);
  if (!entry) {
    snprintf(d->message, MESSAGE, "unit %s: the Toy-NPU has no entry point for the kernel with id 0x%08" PRIx32, l->unit, l->kernel);
    toy_drop(d->toy);
    return FL_DEVICE_FAILED;
  }
  toy_tensor tensors[TOY_MOST_TENSORS];
  for (uint32_t i = 0; i < l->n_in + l->n_out; i++) tensors[i] = tensor_of(l->t[i], l->address[i]);
  toy_job job = {entry, tensors, l->n_in, l->n_out, l->params, l->params_size, l->scratch_size, l->command.step};
  toy_fence fence = 0;
  d->counters.launches++;
  char call[96];
  snprintf(call, sizeof call, "unit %s: toy_submit(%s)", l->unit, entry);
  toy_error error = toy_submit(d->toy, l->command.queue, &job, &fence);
  return submitted(d, &l->command, error, fence, call);
}

static const char *message(void *handle) { return ((device *)handle)->message; }

static void counters(void *handle, fl_counters *out) {
  const device *d = handle;
  *out = d->counters;
  out->nanoseconds = toy_busy_nanoseconds(d->toy);
}

const fl_adapter *flaot_adapter(void) {
  static const fl_adapter adapter = {.abi = FL_ADAPTER_ABI, .device_type = "toy_npu", .name = "toy_adapter", .version = "1.0.0, SDK " TOY_SDK_VERSION,
                                     .open = open_device, .alloc = alloc, .copy = copy, .dma = dma, .launch = launch, .sync = sync,
                                     .close = close_device, .message = message, .counters = counters};
  return &adapter;
}
