/* Opening the chip, its memory, and what it says. */
#define _POSIX_C_SOURCE 200809L
#include "device.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const lies[LIE_COUNT] = {"", "bfloat16_is_float16", "alignment", "layout", "rank", "memory", "rounding"};

static const struct { toy_error error; const char *name; } errors[] = {
  {TOY_OK, "TOY_OK"}, {TOY_E_BUSY, "TOY_E_BUSY"}, {TOY_E_CONFIG, "TOY_E_CONFIG"}, {TOY_E_ARGUMENT, "TOY_E_ARGUMENT"},
  {TOY_E_ENTRY, "TOY_E_ENTRY"}, {TOY_E_DRAM, "TOY_E_DRAM"}, {TOY_E_SRAM, "TOY_E_SRAM"}, {TOY_E_UNALIGNED, "TOY_E_UNALIGNED"},
  {TOY_E_BOUNDS, "TOY_E_BOUNDS"}, {TOY_E_AXES, "TOY_E_AXES"}, {TOY_E_FORMAT, "TOY_E_FORMAT"}, {TOY_E_ORDER, "TOY_E_ORDER"},
  {TOY_E_INDEX, "TOY_E_INDEX"}, {TOY_E_LOST, "TOY_E_LOST"},
};
enum { ERRORS = sizeof errors / sizeof *errors };

const char *toy_error_name(toy_error error) {
  for (int i = 0; i < ERRORS; i++)
    if (errors[i].error == error) return errors[i].name;
  return "an unknown error";
}

toy_error toy_say(toy_device *device, toy_error error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(device->text, TOY_TEXT, format, arguments);
  va_end(arguments);
  return error;
}

const char *toy_explain(const toy_device *device) { return device->text; }

/* What the environment asks for; TOY_E_CONFIG for a name that is none. */
static toy_error configure(toy_device *d) {
  const char *lie = getenv("TOY_LIE"), *fault = getenv("TOY_FAULT");
  int found = LIE_NONE, error = 0;
  while (lie && found < LIE_COUNT && strcmp(lies[found], lie) != 0) found++;
  while (fault && *fault && error < ERRORS && strcmp(errors[error].name, fault) != 0) error++;
  if (found == LIE_COUNT || error == ERRORS) return TOY_E_CONFIG;
  d->lie = (toy_lie)found, d->fault = errors[error].error;
  return TOY_OK;
}

toy_error toy_open(toy_device **device) {
  toy_device *d = calloc(1, sizeof *d);
  if (!d) return TOY_E_BUSY;
  toy_error error = configure(d);
  if (error == TOY_OK && d->fault == TOY_E_BUSY) error = TOY_E_BUSY;
  if (error == TOY_OK) *device = d;
  else free(d);
  return error;
}

void toy_close(toy_device *device) {
  toy_drop(device);
  for (uint32_t i = 0; i < device->block_count; i++) free(device->blocks[i].bytes);
  free(device->room);
  free(device);
}

void toy_query(const toy_device *device, toy_info *info) {
  (void)device;
  *info = (toy_info){"Toy-NPU", TOY_GRANULE, TOY_AXES, TOY_QUEUES, TOY_DRAM_BYTES, TOY_SRAM_BYTES};
}

toy_error toy_memory_create(toy_device *d, toy_heap heap, uint64_t size, toy_memory *memory) {
  toy_error full = heap == TOY_SRAM ? TOY_E_SRAM : TOY_E_DRAM;
  uint64_t fitted = heap == TOY_SRAM ? TOY_SRAM_BYTES : TOY_DRAM_BYTES;
  if (heap == TOY_SRAM && d->lie == LIE_MEMORY) fitted /= 2;
  uint64_t left = d->fault == full ? 0 : fitted - d->used[heap];
  if (size == 0) return toy_say(d, TOY_E_ARGUMENT, "a memory object of 0 bytes");
  if (size > left || d->block_count == TOY_MEMORIES) return toy_say(d, full, "%" PRIu64 " bytes wanted, %" PRIu64 " are left", size, left);
  void *bytes = NULL;
  if (posix_memalign(&bytes, TOY_PAGE, (size_t)size) != 0) return toy_say(d, full, "the host has no memory to play the chip's");
  memset(bytes, 0xA5, (size_t)size); /* nothing may rely on what memory holds at first */
  d->used[heap] += size;
  d->blocks[d->block_count++] = (toy_block){bytes, size};
  *memory = d->block_count;
  return TOY_OK;
}

/* The byte at an offset, null unless those from low to high around it lie in the memory object. */
uint8_t *toy_bytes(toy_device *d, toy_memory memory, uint64_t offset, int64_t low, int64_t high) {
  if (memory == 0 || memory > d->block_count) return NULL;
  const toy_block *b = &d->blocks[memory - 1];
  if (offset > b->size) return NULL;
  int64_t at = (int64_t)offset;
  return at + low >= 0 && at + high <= (int64_t)b->size ? b->bytes + at : NULL;
}

static toy_error touch(toy_device *d, toy_memory memory, uint64_t offset, uint64_t size, uint8_t **bytes) {
  *bytes = size <= INT64_MAX / 2 ? toy_bytes(d, memory, offset, 0, (int64_t)size) : NULL;
  if (d->lost) return toy_say(d, TOY_E_LOST, "it was lost before");
  if (*bytes) return TOY_OK;
  return toy_say(d, TOY_E_BOUNDS, "%" PRIu64 " bytes at 0x%" PRIx64 " of memory %u", size, offset, (unsigned)memory);
}

toy_error toy_memory_write(toy_device *d, toy_memory memory, uint64_t offset, const void *source, uint64_t size) {
  uint8_t *bytes;
  toy_error error = touch(d, memory, offset, size, &bytes);
  if (error == TOY_OK) memcpy(bytes, source, (size_t)size);
  return error;
}

toy_error toy_memory_read(toy_device *d, toy_memory memory, uint64_t offset, void *target, uint64_t size) {
  uint8_t *bytes;
  toy_error error = touch(d, memory, offset, size, &bytes);
  if (error == TOY_OK) memcpy(target, bytes, (size_t)size);
  return error;
}
