#include "port/host/host.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* Register state the operating system saves. */
static uint32_t saved_state(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static bool all(uint32_t value, uint32_t bits) { return (value & bits) == bits; }

uint32_t fl_host_isa(void) {
  const uint32_t fma = 1u << 12, osxsave = 1u << 27, f16c = 1u << 29, avx2 = 1u << 5;
  const uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
  uint32_t a, b, c, d, isa = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !all(c, fma | osxsave | f16c)) return 0;
  uint32_t state = saved_state();
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !all(state, 0x6)) return 0;
  if (all(b, avx2)) isa |= FL_ISA_AVX2;
  if (isa && all(state, 0xE6) && all(b, f | dq | bw | vl)) isa |= FL_ISA_AVX512;
  return isa;
}
#else
uint32_t fl_host_isa(void) { return 0; }
#endif
