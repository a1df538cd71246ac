/* The four functions a C compiler may call on its own; for firmware without a libc. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict target, const void *restrict source, size_t n);
void *memmove(void *target, const void *source, size_t n);
void *memset(void *target, int value, size_t n);
int memcmp(const void *a, const void *b, size_t n);

void *memcpy(void *restrict target, const void *restrict source, size_t n) {
  volatile uint8_t *t = target; /* volatile: or the loop is recognised as memcpy */
  const uint8_t *s = source;
  while (n--) *t++ = *s++;
  return target;
}

void *memmove(void *target, const void *source, size_t n) {
  volatile uint8_t *t = target;
  const uint8_t *s = source;
  if ((uintptr_t)target <= (uintptr_t)source)
    for (size_t i = 0; i < n; i++) t[i] = s[i];
  else
    while (n--) t[n] = s[n];
  return target;
}

void *memset(void *target, int value, size_t n) {
  volatile uint8_t *t = target;
  while (n--) *t++ = (uint8_t)value;
  return target;
}

int memcmp(const void *a, const void *b, size_t n) {
  const uint8_t *x = a, *y = b;
  for (size_t i = 0; i < n; i++)
    if (x[i] != y[i]) return x[i] - y[i];
  return 0;
}
