/* Every declared limit of a chip, checked on launches and DMA transfers. */
#ifndef FLAOT_NPU_SIM_TRAPS_H
#define FLAOT_NPU_SIM_TRAPS_H
#include "flaot/adapter.h"

enum { FL_MESSAGE = 256 };

/* FL_OK, or the trap, with the sentence in message. Addresses are judged by the caller. */
fl_status fl_trap_of(const fl_chip *chip, const fl_launch *l, char message[FL_MESSAGE]);
fl_status fl_trap_of_dma(const fl_chip *chip, const fl_dma *dma, char message[FL_MESSAGE]);

#endif
