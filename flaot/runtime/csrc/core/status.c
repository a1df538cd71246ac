#include "flaot/status.h"

const char *fl_status_text(fl_status status) {
#ifdef FLAOT_NO_TEXT
  (void)status;
  return "";
#else
  switch (status) {
  case FL_OK: return "ok";
  case FL_PLAN_SIZE: return "the plan's length differs from the one in its header";
  case FL_PLAN_MAGIC: return "not a flaot plan";
  case FL_PLAN_ENDIAN: return "a plan for a machine of the other byte order";
  case FL_PLAN_VERSION: return "plan format version not supported";
  case FL_PLAN_ABI: return "plan for another kernel ABI";
  case FL_PLAN_DIGEST: return "the plan's digest does not match its content";
  case FL_PLAN_SECTION: return "bad section table";
  case FL_PLAN_TENSOR: return "bad tensor record";
  case FL_PLAN_STEP: return "bad step record";
  case FL_PLAN_KERNEL: return "the plan uses a kernel this runtime does not have";
  case FL_PLAN_PARAMS: return "a kernel refuses its parameters or operands";
  case FL_PLAN_PORT: return "bad input or output record";
  case FL_PLAN_STRING: return "bad name";
  case FL_PLAN_ARENA: return "bad arena size or alignment";
  case FL_PLAN_RESERVED: return "a reserved field is not zero";
  case FL_PLAN_CHIP: return "bad chip or launch record";
  case FL_PLAN_ADDRESS: return "an operand of a step on a chip is misaligned or lies in another memory";
  case FL_PLAN_MACHINE: return "bad speed or memory of a chip";
  case FL_PLAN_UNIT: return "bad compute unit record";
  case FL_PLAN_QUEUE: return "a step is on a queue that is not its own";
  case FL_PLAN_WAIT: return "a step waits for one that does not come before it, or its waits lie out of turn";
  case FL_PLAN_COMMAND: return "bad hold or work of a step, or not one command per step";
  case FL_DEVICE_MISSING: return "no adapter is attached to the chip";
  case FL_DEVICE_ABI: return "the adapter speaks another version of the adapter ABI";
  case FL_DEVICE_MEMORY: return "the chip has no memory left";
  case FL_DEVICE_FAILED: return "the chip failed";
  case FL_TRAP_ALIGN: return "trap: alignment";
  case FL_TRAP_ADDRESS: return "trap: address";
  case FL_TRAP_RANK: return "trap: rank";
  case FL_TRAP_BATCH: return "trap: batch";
  case FL_TRAP_SEQUENCE: return "trap: sequence";
  case FL_TRAP_HEADS: return "trap: heads";
  case FL_TRAP_LAYOUT: return "trap: layout";
  case FL_TRAP_DTYPE: return "trap: dtype";
  case FL_TRAP_MEMORY: return "trap: memory";
  case FL_TRAP_EARLY_READ: return "trap: early read";
  case FL_TRAP_OVERLAP: return "trap: overlap";
  case FL_DEVICE_ISA: return "the plan needs an instruction set this CPU does not have";
  case FL_DEVICE_TYPE: return "the plan is for another device type";
  case FL_CALL_NULL: return "a required pointer is null";
  case FL_CALL_ALIGN: return "a pointer is not aligned as required";
  case FL_CALL_ARENA: return "the arena is too small";
  case FL_CALL_PORT: return "no such input or output, or its size is wrong";
  case FL_CALL_OVERLAP: return "input, output or arena memory overlaps";
  case FL_CALL_STATE: return "the context is not initialised";
  case FL_DATA_INDEX: return "an index lies outside its axis";
  case FL_DATA_VALUE: return "a value the operator is not defined for";
  }
  return "unknown status";
#endif
}
