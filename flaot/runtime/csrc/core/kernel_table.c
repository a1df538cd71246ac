#include "core/kernel_table.h"

const fl_kernel *fl_find_kernel(uint32_t id) {
  size_t low = 0, high = fl_kernel_count;
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (fl_kernels[mid].id < id) low = mid + 1;
    else high = mid;
  }
  return low < fl_kernel_count && fl_kernels[low].id == id ? &fl_kernels[low] : NULL;
}
