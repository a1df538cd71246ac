/* Whether two strided tensors share bytes. Interleaved slices of one buffer (two channel ranges of an NHWC tensor) must count as
   disjoint: modulo a common period, the stride of the axis outside the slice, they fill different intervals. */
#include "core/verify.h"

/* Bytes from one period's start that the tensor fills, as an arc [start, start + length) modulo period. */
static int64_t arc(const fl_tensor *t, int64_t period, int64_t *length) {
  int64_t size = (int64_t)fl_dtype_size(t->dtype), low = 0;
  *length = size;
  for (unsigned i = 0; i < t->rank; i++) {
    int64_t stride = t->strides[i] * size, reach = (t->dims[i] - 1) * stride;
    if (stride % period == 0) continue;
    low += reach < 0 ? reach : 0;
    *length += reach < 0 ? -reach : reach;
  }
  return (int64_t)((uint64_t)t->offset % (uint64_t)period) + low % period + period;
}

static bool separated(const fl_tensor *a, const fl_tensor *b, int64_t period) {
  int64_t a_length, b_length;
  int64_t distance = (arc(b, period, &b_length) - arc(a, period, &a_length)) % period;
  if (distance < 0) distance += period;
  return distance >= a_length && period - distance >= b_length;
}

static bool separated_by_axis_of(const fl_tensor *t, const fl_tensor *a, const fl_tensor *b) {
  for (unsigned i = 0; i < t->rank; i++) {
    int64_t period = t->strides[i] * (int64_t)fl_dtype_size(t->dtype);
    if (t->dims[i] > 1 && period != 0 && separated(a, b, period < 0 ? -period : period)) return true;
  }
  return false;
}

bool fl_disjoint(const fl_tensor *a, const fl_tensor *b) {
  int64_t a_low, a_high, b_low, b_high;
  if (a->space != b->space || a->port != b->port) return true;
  fl_extent(a, &a_low, &a_high), fl_extent(b, &b_low, &b_high);
  if (a_low == a_high || b_low == b_high) return true;
  int64_t a_at = (int64_t)a->offset, b_at = (int64_t)b->offset;
  if (a_at + a_high <= b_at + b_low || b_at + b_high <= a_at + a_low) return true;
  return separated_by_axis_of(a, a, b) || separated_by_axis_of(b, a, b);
}

static int64_t distance_of(const fl_tensor *t, unsigned axis) {
  int64_t stride = t->strides[axis];
  return t->dims[axis] == 1 ? 0 : stride < 0 ? -stride : stride;
}

/* Axes from the smallest stride up: each must step over all that the axes before it reach. */
bool fl_elements_apart(const fl_tensor *t) {
  unsigned order[FL_MAX_RANK], n = 0;
  if (fl_elements(t) == 0) return true;
  for (unsigned i = 0; i < t->rank; i++) {
    unsigned k = n++;
    for (; k > 0 && distance_of(t, order[k - 1]) > distance_of(t, i); k--) order[k] = order[k - 1];
    order[k] = i;
  }
  int64_t reach = 0;
  for (unsigned k = 0; k < n; k++) {
    int64_t distance = distance_of(t, order[k]);
    if (t->dims[order[k]] > 1 && distance <= reach) return false;
    reach += (t->dims[order[k]] - 1) * distance;
  }
  return true;
}
