#include "core/verify.h"

/* Length of the UTF-8 sequence at s, 0 when it is not one; n bytes follow. Refuses overlong forms and surrogates. */
static size_t sequence(const uint8_t *s, size_t n) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (s[0] < 0x80) return 1;
  size_t length = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
  if (s[0] < 0xC2 || s[0] > 0xF4 || length > n) return 0;
  uint32_t code = s[0] & (0x7Fu >> length);
  for (size_t i = 1; i < length; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0;
    code = code << 6 | (s[i] & 0x3F);
  }
  bool valid = code >= least[length] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  return valid ? length : 0;
}

fl_status fl_verify_strings(fl_plan *plan) {
  const fl_plan_header *h = (const void *)plan->bytes;
  size_t n = plan->strings_size;
  plan->record = 0;
  if (n == 0 || plan->strings[0] != 0 || plan->strings[n - 1] != 0) return FL_PLAN_STRING;
  for (size_t i = 0; i < n;) {
    size_t length = sequence(plan->strings + i, n - i);
    plan->record = (uint32_t)i;
    if (length == 0) return FL_PLAN_STRING;
    i += length;
  }
  return fl_is_string(plan, h->compiler) ? FL_OK : FL_PLAN_STRING;
}

bool fl_is_string(const fl_plan *plan, uint32_t offset) {
  return offset < plan->strings_size && (offset == 0 || plan->strings[offset - 1] == 0);
}
