/* The parts of fl_plan_open. Each relies on those before it and sets plan->record when it fails. */
#ifndef FLAOT_CORE_VERIFY_H
#define FLAOT_CORE_VERIFY_H
#include "flaot/flaot.h"
#include "gen/plan.h"

fl_status fl_verify_header(const uint8_t *bytes, size_t size, bool digest_verified);
fl_status fl_verify_sections(fl_plan *plan);                  /* then binds them */
fl_status fl_verify_strings(fl_plan *plan);
fl_status fl_verify_chips(fl_plan *plan);                     /* and machines and units */
fl_status fl_verify_machines(fl_plan *plan);
fl_status fl_verify_tensors(fl_plan *plan);                   /* and ports */
fl_status fl_verify_steps(fl_plan *plan, uint32_t isa);
fl_status fl_verify_launches(fl_plan *plan);
fl_status fl_verify_commands(fl_plan *plan);                  /* and waits */

/* A step on a chip, whose operands are t; the index of a wrong operand goes to plan->operand. */
fl_status fl_verify_launch(fl_plan *plan, const fl_plan_step *s, const fl_tensor *const *t);
fl_status fl_verify_transfer(fl_plan *plan, const fl_plan_step *s, const fl_tensor *const *t);
fl_status fl_verify_dma(fl_plan *plan, const fl_plan_step *s, const fl_tensor *const *t);

/* Whether the tensor lies in a chip's memory, on chip or off. */
static inline bool fl_on_device(const fl_tensor *t) { return t->space == FL_DEVICE || t->space == FL_ON_CHIP; }

bool fl_is_string(const fl_plan *plan, uint32_t offset);

/* Bytes the tensor touches relative to its offset, [low, high); false when dims or strides are out of range. */
bool fl_extent(const fl_tensor *t, int64_t *low, int64_t *high);

/* True only if no byte belongs to both; extents must be valid. */
bool fl_disjoint(const fl_tensor *a, const fl_tensor *b);

/* True only if no two elements share bytes; the extent must be valid. */
bool fl_elements_apart(const fl_tensor *t);

#endif
