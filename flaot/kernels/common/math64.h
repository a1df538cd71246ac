/* Elementary functions in double precision by series, portable like math.h: for float64 tensors, and for the rare functions of
   float32 tensors, whose float32 results are then correctly rounded but for ties. Relative error below 1e-14 where finite. */
#ifndef FLAOT_KERNELS_MATH64_H
#define FLAOT_KERNELS_MATH64_H
#include <stdbool.h>
#include <stdint.h>

typedef union fl_bits64 { double f; int64_t i; uint64_t u; } fl_bits64;

#define FL_INF __builtin_inf()
#define FL_NAN __builtin_nan("")

static inline double fl_fabs(double x) { return x < 0.0 ? -x : x; }
static inline bool fl_isnan(double x) { return !(x == x); }
static inline double fl_signed(double magnitude, double sign) { /* magnitude >= 0 */
  fl_bits64 m, s;
  m.f = magnitude, s.f = sign;
  m.u |= s.u & 0x8000000000000000u;
  return m.f;
}

/* Toward zero; values of 2^52 and more are whole already. */
static inline double fl_trunc(double x) { return fl_fabs(x) < 4503599627370496.0 ? fl_signed(fl_fabs((double)(int64_t)x), x) : x; }
static inline double fl_floor(double x) { double t = fl_trunc(x); return t > x ? t - 1.0 : t; }
static inline double fl_ceil(double x) { double t = fl_trunc(x); return t < x ? fl_signed(t + 1.0, x) : t; }
static inline double fl_rint(double x) { /* halves to even */
  if (!(fl_fabs(x) < 4503599627370496.0)) return x;
  double a = fl_fabs(x) + 4503599627370496.0;
  return fl_signed(a - 4503599627370496.0, x);
}

static inline double fl_pow2(int32_t n) { fl_bits64 b; b.i = (int64_t)(n + 1023) * 4503599627370496; return b.f; } /* normal results */

static inline double fl_exp(double x) {
  if (fl_isnan(x)) return x;
  if (x > 709.8) return FL_INF;
  if (x < -745.2) return 0.0;
  double k = fl_rint(x * 1.4426950408889634);
  double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10, q = 1.0;
  for (int i = 14; i > 0; i--) q = q * r / i + 1.0;
  int32_t n = (int32_t)k, half = n / 2;
  return q * fl_pow2(half) * fl_pow2(n - half);
}

/* exp(x) - 1 without cancellation near 0. */
static inline double fl_expm1(double x) {
  if (fl_fabs(x) > 0.5 || fl_isnan(x)) return fl_exp(x) - 1.0;
  double q = 1.0;
  for (int i = 15; i > 1; i--) q = q * x / i + 1.0;
  return q * x;
}

/* 2 atanh(s) = log((1 + s) / (1 - s)), |s| <= 0.18 */
static inline double fl_atanh_series(double s) {
  double z = s * s, q = 0.0;
  for (int i = 23; i > 0; i -= 2) q = q * z + 1.0 / i;
  return 2.0 * s * q;
}

static inline double fl_log(double x) {
  if (fl_isnan(x) || x < 0.0) return FL_NAN;
  if (x == 0.0) return -FL_INF;
  if (x == FL_INF) return x;
  int32_t e = 0;
  if (x < 2.2250738585072014e-308) x *= 18014398509481984.0, e = -54;
  fl_bits64 b;
  b.f = x;
  e += (int32_t)(b.u >> 52) - 1023;
  b.u = (b.u & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u;
  if (b.f > 1.4142135623730951) b.f *= 0.5, e++;
  return fl_atanh_series((b.f - 1.0) / (b.f + 1.0)) + e * 1.90821492927058770002e-10 + e * 6.93147180369123816490e-01;
}

static inline double fl_log1p(double x) {
  return fl_fabs(x) < 0.25 ? fl_atanh_series(x / (2.0 + x)) : fl_log(1.0 + x);
}

/* Correctly rounded, bit by bit, where the machine has no instruction for it. */
static inline double fl_sqrt(double x) {
#if defined(__SSE2__) || defined(__aarch64__)
  return __builtin_sqrt(x);
#else
  if (!(x > 0.0) || x == FL_INF) return x == 0.0 || x == FL_INF || fl_isnan(x) ? x : FL_NAN;
  double scale = 1.0;
  if (x < 2.2250738585072014e-308) x *= 18014398509481984.0, scale = 7.450580596923828125e-09;
  fl_bits64 b;
  b.f = x;
  int32_t e = (int32_t)(b.u >> 52) - 1023;
  uint64_t m = (b.u & 0xFFFFFFFFFFFFFu) | 0x10000000000000u, root = 0, rest = 0;
  if (e & 1) m <<= 1, e--;
  for (int i = 0; i < 54; i++) { /* two bits of m (then zeros) per bit of the root */
    rest = rest << 2 | (i < 27 ? m >> (52 - 2 * i) & 3 : 0);
    root <<= 1;
    if (rest >= 2 * root + 1) rest -= 2 * root + 1, root++;
  }
  root += (root & 1) != 0; /* the 54th bit rounds; the remainder is never half */
  return (double)(root >> 1) * fl_pow2(e / 2 - 52) * scale;
#endif
}

/* a mod m, exactly: subtracts the largest m * 2^k not above a until nothing fits. a >= 0, m normal. */
static inline double fl_fmod_steps(double a, double m) {
  while (a >= m) {
    fl_bits64 p, q;
    p.f = a, q.f = m;
    int32_t k = (int32_t)(p.u >> 52) - (int32_t)(q.u >> 52);
    double d = m;
    for (; k > 1000; k -= 1000) d *= fl_pow2(1000);
    d *= fl_pow2(k);
    a -= d > a ? d * 0.5 : d;
  }
  return a;
}

/* Exact remainder with the sign of x. A denormal y is reached over y * 2^60, a multiple of it. */
static inline double fl_fmod(double x, double y) {
  double a = fl_fabs(x), m = fl_fabs(y), up = 1152921504606846976.0;
  if (fl_isnan(x) || fl_isnan(y) || a == FL_INF || m == 0.0) return FL_NAN;
  if (m == FL_INF) return x;
  if (m >= 2.2250738585072014e-308) return fl_signed(fl_fmod_steps(a, m), x);
  return fl_signed(fl_fmod_steps(fl_fmod_steps(a, m * up) * up, m * up) / up, x);
}

/* Remainder with the sign of y, zeros included. */
static inline double fl_mod(double x, double y) {
  double r = fl_fmod(x, y);
  return r == 0.0 ? fl_signed(0.0, y) : (r < 0.0) != (y < 0.0) ? r + y : r;
}

static inline bool fl_is_odd(double y) { return fl_fabs(y) < 9007199254740992.0 && fl_fmod(y, 2.0) != 0.0; }

/* As C's pow; about 1e-13 times the exponent's magnitude. */
static inline double fl_pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (fl_isnan(x) || fl_isnan(y)) return FL_NAN;
  bool whole = fl_trunc(y) == y, odd = whole && fl_is_odd(y);
  double a = fl_fabs(x), r;
  if (fl_fabs(y) == FL_INF) return a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? FL_INF : 0.0;
  if (x < 0.0 && !whole && a != FL_INF) return FL_NAN;
  if (a == 0.0 || a == FL_INF) {
    r = (a == 0.0) == (y < 0.0) ? FL_INF : 0.0;
  } else if (whole && fl_fabs(y) <= 64.0) { /* short powers by squaring */
    double b = a;
    r = 1.0;
    for (int32_t n = (int32_t)fl_fabs(y); n; n >>= 1, b *= b) r = n & 1 ? r * b : r;
    r = y < 0.0 ? 1.0 / r : r;
  } else {
    r = fl_exp(y * fl_log(a));
  }
  fl_bits64 s;
  s.f = x;
  return odd && s.u >> 63 ? -r : r;
}

/* x - k pi / 2 with |result| <= pi / 4 and k modulo 4; exact enough for |x| below 2^30, beyond it the argument is first reduced. */
static inline double fl_quadrant(double x, int32_t *k) {
  if (fl_fabs(x) > 1073741824.0) x = fl_fmod(x, 6.283185307179586);
  double n = fl_rint(x * 0.6366197723675814);
  *k = (int32_t)((int64_t)n & 3);
  return ((x - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
}

static inline double fl_sin_series(double r, bool cosine) {
  double z = r * r, q = 1.0;
  for (int i = cosine ? 17 : 18; i > 0; i -= 2) q = 1.0 - q * z / (i * (i + 1));
  return cosine ? q : q * r;
}

static inline double fl_sin(double x) {
  if (fl_isnan(x - x)) return FL_NAN;
  int32_t k;
  double r = fl_quadrant(x, &k), y = fl_sin_series(r, k & 1);
  return k & 2 ? -y : y;
}

static inline double fl_cos(double x) {
  if (fl_isnan(x - x)) return FL_NAN;
  int32_t k;
  double r = fl_quadrant(x, &k), y = fl_sin_series(r, !(k & 1));
  return k == 1 || k == 2 ? -y : y;
}

static inline double fl_tan(double x) { return fl_sin(x) / fl_cos(x); }

/* Two half-angle steps bring the argument below 0.2, then the series. */
static inline double fl_atan(double x) {
  if (fl_isnan(x)) return x;
  double a = fl_fabs(x), z, q = 0.0;
  bool inverse = a > 1.0;
  a = inverse ? 1.0 / a : a;
  for (int i = 0; i < 2; i++) a = a / (1.0 + fl_sqrt(1.0 + a * a));
  z = -a * a;
  for (int i = 23; i > 0; i -= 2) q = q * z + 1.0 / i;
  q *= 4.0 * a;
  return fl_signed(inverse ? 1.5707963267948966 - q : q, x);
}

static inline double fl_asin(double x) {
  if (!(fl_fabs(x) <= 1.0)) return FL_NAN;
  return fl_fabs(x) == 1.0 ? fl_signed(1.5707963267948966, x) : fl_atan(x / fl_sqrt((1.0 - x) * (1.0 + x)));
}

static inline double fl_acos(double x) {
  if (!(fl_fabs(x) <= 1.0)) return FL_NAN;
  return x == -1.0 ? 3.141592653589793 : 2.0 * fl_atan(fl_sqrt((1.0 - x) / (1.0 + x)));
}

static inline double fl_sinh(double x) {
  if (fl_fabs(x) > 20.0) return fl_signed(0.5 * fl_exp(0.5 * fl_fabs(x)) * fl_exp(0.5 * fl_fabs(x)), x);
  double e = fl_expm1(fl_fabs(x));
  return fl_signed(0.5 * (e + e / (e + 1.0)), x);
}

static inline double fl_cosh(double x) {
  double e = fl_exp(0.5 * fl_fabs(x));
  return 0.5 * e * e + 0.5 / e / e;
}

static inline double fl_tanh(double x) {
  if (fl_fabs(x) > 22.0) return fl_signed(1.0, x);
  double e = fl_expm1(2.0 * fl_fabs(x));
  return fl_isnan(x) ? x : fl_signed(e / (e + 2.0), x);
}

static inline double fl_asinh(double x) {
  double a = fl_fabs(x);
  if (fl_isnan(x) || a == FL_INF) return x;
  double y = a > 1e8 ? fl_log(a) + 0.6931471805599453 : fl_log1p(a + a * a / (1.0 + fl_sqrt(1.0 + a * a)));
  return fl_signed(y, x);
}

static inline double fl_acosh(double x) {
  if (!(x >= 1.0)) return FL_NAN;
  double t = x - 1.0;
  return x > 1e8 ? fl_log(x) + 0.6931471805599453 : fl_log1p(t + fl_sqrt(2.0 * t + t * t));
}

static inline double fl_atanh(double x) {
  double a = fl_fabs(x);
  if (!(a <= 1.0)) return FL_NAN;
  return a == 1.0 ? fl_signed(FL_INF, x) : fl_signed(0.5 * fl_log1p(2.0 * a / (1.0 - a)), x);
}

/* 2/sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (1 3 ... 2n+1): all terms positive. */
static inline double fl_erf(double x) {
  double a = fl_fabs(x), term = a, sum = a;
  if (fl_isnan(x)) return x;
  if (a > 6.0) return fl_signed(1.0, x);
  for (int n = 1; n < 150 && term > sum * 1e-17; n++) term *= 2.0 * a * a / (2 * n + 1), sum += term;
  return fl_signed(1.1283791670955126 * fl_exp(-a * a) * sum, x);
}

static inline double fl_sigmoid(double x) { return 1.0 / (1.0 + fl_exp(-x)); }
static inline double fl_softplus(double x) { return x > 0.0 ? x + fl_log1p(fl_exp(-x)) : fl_log1p(fl_exp(x)); }

#endif
