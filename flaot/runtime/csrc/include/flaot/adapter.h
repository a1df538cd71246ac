/* The contract between the runtime and the code that makes a chip run plans: an adapter. It binds the commands of a plan to the chip's
   SDK and implements no operator. All functions return FL_OK or a status of the device's group; message tells a person more.

     open    a chip with these limits; the handle is passed to all other functions
     alloc   memory of the chip, for as long as the device is open
     copy    between the host's memory and the chip's
     launch  one kernel on operands in the chip's memory; may return before it is done
     sync    waits until everything launched is done
     close   gives everything back */
#ifndef FLAOT_ADAPTER_H
#define FLAOT_ADAPTER_H
#include "flaot/kernel.h"

enum { FL_ADAPTER_ABI = 1 };

/* What the plan says about the chip; 0 is no limit. Lives as long as the plan. */
typedef struct fl_chip {
  const char *name, *device_type;
  uint32_t alignment;        /* bytes, of every buffer */
  uint32_t max_rank, max_batch, max_sequence, max_attention;
  uint32_t dtypes;           /* bit n: element type n */
  uint32_t rounding;         /* fl_rounding */
  bool flush;                /* denormal results become zero */
  uint32_t layout_count;
  const uint8_t (*layouts)[4]; /* axis orders of tensors of rank 4, outermost first */
  uint32_t head_count;       /* 0: any */
  const uint32_t *heads;
} fl_chip;

typedef struct fl_launch {
  uint32_t step, kernel;     /* index of the step, FNV-1a of "name.variant" */
  const char *unit;
  uint32_t batch, sequence, heads; /* 0: none */
  const fl_tensor *const *t; /* inputs, then outputs, as they are stored in the chip's memory */
  const uint64_t *address;   /* of element (0, ..., 0) of each */
  uint32_t n_in, n_out;
  const void *params;
  size_t params_size;
  size_t scratch_size;       /* bytes the portable kernel works in */
} fl_launch;

typedef enum fl_direction { FL_TO_DEVICE = 0, FL_FROM_DEVICE = 1 } fl_direction;

typedef struct fl_adapter {
  uint32_t abi;              /* FL_ADAPTER_ABI */
  const char *device_type;   /* the one it serves; null: any */
  const char *name, *version;
  void *self;
  fl_status (*open)(void *self, const fl_chip *chip, void **device);
  fl_status (*alloc)(void *device, uint64_t size, uint32_t alignment, uint64_t *address);
  fl_status (*copy)(void *device, fl_direction direction, uint64_t address, void *host, uint64_t size);
  fl_status (*launch)(void *device, const fl_launch *launch);
  fl_status (*sync)(void *device);
  void (*close)(void *device);
  const char *(*message)(void *device); /* about the last failure; "" when there is none */
} fl_adapter;

#endif
