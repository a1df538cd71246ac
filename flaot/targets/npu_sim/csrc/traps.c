#include "npu_sim/csrc/traps.h"
#include <inttypes.h>
#include <stdio.h>
#include "core/kernel_table.h"

static fl_status over(char *message, const fl_launch *l, const char *what, const char *limit, uint32_t found, uint32_t allowed, fl_status trap) {
  snprintf(message, FL_MESSAGE, "%s: step %u on unit %s has %u; %s is %u", what, l->command.step, l->unit, found, limit, allowed);
  return trap;
}

static fl_status heads(const fl_chip *chip, const fl_launch *l, char *message) {
  if (l->heads == 0 || chip->head_count == 0) return FL_OK;
  for (uint32_t i = 0; i < chip->head_count; i++)
    if (chip->heads[i] == l->heads) return FL_OK;
  snprintf(message, FL_MESSAGE, "heads: step %u on unit %s has %u, which the chip does not list", l->command.step, l->unit, l->heads);
  return FL_TRAP_HEADS;
}

static uint32_t traits(const fl_launch *l) {
  const fl_kernel *k = fl_find_kernel(l->kernel);
  return k ? k->traits : 0;
}

/* Whether the axes of a rank 4 tensor, those of size 1 and repeated ones aside, lie in this order, outermost first. */
static bool in_order(const fl_tensor *t, const uint8_t *order, bool swapped) {
  int64_t last = INT64_MAX;
  for (unsigned i = 0; i < 4; i++) {
    unsigned axis = order[i];
    if (swapped && axis >= 2) axis = 5 - axis;
    if (t->dims[axis] == 1 || t->strides[axis] == 0) continue;
    if (t->strides[axis] < 0 || t->strides[axis] > last) return false;
    last = t->strides[axis];
  }
  return true;
}

/* Kernels that only move elements are how layouts change, and windows are parts of tensors. */
static bool layout_fits(const fl_chip *chip, const fl_tensor *t, bool transposed) {
  for (uint32_t i = 0; i < chip->layout_count; i++)
    if (in_order(t, chip->layouts[i], false) || (transposed && in_order(t, chip->layouts[i], true))) return true;
  return chip->layout_count == 0;
}

static fl_status operand(const fl_chip *chip, const fl_launch *l, uint32_t i, char *message) {
  const fl_tensor *t = l->t[i];
  bool table = t->space == FL_CONSTANT && (t->dtype == FL_I32 || t->dtype == FL_I64), moved = traits(l) & FL_KERNEL_MOVES;
  if ((l->address[i] - t->window) % chip->alignment != 0) {
    snprintf(message, FL_MESSAGE, "alignment: operand %u of step %u on unit %s at 0x%" PRIx64 " is not a multiple of %u", i, l->command.step,
             l->unit, l->address[i] - t->window, chip->alignment);
    return FL_TRAP_ALIGN;
  }
  if (chip->max_rank != 0 && t->rank > chip->max_rank) return over(message, l, "rank", "max_rank", t->rank, chip->max_rank, FL_TRAP_RANK);
  if (!table && !(chip->dtypes >> t->dtype & 1)) {
    snprintf(message, FL_MESSAGE, "dtype: operand %u of step %u on unit %s has element type %u, which the chip does not list", i, l->command.step,
             l->unit, t->dtype);
    return FL_TRAP_DTYPE;
  }
  if (t->rank == 4 && !moved && fl_elements(t) > 0 && !layout_fits(chip, t, traits(l) & FL_KERNEL_TRANSPOSED)) {
    snprintf(message, FL_MESSAGE, "layout: operand %u of step %u on unit %s has strides %d %d %d %d, no layout the chip lists", i, l->command.step,
             l->unit, t->strides[0], t->strides[1], t->strides[2], t->strides[3]);
    return FL_TRAP_LAYOUT;
  }
  return FL_OK;
}

fl_status fl_trap_of(const fl_chip *chip, const fl_launch *l, char message[FL_MESSAGE]) {
  if (chip->max_batch != 0 && l->batch > chip->max_batch)
    return over(message, l, "batch", "max_batch_size", l->batch, chip->max_batch, FL_TRAP_BATCH);
  uint32_t longest = l->heads != 0 && chip->max_attention != 0 ? chip->max_attention : chip->max_sequence;
  if (longest != 0 && l->sequence > longest)
    return over(message, l, "sequence", "max_sequence_length", l->sequence, longest, FL_TRAP_SEQUENCE);
  fl_status status = heads(chip, l, message);
  for (uint32_t i = 0; i < l->n_in + l->n_out && status == FL_OK; i++) status = operand(chip, l, i, message);
  return status;
}

fl_status fl_trap_of_dma(const fl_chip *chip, const fl_dma *dma, char message[FL_MESSAGE]) {
  for (uint32_t i = 0; i < 2; i++) {
    uint64_t base = dma->address[i] - dma->t[i]->window;
    if (base % chip->alignment == 0) continue;
    snprintf(message, FL_MESSAGE, "alignment: operand %u of step %u on queue %u at 0x%" PRIx64 " is not a multiple of %u", i,
             dma->command.step, dma->command.queue, base, chip->alignment);
    return FL_TRAP_ALIGN;
  }
  return FL_OK;
}
