/* A Cortex-M program without a libc: vector table, memory set up, FPU on, main, exit by semihosting. */
#include <stdint.h>

extern uint32_t stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];
int main(void);
void reset(void);

static void leave(int code) {
  struct { uint32_t reason, code; } arguments = {0x20026, (uint32_t)code}; /* ADP_Stopped_ApplicationExit */
  register uint32_t operation __asm("r0") = 0x20; /* SYS_EXIT_EXTENDED carries the code */
  register void *argument __asm("r1") = &arguments;
  for (;;) __asm volatile("bkpt 0xAB" : "+r"(operation) : "r"(argument) : "memory");
}

static void fault(void) { leave(99); }

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
  (void (*)(void))(uintptr_t)stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault};

void reset(void) {
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: coprocessors 10 and 11, the FPU */
  __asm volatile("dsb\n isb");
  for (uint32_t *from = data_load, *to = data_start; to < data_end;) *to++ = *from++;
  for (uint32_t *to = bss_start; to < bss_end;) *to++ = 0;
  leave(main());
}
