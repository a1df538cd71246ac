/* The contract between the runtime and the code that makes a chip run plans: an adapter. It binds the commands of a plan to the chip's
   SDK and implements no operator. All functions return FL_OK or a status of the device's group; message tells a person more.

     open      a chip with these limits; the handle is passed to all other functions. One that fails may leave a handle all the same: then
               message is asked for it, and close gives it back
     alloc     memory of the chip, for as long as the device is open
     copy      between the host's memory and the chip's
     dma       within the chip, between its memory and its on-chip memory; may return before it is done
     launch    one kernel on operands in the chip's on-chip memory; may return before it is done
     sync      waits until everything started is done
     close     gives everything back

   Commands come in the order of the plan. A command starts after those before it on its queue and after those it waits for, and not
   later than that: an adapter that runs every command at once, in the order they come, is correct. */
#ifndef FLAOT_ADAPTER_H
#define FLAOT_ADAPTER_H
#include "flaot/kernel.h"

enum { FL_ADAPTER_ABI = 2 };

typedef struct fl_unit {
  const char *name;
  uint32_t queue, count;
} fl_unit;

enum { FL_MAX_UNITS = 16 };

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
  uint64_t on_chip;          /* bytes of on-chip memory */
  uint32_t channels, queues; /* queues 0 to channels - 1 are the DMA engine's, then one per unit, the last one is that of transfers */
  bool zero_copy;            /* the host sees the chip's memory, and copy moves nothing on a real one */
  uint32_t unit_count;
  fl_unit units[FL_MAX_UNITS];
} fl_chip;

typedef enum fl_memory { FL_MEMORY_OFF_CHIP = 0, FL_MEMORY_ON_CHIP = 1 } fl_memory;

typedef struct fl_command {
  uint32_t step, queue;      /* index of the step */
  const uint32_t *waits;     /* steps that must be complete; some may be the host's or another chip's, those are */
  uint32_t wait_count;
  uint64_t work;             /* operations at the unit's peak rate */
} fl_command;

typedef struct fl_launch {
  fl_command command;
  uint32_t kernel;           /* FNV-1a of "name.variant" */
  const char *unit;
  uint32_t batch, sequence, heads; /* 0: none */
  const fl_tensor *const *t; /* inputs, then outputs, as they are stored in the chip's memory */
  const uint64_t *address;   /* of element (0, ..., 0) of each */
  uint32_t n_in, n_out;
  const void *params;
  size_t params_size;
  size_t scratch_size;       /* bytes the portable kernel works in */
} fl_launch;

/* Elements of one strided tensor to another of the same element type and sizes. */
typedef struct fl_dma {
  fl_command command;
  const fl_tensor *t[2];     /* source, target */
  uint64_t address[2];       /* of element (0, ..., 0) of each */
} fl_dma;

typedef enum fl_direction { FL_TO_DEVICE = 0, FL_FROM_DEVICE = 1 } fl_direction;

/* What a device has done since it was opened; a field it does not know stays 0. */
typedef struct fl_counters {
  uint64_t launches, dmas, copies;       /* copies with a command */
  uint64_t bytes_in, bytes_out;          /* moved by DMA into and out of on-chip memory */
  uint64_t bytes_to_device, bytes_from_device; /* of copies, where they move anything: 0 on a chip with zero_copy */
  uint64_t on_chip_peak;                 /* bytes from the first to the last one of on-chip memory that was touched */
  uint64_t nanoseconds;                  /* it worked */
} fl_counters;

typedef struct fl_adapter {
  uint32_t abi;              /* FL_ADAPTER_ABI */
  const char *device_type;   /* the one it serves; null: any */
  const char *name, *version;
  void *self;
  fl_status (*open)(void *self, const fl_chip *chip, void **device);
  fl_status (*alloc)(void *device, fl_memory memory, uint64_t size, uint32_t alignment, uint64_t *address);
  /* command is null for the constants, which go over before the first run */
  fl_status (*copy)(void *device, const fl_command *command, fl_direction direction, uint64_t address, void *host, uint64_t size);
  fl_status (*dma)(void *device, const fl_dma *dma);
  fl_status (*launch)(void *device, const fl_launch *launch);
  fl_status (*sync)(void *device);
  void (*close)(void *device);
  const char *(*message)(void *device); /* about the last failure; "" when there is none */
  void (*counters)(void *device, fl_counters *counters); /* may be null */
} fl_adapter;

#endif
