/* What a plan must satisfy before the map kernel runs it: known instructions on values that exist, with the types they expect. */
#ifndef FLAOT_KERNELS_MAP_CHECK_H
#define FLAOT_KERNELS_MAP_CHECK_H
#include "map/map.h"

/* Expected type of source k and type of the result (k == 3); 0 where an instruction has no such source. */
static uint32_t map_type(const fl_map_instr *in, unsigned k) {
  uint32_t t = in->type & 0xFF, r = in->type >> 8 & 0xFF;
  switch (in->code >> 8) {
  case 0: return k == 0 || k == 3 ? t : 0;
  case 1: return k == 2 ? 0 : t;
  case 2: return k == 2 ? 0 : k == 3 ? (uint32_t)FL_BOOL : t;
  case 3: return k == 0 ? t : k == 3 ? (uint32_t)FL_BOOL : 0;
  case 4: return k == 0 ? (uint32_t)FL_BOOL : t;
  case 5: return k == 0 ? t : k == 3 ? r : 0;
  case 6: return k < 2 ? (uint32_t)FL_F32 : r;
  case 7: return k == 1 || k == 3 ? (uint32_t)FL_F32 : t;
  default: return 0;
  }
}

static bool map_instr_ok(const fl_call *c, const fl_map_params *p, const fl_map_instr *in, bool last, uint8_t types[FL_MAP_REGS]) {
  if (in->type > 0xFFFF || !fl_map_portable(in)) return false;
  for (unsigned k = 0; k < 3; k++) {
    uint32_t want = map_type(in, k), at = in->src[k];
    bool operand = at < c->n_in, reg = at >= FL_MAP_REG && at - FL_MAP_REG < (uint32_t)p->registers;
    if (!want && at != 0) return false;
    if (want && !operand && !reg) return false;
    if (want && want != (operand ? c->t[at]->dtype : types[at - FL_MAP_REG])) return false;
  }
  uint32_t result = map_type(in, 3);
  if (last) return result == c->t[c->n_in]->dtype;
  if (in->dst >= (uint32_t)p->registers || fl_dtype_size(result) > (size_t)p->width) return false;
  types[in->dst] = (uint8_t)result;
  return true;
}

static fl_status map_check(const fl_call *c) {
  const fl_map_params *p = c->params;
  if (c->n_in < 1 || c->n_out != 1 || c->params_size < sizeof *p + sizeof(fl_map_instr)) return FL_PLAN_PARAMS;
  if ((c->params_size - sizeof *p) % sizeof(fl_map_instr) || map_count(c) > FL_MAP_INSTRS) return FL_PLAN_PARAMS;
  if (p->chunk < 64 || p->chunk > 65536 || p->registers < 0 || p->registers > FL_MAP_REGS || p->width < 1 || p->width > 8) return FL_PLAN_PARAMS;
  int64_t need = p->registers * map_round((int64_t)p->chunk * p->width);
  for (uint32_t i = 0; i <= c->n_in; i++) {
    if (!fl_same_dims(c->t[i], c->t[c->n_in])) return FL_PLAN_PARAMS;
    if (!fl_is_dense(c->t[i])) need += map_round(p->chunk * (int64_t)fl_dtype_size(c->t[i]->dtype));
  }
  if ((uint64_t)need > c->scratch_size) return FL_PLAN_PARAMS;
  uint8_t types[FL_MAP_REGS] = {0};
  const fl_map_instr *in = (const fl_map_instr *)p->code;
  for (uint32_t i = 0, n = map_count(c); i < n; i++)
    if (!map_instr_ok(c, p, &in[i], i + 1 == n, types)) return FL_PLAN_PARAMS;
  return FL_OK;
}

#endif
