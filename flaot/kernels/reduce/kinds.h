/* Kinds of reduction; the numbers are positions in flaot.ir.ops.reduce.KINDS. */
#ifndef FLAOT_REDUCE_KINDS_H
#define FLAOT_REDUCE_KINDS_H
enum { SUM, MEAN, MAX, MIN, PROD, L1, L2, SUM_SQUARE, LOG_SUM, LOG_SUM_EXP, KINDS };
#endif
