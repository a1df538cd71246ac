/* Mutates plans and opens and runs what is left, on memory of exactly the stated sizes, so that the sanitizers see any stray access.
     fuzz bits PLAN...           every truncation and every flipped bit, as is and with the digest recomputed
     fuzz random N SEED PLAN...  N random changes of each plan (bytes, words, copied records), every second one in a section drawn first
   Prints counts; a sanitizer report or a run that computes for over 20 s ends the process with a description of the mutation. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "core/sha256.h"
#include "flaot/flaot.h"
#include "gen/plan.h"
#include "port/host/host.h"

extern const fl_adapter fl_npu_sim;
void __sanitizer_set_death_callback(void (*callback)(void));

enum { LARGEST_ARENA = 1 << 22, MOST_ELEMENTS = 50000, SECONDS = 20, RECORDS = 1500 };

static struct { const char *plan, *kind; size_t a, b; int resealed; } current;
static struct { size_t refused, ran, failed, too_large; } counts;
static struct { uint8_t *bytes; size_t size; const char *name; } plans[4096];
static size_t plan_count;

static void describe(void) {
  fprintf(stderr, "mutation: %s %s %zu %zu%s\n", current.plan, current.kind, current.a, current.b, current.resealed ? " resealed" : "");
}

static void give_up(int signal) {
  (void)signal;
  describe();
  fprintf(stderr, "a run computed for over %d s\n", SECONDS);
  _exit(3);
}

/* Of the process's own time, however busy the machine is. */
static void limit(time_t seconds) {
  struct itimerval timer = {{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &timer, NULL);
}

static void *exact(size_t alignment, size_t size, int fill) {
  void *p = NULL;
  if (posix_memalign(&p, alignment, size ? size : 1) != 0) abort();
  memset(p, fill, size ? size : 1);
  return p;
}

/* A plan may state work that takes hours; such plans are opened, not run. */
static int small_enough(const fl_plan *plan) {
  if (fl_arena_bytes(plan, 1) > LARGEST_ARENA) return 0;
  for (size_t i = 0; i < plan->tensor_count; i++)
    if (fl_elements(&plan->tensors[i]) > MOST_ELEMENTS) return 0;
  for (size_t i = 0; i < plan->chip_count; i++)
    if (plan->chips[i].arena > LARGEST_ARENA || plan->machines[i].on_chip_peak > LARGEST_ARENA) return 0;
  for (size_t i = 0; i < plan->step_count; i++)
    if (plan->steps[i].scratch_size > LARGEST_ARENA) return 0;
  return 1;
}

static void fill(uint8_t *data, size_t size, unsigned dtype) {
  size_t item = fl_dtype_size(dtype), real = dtype == FL_F32;
  for (size_t k = 0; k < size; k++) data[k] = (uint8_t)(real ? k % 4 == 3 ? 0x3f : k * 37 : k % item == 0 ? k / item % 3 : 0);
}

static void set_ports(fl_context *c, const fl_plan *plan, void **ports) {
  for (uint32_t i = 0; i < plan->input_count + plan->output_count; i++) {
    int input = i < plan->input_count;
    const fl_plan_port *port = input ? &plan->inputs[i] : &plan->outputs[i - plan->input_count];
    ports[i] = exact(8, (size_t)port->size, input ? 0x3f : 0xaa);
    if (input) fill(ports[i], (size_t)port->size, plan->tensors[port->tensor].dtype);
    fl_status status = input ? fl_set_input(c, i, ports[i], (size_t)port->size)
                             : fl_set_output(c, i - (uint32_t)plan->input_count, ports[i], (size_t)port->size);
    if (status != FL_OK) abort();
  }
}

static fl_status run(const fl_plan *plan) {
  size_t need = fl_arena_bytes(plan, 1), count = plan->input_count + plan->output_count;
  void *arena = exact(plan->alignment, need, 0xff), **ports = calloc(count + 1, sizeof *ports);
  fl_context context;
  if (fl_context_init(&context, plan, arena, need, NULL) != FL_OK) abort();
  for (uint32_t i = 1; i <= plan->chip_count; i++)
    if (fl_attach(&context, i, &fl_npu_sim) != FL_OK) abort();
  set_ports(&context, plan, ports);
  limit(SECONDS);
  fl_status status = fl_run(&context);
  limit(0);
  fl_detach(&context);
  for (size_t i = 0; i < count; i++) free(ports[i]);
  free(ports), free(arena);
  return status;
}

static void try(const uint8_t *bytes, size_t size, int reseal) {
  fl_plan plan;
  fl_machine machine = {fl_host_isa() & FL_ISA_AVX2, false, NULL};
  size_t start = offsetof(fl_plan_header, digest) + 32;
  uint8_t *copy = malloc(size + !size);
  memcpy(copy, bytes, size);
  current.resealed = reseal;
  if (reseal && size >= sizeof(fl_plan_header)) fl_sha256(copy + start, size - start, copy + start - 32);
  if (fl_plan_open(&plan, copy, size, &machine) != FL_OK) counts.refused++;
  else if (!small_enough(&plan)) counts.too_large++;
  else if (run(&plan) == FL_OK) counts.ran++;
  else counts.failed++;
  free(copy);
}

static void flip_bits(uint8_t *bytes, size_t size) {
  for (size_t bit = 0; bit < 8 * size; bit++) {
    current.kind = "bit", current.a = bit;
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    try(bytes, size, 0), try(bytes, size, 1);
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
}

static void truncate_each(uint8_t *bytes, size_t size) {
  for (size_t n = 0; n < size; n++) {
    uint64_t length = n;
    uint8_t *cut = malloc(n + !n);
    current.kind = "cut", current.a = n;
    memcpy(cut, bytes, n);
    try(cut, n, 0);
    if (n >= sizeof(fl_plan_header)) memcpy(cut + offsetof(fl_plan_header, size), &length, 8);
    try(cut, n, 1);
    free(cut);
  }
}

static uint64_t state;
static uint32_t draw(size_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 33) % (below ? below : 1));
}

/* A byte behind the header with three more behind it: anywhere in the records, or in a section that is drawn first. */
static size_t draw_place(const uint8_t *bytes, size_t size) {
  const fl_plan_header *h = (const void *)bytes;
  const fl_plan_section *table = (const void *)(h + 1);
  if (draw(2) == 0 && h->section_count > 0 && h->section_count <= (size - sizeof *h) / sizeof *table) {
    const fl_plan_section *s = &table[draw(h->section_count)];
    if (s->size >= 4 && s->offset <= size && s->size <= size - s->offset) return (size_t)s->offset + draw((size_t)s->size - 3);
  }
  size_t records = size < RECORDS || draw(8) == 0 ? size : RECORDS; /* weights come last and matter less */
  return sizeof *h + draw(records - sizeof *h - 4);
}

static void change(uint8_t *bytes, size_t size) {
  static const uint32_t words[] = {0, 1, 2, 3, 4, 8, 64, 0x7f, 0x80, 0xff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  size_t at = draw_place(bytes, size), word = at / 4 * 4;
  uint32_t value;
  memcpy(&value, bytes + word, 4);
  switch (draw(6)) {
  case 0: bytes[at] ^= (uint8_t)(1u << draw(8)); return;
  case 1: bytes[at] = (uint8_t)draw(256); return;
  case 2: value = words[draw(sizeof words / sizeof *words)]; break;
  case 3: value += draw(9) - 4; break;
  case 4: memcpy(&value, bytes + draw(size - 4) / 4 * 4, 4); break; /* a number from elsewhere in the plan */
  default: {
    size_t n = (size_t[]){4, 8, 16, 64, 80}[draw(5)], from = draw(size) / 8 * 8;
    if (from + n <= size && at / 8 * 8 + n <= size) memmove(bytes + at / 8 * 8, bytes + from, n);
    return;
  }
  }
  memcpy(bytes + word, &value, 4);
}

static void change_at_random(size_t index, size_t times, uint64_t seed) {
  uint8_t *bytes = malloc(plans[index].size);
  for (size_t i = 0; i < times; i++) {
    memcpy(bytes, plans[index].bytes, plans[index].size);
    current.kind = "seed", current.a = seed, current.b = i;
    state = seed * 1000003 + i + 1;
    for (uint32_t n = 1 + draw(3); n > 0; n--) change(bytes, plans[index].size);
    try(bytes, plans[index].size, 1);
  }
  free(bytes);
}

static void load(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || plan_count == sizeof plans / sizeof *plans) exit(2);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  plans[plan_count].bytes = malloc(size), plans[plan_count].size = size, plans[plan_count].name = path;
  if (fread(plans[plan_count++].bytes, 1, size, file) != size) exit(2);
  fclose(file);
}

int main(int argc, char **argv) {
  int random = argc > 4 && strcmp(argv[1], "random") == 0;
  if (!random && (argc < 3 || strcmp(argv[1], "bits") != 0)) return 2;
  __sanitizer_set_death_callback(describe);
  signal(SIGPROF, give_up);
  for (int i = random ? 4 : 2; i < argc; i++) load(argv[i]);
  for (size_t i = 0; i < plan_count; i++) {
    current.plan = plans[i].name, current.kind = "none";
    size_t ran = counts.ran;
    try(plans[i].bytes, plans[i].size, 0);
    if (counts.ran == ran) return describe(), fprintf(stderr, "the plan itself does not run\n"), 4;
    if (random) change_at_random(i, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
    else truncate_each(plans[i].bytes, plans[i].size), flip_bits(plans[i].bytes, plans[i].size);
  }
  printf("refused %zu ran %zu failed %zu too_large %zu\n", counts.refused, counts.ran, counts.failed, counts.too_large);
  return 0;
}
