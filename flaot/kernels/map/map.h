/* The driver of the map kernel: y = program(x0, x1, ...) element by element, in chunks whose intermediates stay in L1.
   All operands have the output's dims (repetition is stride 0). Values 0..n_in-1 of an instruction's sources are operands, 32 + k is
   register k; the last instruction writes the output. A dense operand is read where it lies, any other is first gathered. */
#ifndef FLAOT_KERNELS_MAP_H
#define FLAOT_KERNELS_MAP_H
#include "common/move.h"
#include "gen/params.h"

enum { FL_MAP_INSTRS = 64, FL_MAP_REGS = 32, FL_MAP_REG = 32, FL_MAP_ALIGN = 64 };

typedef struct fl_map_instr {
  uint32_t code, type; /* type: T, and R in the second byte */
  uint32_t dst;        /* register; ignored in the last instruction */
  uint32_t src[3];
  union { float f; uint32_t u; } arg[2];
} fl_map_instr;

/* n elements; sources and result are dense and either equal or disjoint. */
typedef fl_status (*fl_map_fn)(const void *const *s, void *y, int32_t n, const fl_map_instr *in);
typedef fl_map_fn (*fl_map_finder)(const fl_map_instr *in);

fl_map_fn fl_map_portable(const fl_map_instr *in); /* null for an instruction there is no code for */

typedef struct map_operand {
  char *p, *room;      /* room: where chunks are gathered, or null */
  const fl_tensor *t;
  int64_t size;
  bool dense, once;    /* once: the gathered chunk is the same for every chunk */
} map_operand;

typedef struct map_state {
  map_operand o[FL_MAX_OPERANDS];
  char *regs[FL_MAP_REGS];
  fl_map_fn fn[FL_MAP_INSTRS];
  const fl_map_instr *in;
  uint32_t n_in, count;
  int64_t rows, inner, chunk, step; /* step: elements a chunk advances at most */
  bool by_row;                      /* chunks end where rows end */
} map_state;

static inline int64_t map_round(int64_t bytes) { return (bytes + FL_MAP_ALIGN - 1) / FL_MAP_ALIGN * FL_MAP_ALIGN; }

static inline uint32_t map_count(const fl_call *c) {
  return (uint32_t)((c->params_size - sizeof(fl_map_params)) / sizeof(fl_map_instr));
}

static inline int64_t map_offset(const fl_tensor *t, int64_t row) {
  int64_t offset = 0;
  for (unsigned i = t->rank < 1 ? 0 : t->rank - 1; i-- > 0; row /= t->dims[i]) offset += row % t->dims[i] * t->strides[i];
  return offset;
}

/* Copies n elements that start at flat index `first` between a strided tensor and its room. */
static inline void map_walk(const map_operand *o, int64_t inner, int64_t first, int64_t n, bool out) {
  int64_t stride = o->t->rank ? o->t->strides[o->t->rank - 1] : 0, row = first / inner, column = first % inner;
  for (char *room = o->room; n > 0; row++, column = 0) {
    int64_t run = inner - column < n ? inner - column : n;
    char *at = o->p + (map_offset(o->t, row) + column * stride) * o->size;
    if (out) fl_move(at, stride, room, 1, run, o->size);
    else fl_move(room, 1, at, stride, run, o->size);
    room += run * o->size, n -= run;
  }
}

/* Where the chunk can be read or written: in the tensor itself, or in the operand's room (gathered here for inputs). */
static inline void *map_at(const map_state *m, const map_operand *o, int64_t first, int64_t n, bool gather) {
  if (o->dense) return o->p + first * o->size;
  if (o->once) return o->room;
  int64_t row = first / m->inner, column = first % m->inner;
  bool unit = o->t->rank && o->t->strides[o->t->rank - 1] == 1;
  if (unit && column + n <= m->inner) return o->p + (map_offset(o->t, row) + column) * o->size;
  if (gather) map_walk(o, m->inner, first, n, false);
  return o->room;
}

static inline fl_status map_chunk(const map_state *m, int64_t first, int64_t n) {
  const void *values[FL_MAX_OPERANDS + FL_MAP_REGS];
  const map_operand *out = &m->o[m->n_in];
  for (uint32_t i = 0; i < m->n_in; i++) values[i] = map_at(m, &m->o[i], first, n, true);
  for (uint32_t i = 0; i < FL_MAP_REGS && m->regs[i]; i++) values[FL_MAP_REG + i] = m->regs[i];
  void *y = map_at(m, out, first, n, false);
  for (uint32_t i = 0; i < m->count; i++) {
    const fl_map_instr *in = &m->in[i];
    const void *s[3] = {values[in->src[0]], values[in->src[1]], values[in->src[2]]};
    fl_status status = m->fn[i](s, i + 1 == m->count ? y : m->regs[in->dst], (int32_t)n, in);
    if (status != FL_OK) return status;
  }
  if (y == (void *)out->room) map_walk(out, m->inner, first, n, true);
  return FL_OK;
}

static inline bool map_once(const map_state *m, const fl_tensor *t) {
  for (unsigned i = 0; i < t->rank; i++) {
    bool last = i + 1u == t->rank;
    if (t->strides[i] != 0 && !(last && !m->by_row && m->step % m->inner == 0)) return false;
  }
  return true;
}

/* Rows shorter than half a chunk are processed several at a time; their number makes patterns that repeat per row repeat per chunk. */
static inline void map_prepare(map_state *m, const fl_call *c, fl_map_finder find) {
  const fl_map_params *p = c->params;
  const fl_tensor *y = c->t[c->n_in];
  m->in = (const fl_map_instr *)p->code, m->count = map_count(c), m->n_in = c->n_in;
  m->inner = y->rank ? y->dims[y->rank - 1] : 1, m->rows = fl_elements(y) / (m->inner ? m->inner : 1), m->chunk = p->chunk;
  m->by_row = y->rank > 1 && 2 * m->inner > m->chunk;
  m->step = m->by_row || y->rank < 2 ? m->chunk : m->chunk / m->inner * m->inner;
  char *room = c->scratch;
  for (uint32_t i = 0; i <= c->n_in; i++) {
    const fl_tensor *t = c->t[i];
    map_operand o = {c->p[i], room, t, (int64_t)fl_dtype_size(t->dtype), fl_is_dense(t), false};
    if (!o.dense) room += map_round(m->chunk * o.size), o.once = i < c->n_in && map_once(m, t);
    m->o[i] = o;
  }
  for (uint32_t i = 0; i < FL_MAP_REGS; i++) {
    m->regs[i] = i < (uint32_t)p->registers ? room : 0;
    room += map_round(m->chunk * p->width);
  }
  for (uint32_t i = 0; i < m->count; i++) m->fn[i] = find(&m->in[i]);
}

static inline fl_status map_run(const fl_call *c, fl_map_finder find) {
  map_state m;
  if (fl_elements(c->t[c->n_in]) == 0) return FL_OK;
  map_prepare(&m, c, find);
  int64_t total = m.rows * m.inner, whole = m.rows > 1 ? m.inner : 1; /* parts are cut at rows, or anywhere in a single row */
  int64_t first = fl_split(total / whole, c->part, c->parts) * whole, end = fl_split(total / whole, c->part + 1, c->parts) * whole;
  for (uint32_t i = 0; i < m.n_in; i++)
    if (m.o[i].once && first < end) map_walk(&m.o[i], m.inner, first, m.step < total - first ? m.step : total - first, false);
  for (int64_t n; first < end; first += n) {
    n = m.step < end - first ? m.step : end - first;
    if (m.by_row && m.inner - first % m.inner < n) n = m.inner - first % m.inner;
    fl_status status = map_chunk(&m, first, n);
    if (status != FL_OK) return status;
  }
  return FL_OK;
}

#endif
