/* y[i...] = x[i...] for any strides, by element size. */
#include "copy/copy.h"

fl_status fl_copy_check(const fl_call *c) {
  if (c->n_in != 1 || c->n_out != 1 || c->params_size != 0) return FL_PLAN_PARAMS;
  if (c->t[0]->dtype != c->t[1]->dtype || !fl_same_dims(c->t[0], c->t[1])) return FL_PLAN_PARAMS;
  return FL_OK;
}

fl_status fl_copy_generic(const fl_call *c) {
  static const fl_copy_block blocks[9] = {[1] = copy_1, [2] = copy_2, [4] = copy_4, [8] = copy_8};
  return fl_copy_run(c, blocks);
}
