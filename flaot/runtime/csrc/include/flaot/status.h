/* Status codes of the runtime, grouped by whose fault. Texts live in status.c and can be left out of firmware. */
#ifndef FLAOT_STATUS_H
#define FLAOT_STATUS_H

typedef enum fl_status {
  FL_OK = 0,
  /* the plan's */
  FL_PLAN_SIZE = 0x100,  /* shorter or longer than its header says, or too short for a header */
  FL_PLAN_MAGIC,         /* not a plan */
  FL_PLAN_ENDIAN,        /* a plan of the other byte order */
  FL_PLAN_VERSION,       /* format version this runtime does not read */
  FL_PLAN_ABI,           /* kernel ABI this runtime does not speak */
  FL_PLAN_DIGEST,        /* SHA-256 differs */
  FL_PLAN_SECTION,       /* section table or a section's bounds, alignment or order */
  FL_PLAN_TENSOR,        /* tensor record: type, rank, dims, strides, bounds, alignment */
  FL_PLAN_STEP,          /* step record: operand counts or indices, targets */
  FL_PLAN_KERNEL,        /* kernel id unknown to this build */
  FL_PLAN_PARAMS,        /* a kernel refuses its parameters or operands */
  FL_PLAN_PORT,          /* input or output record */
  FL_PLAN_STRING,        /* name out of bounds, unterminated or not UTF-8 */
  FL_PLAN_ARENA,         /* arena size or alignment */
  FL_PLAN_RESERVED,      /* a reserved field or padding is not zero */
  FL_PLAN_CHIP,          /* chip or launch record */
  FL_PLAN_ADDRESS,       /* an operand of a step on a chip begins at an address of the wrong alignment, or in another device's memory */
  FL_PLAN_MACHINE,       /* machine record: clock, channels, rates or on-chip memory of a chip */
  FL_PLAN_UNIT,          /* compute unit record: device, count, rate, or a name given twice */
  FL_PLAN_QUEUE,         /* a step on the queue of another kind of step or of another unit, or a kernel that computes on a DMA channel */
  FL_PLAN_WAIT,          /* a step waits for one that does not come before it, or its waits lie out of turn */
  FL_PLAN_COMMAND,       /* command record: hold or work of a step that has none, or no command for every step */
  /* the device's */
  FL_DEVICE_ISA = 0x200, /* the plan needs an instruction set this CPU lacks */
  FL_DEVICE_TYPE,        /* plan for another device type */
  FL_DEVICE_MISSING,     /* a step runs on a chip that no adapter was attached to */
  FL_DEVICE_ABI,         /* the adapter speaks another version of the adapter ABI */
  FL_DEVICE_MEMORY,      /* the chip has no memory left */
  FL_DEVICE_FAILED,      /* the chip or its SDK failed; the adapter's message says how */
  /* a declared limit of the chip or the order of its commands, found at launch; the adapter's message names operand, found and allowed */
  FL_TRAP_ALIGN = 0x280, /* an address of the wrong alignment */
  FL_TRAP_ADDRESS,       /* an address outside the chip's memory */
  FL_TRAP_RANK,
  FL_TRAP_BATCH,
  FL_TRAP_SEQUENCE,
  FL_TRAP_HEADS,
  FL_TRAP_LAYOUT,
  FL_TRAP_DTYPE,
  FL_TRAP_MEMORY,        /* more on-chip memory than the chip has, or an operand in memory its units do not compute on */
  FL_TRAP_EARLY_READ,    /* bytes are read that nothing has written, or that a command not waited for writes */
  FL_TRAP_OVERLAP,       /* bytes are written that a command not waited for reads or writes */
  /* the caller's */
  FL_CALL_NULL = 0x300,  /* a required pointer is null */
  FL_CALL_ALIGN,         /* a pointer is misaligned */
  FL_CALL_ARENA,         /* arena smaller than fl_arena_bytes */
  FL_CALL_PORT,          /* no such input or output, wrong size, or not set */
  FL_CALL_OVERLAP,       /* input, output and arena memory overlap */
  FL_CALL_STATE,         /* context not initialised */
  /* the data's */
  FL_DATA_INDEX = 0x400, /* an index tensor points outside its axis */
  FL_DATA_VALUE          /* another value no kernel can work with (integer division by zero) */
} fl_status;

const char *fl_status_text(fl_status status);

#endif
