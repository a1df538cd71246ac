/* SIMD on GCC vector extensions: one source for every width. Define FL_VL (floats per vector: 8 or 16) before including.
   Built with -ffp-contract=fast, so a * b + c is one FMA. Only min, max, masks and rounding need a line per instruction set.
   A micro-kernel belongs into its own FL_NOINLINE function: inlined into its loop nest it loses its registers to the nest. */
#ifndef FLAOT_KERNELS_SIMD_H
#define FLAOT_KERNELS_SIMD_H
#include <immintrin.h>
#include <stdint.h>

#ifndef FL_VL
#error "define FL_VL as 8 or 16 before including common/simd.h"
#endif
#define FL_INLINE static inline __attribute__((always_inline))
#define FL_NOINLINE static __attribute__((noinline))
#define FL_UNROLL _Pragma("GCC unroll 32")
#define FL_NO_UNROLL _Pragma("GCC unroll 1")
#define FL_FENCE __asm__ volatile("" ::: "memory") /* keeps loads of one unrolled step out of the previous one */
/* For micro-kernels: sum += a * b in place, and x = *p in every lane, in the order written. Left to itself gcc 12 loads weights
   anew for each use, lets sums wander between registers and holds two broadcasts at once: a third of the speed. */
#define FL_FMA(sum, a, b) __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#define FL_BROADCAST(x, p) __asm__ volatile("vbroadcastss %1, %0" : "=v"(x) : "m"(*(p)))

typedef float vf __attribute__((vector_size(4 * FL_VL)));
typedef int32_t vi __attribute__((vector_size(4 * FL_VL)));
typedef uint32_t vu __attribute__((vector_size(4 * FL_VL))); /* where a NaN's bits would overflow vi */
typedef float vf_u __attribute__((vector_size(4 * FL_VL), aligned(4), may_alias));
typedef int32_t vi_u __attribute__((vector_size(4 * FL_VL), aligned(4), may_alias));

FL_INLINE vf v_load(const float *p) { return *(const vf_u *)p; }
FL_INLINE void v_store(float *p, vf v) { *(vf_u *)p = v; }
FL_INLINE vf v_set(float x) { return x - (vf){0}; }
FL_INLINE vf v_select(vi mask, vf a, vf b) { return (vf)(((vi)a & mask) | ((vi)b & ~mask)); } /* mask lanes are 0 or -1 */

/* max and min return the second operand when either is NaN: put constants first to let NaN pass. */
#if FL_VL == 16
FL_INLINE vf v_max(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
FL_INLINE vf v_min(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
#else
FL_INLINE vf v_max(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
FL_INLINE vf v_min(vf a, vf b) { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
#endif
FL_INLINE vf v_clamp(vf v, vf lo, vf hi) { return v_min(hi, v_max(lo, v)); }

/* The first n lanes, 0 <= n <= FL_VL; the others load as 0, are not stored, and touch no memory. */
#if FL_VL == 16
FL_INLINE vf v_load_n(const float *p, int n) { return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p); }
FL_INLINE void v_store_n(float *p, vf v, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v); }
#else
FL_INLINE __m256i v_mask_n(int n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
FL_INLINE vf v_load_n(const float *p, int n) { return (vf)_mm256_maskload_ps(p, v_mask_n(n)); }
FL_INLINE void v_store_n(float *p, vf v, int n) { _mm256_maskstore_ps(p, v_mask_n(n), (__m256)v); }
#endif

#endif
