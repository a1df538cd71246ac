/* The portable attention built for AVX2: the same sums in the same order. Its check comes along, unused. */
#define fl_attention_f32_generic fl_sim_attention_avx2
#define fl_attention_f32_check fl_sim_attention_check
#include "attention/generic.c"
