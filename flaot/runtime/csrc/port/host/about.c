/* What this build of the library is. */
#include "gen/plan.h"
#include "flaot/adapter.h"
#include "port/host/host.h"

void fl_host_numbers(uint32_t numbers[3]);
const char *fl_host_compiler(void);

/* Plan format, kernel ABI, adapter ABI. */
void fl_host_numbers(uint32_t numbers[3]) {
  numbers[0] = FL_PLAN_FORMAT, numbers[1] = FL_PLAN_ABI_NUMBER, numbers[2] = FL_ADAPTER_ABI;
}

const char *fl_host_compiler(void) {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}
