/* The vector convolutions for AVX2 with FMA. */
#define FL_VL 8
#define FL_CONV_GEMM fl_conv_gemm_f32_avx2
#define FL_CONV_DW fl_conv_dw_f32_avx2
#include "conv/vec_dw.h"
#include "conv/vec_gemm.h"
#define FL_CONV_WINO fl_conv_wino_f32_avx2
#include "conv/vec_wino.h"
#define FL_CONV_STEM fl_conv_stem_f32_avx2
#include "conv/vec_stem.h"
