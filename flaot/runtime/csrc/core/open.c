#include "core/sha256.h"
#include "core/verify.h"

static fl_status check_magic(const uint8_t *bytes, size_t size) {
  if (size < 4) return FL_PLAN_SIZE;
  uint32_t magic = *(const uint32_t *)(const void *)bytes;
  if (magic == 0x464C5031) return FL_PLAN_ENDIAN;
  if (magic != FL_PLAN_MAGIC_NUMBER) return FL_PLAN_MAGIC;
  return size < sizeof(fl_plan_header) ? FL_PLAN_SIZE : FL_OK;
}

static bool digest_matches(const uint8_t *bytes, size_t size) {
  const fl_plan_header *h = (const void *)bytes;
  size_t start = offsetof(fl_plan_header, digest) + sizeof h->digest;
  uint8_t digest[32], difference = 0;
  fl_sha256(bytes + start, size - start, digest);
  for (unsigned i = 0; i < 32; i++) difference |= digest[i] ^ h->digest[i];
  return difference == 0;
}

static fl_status check_fields(const fl_plan_header *h) {
  if (h->abi != FL_PLAN_ABI_NUMBER) return FL_PLAN_ABI;
  if (h->header_size != sizeof *h) return FL_PLAN_SIZE;
  if (h->flags != 0) return FL_PLAN_RESERVED;
  for (unsigned i = 0; i < sizeof h->reserved; i++)
    if (h->reserved[i] != 0) return FL_PLAN_RESERVED;
  bool power = (h->alignment & (h->alignment - 1)) == 0;
  return power && h->alignment >= FL_MIN_ALIGNMENT && h->alignment <= FL_MAX_ALIGNMENT ? FL_OK : FL_PLAN_ARENA;
}

fl_status fl_verify_header(const uint8_t *bytes, size_t size, bool digest_verified) {
  const fl_plan_header *h = (const void *)bytes;
  fl_status status = check_magic(bytes, size);
  if (status != FL_OK) return status;
  if (h->format != FL_PLAN_FORMAT) return FL_PLAN_VERSION;
  if (h->size != size) return FL_PLAN_SIZE;
  if (!digest_verified && !digest_matches(bytes, size)) return FL_PLAN_DIGEST;
  return check_fields(h);
}

static bool same_text(const uint8_t *a, const char *b) {
  while (*a && *a == (uint8_t)*b) a++, b++;
  return *a == (uint8_t)*b;
}

static fl_status check_devices(fl_plan *plan, const fl_machine *machine) {
  if (plan->device_count == 0) return FL_PLAN_SECTION;
  for (size_t i = 0; i < plan->device_count; i++) {
    const fl_plan_device *d = &plan->devices[i];
    plan->record = (uint32_t)i;
    if (!fl_is_string(plan, d->name) || !fl_is_string(plan, d->device_type)) return FL_PLAN_STRING;
    if (d->reserved[0] | d->reserved[1] | d->reserved[2] | d->reserved[3]) return FL_PLAN_RESERVED;
    if (d->isa & ~machine->isa) return FL_DEVICE_ISA;
    if (i == 0 && machine->device_type && !same_text(plan->strings + d->device_type, machine->device_type)) return FL_DEVICE_TYPE;
  }
  return FL_OK;
}

static fl_status check_entry(const fl_plan *plan) {
  const fl_plan_entry *e = plan->entry;
  if (plan->entry_count != 1) return FL_PLAN_SECTION;
  if (!fl_is_string(plan, e->name)) return FL_PLAN_STRING;
  if (e->kind | e->first_step | e->first_input | e->first_output | e->reserved) return FL_PLAN_RESERVED;
  if (e->step_count != plan->step_count) return FL_PLAN_STEP;
  if (e->input_count != plan->input_count || e->output_count != plan->output_count) return FL_PLAN_PORT;
  if (plan->input_count > FL_MAX_PORTS || plan->output_count > FL_MAX_PORTS) return FL_PLAN_PORT;
  return e->arena <= SIZE_MAX / 2 && e->scratch <= SIZE_MAX / 2 && e->scratch % FL_MIN_ALIGNMENT == 0 ? FL_OK : FL_PLAN_ARENA;
}

static fl_status verify(fl_plan *plan, const fl_machine *machine) {
  fl_status status = fl_verify_header(plan->bytes, plan->size, machine->digest_verified);
  if (status == FL_OK) status = fl_verify_sections(plan);
  if (status == FL_OK) status = fl_verify_strings(plan);
  if (status == FL_OK) status = check_devices(plan, machine);
  if (status == FL_OK) status = check_entry(plan);
  if (status == FL_OK) status = fl_verify_chips(plan);
  if (status == FL_OK) status = fl_verify_tensors(plan);
  if (status == FL_OK) status = fl_verify_steps(plan, machine->isa);
  if (status == FL_OK) status = fl_verify_launches(plan);
  if (status == FL_OK) status = fl_verify_commands(plan);
  return status;
}

fl_status fl_plan_open(fl_plan *plan, const void *bytes, size_t size, const fl_machine *machine) {
  static const fl_machine any = {0, false, NULL};
  if (!plan) return FL_CALL_NULL;
  *plan = (fl_plan){0};
  if (!bytes) return FL_CALL_NULL;
  if ((uintptr_t)bytes % 8 != 0) return FL_CALL_ALIGN;
  plan->bytes = bytes, plan->size = size;
  fl_status status = verify(plan, machine ? machine : &any);
  if (status != FL_OK) plan->bytes = NULL;
  return status;
}
