/* The units of the chip: what they accept, and what they compute. flaot's portable kernels play them, on operands widened to float32. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/half.h"
#include "core/launch.h"
#include "device.h"

#define ENTRY(name, kernel, moves, transposed) {name, fl_##kernel##_check, fl_##kernel##_generic, moves, transposed}
#define DECLARE(kernel) fl_status fl_##kernel##_check(const fl_call *c); fl_status fl_##kernel##_generic(const fl_call *c);
DECLARE(conv_f32) DECLARE(conv_transpose_f32) DECLARE(matmul) DECLARE(pool_f32) DECLARE(maxpool)
DECLARE(softmax_f32) DECLARE(norm_f32) DECLARE(reduce) DECLARE(lrn_f32) DECLARE(map) DECLARE(resize_f32) DECLARE(resize_nearest)
DECLARE(copy) DECLARE(recast)

static const toy_entry entries[] = {
  ENTRY("toy.conv", conv_f32, false, false),     ENTRY("toy.deconv", conv_transpose_f32, false, false),
  ENTRY("toy.mma", matmul, false, true),         ENTRY("toy.reduce", reduce, false, false),
  ENTRY("toy.pool", pool_f32, false, false),     ENTRY("toy.pool.max", maxpool, false, false),
  ENTRY("toy.softmax", softmax_f32, false, false), ENTRY("toy.norm", norm_f32, false, false),
  ENTRY("toy.lrn", lrn_f32, false, false),       ENTRY("toy.lanes", map, false, false),
  ENTRY("toy.sample", resize_f32, false, false), ENTRY("toy.sample.nearest", resize_nearest, false, false),
  ENTRY("toy.move", copy, true, false),          ENTRY("toy.convert", recast, true, false),
};

const toy_entry *toy_find_entry(const char *name) {
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (strcmp(entries[i].name, name) == 0) return &entries[i];
  return NULL;
}

static const uint8_t dtypes[] = {[TOY_HALF] = FL_F16, [TOY_BRAIN] = FL_BF16, [TOY_INT8] = FL_I8, [TOY_INT32] = FL_I32, [TOY_INT64] = FL_I64};

static toy_error translate(toy_device *d, const toy_tensor *t, uint32_t index, bool counted, fl_tensor *out) {
  uint32_t most = d->lie == LIE_RANK ? TOY_AXES - 1 : TOY_AXES;
  if (t->axes > (counted ? most : TOY_MOST_AXES)) return toy_say(d, TOY_E_AXES, "tensor %u has %u axes, at most %u are allowed", index, t->axes, most);
  if (t->format < TOY_HALF || t->format > TOY_INT64) return toy_say(d, TOY_E_FORMAT, "tensor %u has format %d", index, (int)t->format);
  *out = (fl_tensor){.dtype = dtypes[t->format], .rank = (uint8_t)t->axes, .space = FL_DEVICE};
  int64_t size = (int64_t)fl_dtype_size(out->dtype);
  for (uint32_t i = 0; i < t->axes; i++) {
    if (t->pitch[i] % size != 0 || t->pitch[i] / size > INT32_MAX || t->pitch[i] / size < INT32_MIN || t->size[i] > INT32_MAX)
      return toy_say(d, TOY_E_ARGUMENT, "axis %u of tensor %u", i, index);
    out->dims[i] = (int32_t)t->size[i], out->strides[i] = (int32_t)(t->pitch[i] / size);
  }
  return TOY_OK;
}

/* Whether the axes of an image lie in this order, outermost first; those of one element or repeated ones lie anywhere. */
static bool lies_as(const fl_tensor *t, const uint8_t order[4]) {
  int64_t last = INT64_MAX;
  for (unsigned i = 0; i < 4; i++) {
    unsigned axis = order[i];
    if (t->dims[axis] == 1 || t->strides[axis] == 0) continue;
    if (t->strides[axis] < 0 || t->strides[axis] > last) return false;
    last = t->strides[axis];
  }
  return true;
}

static const uint8_t channels_first[4] = {0, 1, 2, 3}, channels_last[4] = {0, 2, 3, 1}, columns_first[4] = {0, 1, 3, 2};

static bool order_known(const fl_tensor *t, bool transposed) {
  if (t->rank != 4 || fl_elements(t) == 0 || lies_as(t, channels_first) || lies_as(t, channels_last)) return true;
  return transposed && lies_as(t, columns_first);
}

/* The bytes a tensor reaches around its first element, [low, high). */
static void reach(const fl_tensor *t, int64_t *low, int64_t *high) {
  int64_t size = (int64_t)fl_dtype_size(t->dtype);
  *low = 0, *high = fl_elements(t) > 0 ? size : 0;
  for (unsigned i = 0; i < t->rank && *high > 0; i++) *(t->strides[i] < 0 ? low : high) += size * t->strides[i] * (t->dims[i] - 1);
}

/* entry: null for a transfer, which takes every place and order. */
static toy_error place(toy_device *d, const toy_tensor *t, uint32_t index, const toy_entry *entry, const fl_tensor *f, void **data) {
  uint32_t granule = !entry ? 1 : d->lie == LIE_ALIGNMENT ? 2 * TOY_GRANULE : TOY_GRANULE;
  int64_t low, high;
  reach(f, &low, &high);
  *data = toy_bytes(d, t->memory, t->offset, low, high);
  if (!*data) return toy_say(d, TOY_E_BOUNDS, "tensor %u at 0x%" PRIx64 " of memory %u", index, t->offset, (unsigned)t->memory);
  if (t->offset % fl_dtype_size(f->dtype) != 0 || (t->offset - t->skip) % granule != 0)
    return toy_say(d, TOY_E_UNALIGNED, "tensor %u at 0x%" PRIx64 ", a multiple of %u is needed", index, t->offset - t->skip, granule);
  if (!entry || entry->moves || order_known(f, entry->transposed)) return TOY_OK;
  return toy_say(d, TOY_E_ORDER, "tensor %u has pitches %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, index, t->pitch[0], t->pitch[1], t->pitch[2],
                 t->pitch[3]);
}

/* What the kernel sees of the task's tensors: narrow floating point widened. */
static fl_call call_of(const toy_task *task, fl_tensor wide[TOY_MOST_TENSORS], const fl_tensor *seen[TOY_MOST_TENSORS], void **p) {
  for (uint32_t i = 0; i < task->inputs + task->outputs; i++) wide[i] = fl_widened(&task->tensors[i]), seen[i] = &wide[i];
  return (fl_call){seen, p, task->inputs, task->outputs, task->arguments, task->argument_bytes, NULL, task->line_buffer, 0, 1};
}

toy_error toy_inspect(toy_device *d, const toy_tensor *tensors, toy_task *task) {
  bool transfer = task->work == WORK_TRANSFER;
  for (uint32_t i = 0; i < task->inputs + task->outputs; i++) {
    fl_tensor *t = &task->tensors[i];
    toy_error error = translate(d, &tensors[i], i, !transfer, t);
    if (error == TOY_OK) error = place(d, &tensors[i], i, task->entry, t, &task->data[i]);
    if (error != TOY_OK) return error;
  }
  if (transfer) {
    bool same = task->tensors[0].dtype == task->tensors[1].dtype && fl_same_dims(&task->tensors[0], &task->tensors[1]);
    return same ? TOY_OK : toy_say(d, TOY_E_ARGUMENT, "a transfer between tensors of two kinds");
  }
  fl_tensor wide[TOY_MOST_TENSORS];
  const fl_tensor *seen[TOY_MOST_TENSORS] = {0};
  void *nothing[TOY_MOST_TENSORS] = {0};
  fl_call call = call_of(task, wide, seen, nothing);
  return task->entry->check(&call) == FL_OK ? TOY_OK : toy_say(d, TOY_E_ARGUMENT, "%s does not take these tensors and arguments", task->entry->name);
}

static void carry(const fl_tensor *a, const uint8_t *from, const fl_tensor *b, uint8_t *to, unsigned axis) {
  size_t size = fl_dtype_size(a->dtype);
  bool run = axis + 1 == a->rank && a->strides[axis] == 1 && b->strides[axis] == 1;
  if (axis == a->rank || run) memcpy(to, from, run ? size * (size_t)a->dims[axis] : size);
  else
    for (int32_t i = 0; i < a->dims[axis]; i++)
      carry(a, from + (ptrdiff_t)size * i * a->strides[axis], b, to + (ptrdiff_t)size * i * b->strides[axis], axis + 1);
}

/* The lie about layouts: an image with channels last is taken for one with channels first, at the same bytes. */
static fl_tensor misread(const fl_tensor *t) {
  fl_tensor m = *t;
  bool apart = true;
  for (unsigned i = 0; i < t->rank; i++) apart &= t->strides[i] > 0;
  if (t->rank != 4 || !apart || lies_as(t, channels_first)) return m;
  int32_t step = 1;
  for (unsigned i = 4; i-- > 0;) m.strides[i] = step, step *= t->dims[i];
  return m;
}

static void through_half(float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] = fl_round_half(x[i], FL_F16, FL_ROUNDING_HALF_TO_EVEN, false);
}

static void read_tensor(const toy_device *d, const fl_tensor *t, const void *stored, float *wide) {
  fl_tensor seen = d->lie == LIE_LAYOUT ? misread(t) : *t;
  fl_widen(&seen, stored, wide);
  if (d->lie == LIE_BFLOAT16 && t->dtype == FL_BF16) through_half(wide, fl_elements(t));
}

static void write_tensor(const toy_device *d, const fl_tensor *t, void *stored, float *wide) {
  if (d->lie == LIE_BFLOAT16 && t->dtype == FL_BF16) through_half(wide, fl_elements(t));
  fl_narrow(t, stored, wide, d->lie == LIE_ROUNDING ? FL_ROUNDING_TOWARD_ZERO : FL_ROUNDING_HALF_TO_EVEN, false);
}

static size_t rounded(size_t size) { return (size + 63) / 64 * 64; }

static size_t wide_size(const fl_tensor *t) { return fl_is_narrow(t) ? rounded(sizeof(float) * (size_t)fl_elements(t)) : 0; }

/* Room for the line buffer and the widened tensors. */
static bool reserve(toy_device *d, const toy_task *task) {
  size_t need = rounded(task->line_buffer) + 128;
  for (uint32_t i = 0; i < task->inputs + task->outputs; i++) need += wide_size(&task->tensors[i]);
  if (need <= d->room_size) return true;
  free(d->room);
  d->room = malloc(need), d->room_size = d->room ? need : 0;
  return d->room != NULL;
}

static toy_error compute(toy_device *d, toy_task *task) {
  fl_tensor wide[TOY_MOST_TENSORS];
  const fl_tensor *seen[TOY_MOST_TENSORS] = {0};
  void *p[TOY_MOST_TENSORS] = {0};
  fl_call call = call_of(task, wide, seen, p);
  if (!reserve(d, task)) return toy_say(d, TOY_E_BUSY, "the host has no memory to compute in");
  uint8_t *room = d->room + (64 - (uintptr_t)d->room % 64) % 64;
  call.scratch = room, room += rounded(task->line_buffer);
  for (uint32_t i = 0; i < task->inputs + task->outputs; i++) {
    const fl_tensor *t = &task->tensors[i];
    p[i] = task->data[i];
    if (!fl_is_narrow(t)) continue;
    p[i] = room, room += wide_size(t);
    if (i < task->inputs) read_tensor(d, t, task->data[i], p[i]);
    else fl_widen(t, task->data[i], p[i]); /* some entries write a part and keep the rest */
  }
  if (task->entry->run(&call) != FL_OK) return toy_say(d, TOY_E_INDEX, "%s met a value it is not defined for", task->entry->name);
  for (uint32_t i = task->inputs; i < task->inputs + task->outputs; i++)
    if (fl_is_narrow(&task->tensors[i])) write_tensor(d, &task->tensors[i], task->data[i], p[i]);
  return TOY_OK;
}

toy_error toy_execute(toy_device *d, toy_task *task) {
  if (d->fault == TOY_E_INDEX) return toy_say(d, TOY_E_INDEX, "as TOY_FAULT asks for");
  if (d->fault == TOY_E_LOST) {
    d->lost = true;
    return toy_say(d, TOY_E_LOST, "as TOY_FAULT asks for");
  }
  if (task->work == WORK_JOB) return compute(d, task);
  carry(&task->tensors[0], task->data[0], &task->tensors[1], task->data[1], 0);
  return TOY_OK;
}
