/* The square root for cores without an instruction for it, correctly rounded like the instruction: bit by bit over integers. */
#include <stdint.h>

float sqrtf(float x);

typedef union bits {
  float value;
  uint32_t word;
} bits;

/* Root of m * 2^e with m in [2^23, 2^24) and e even or odd: 24 bits and one more to round by; a tie cannot happen. */
static uint32_t root_bits(uint32_t m, int odd) {
  uint32_t root = 0, twice = 0, rest = m << (odd ? 2 : 1);
  for (uint32_t bit = 0x1000000u; bit; bit >>= 1) {
    if (twice + bit <= rest) rest -= twice + bit, twice += bit << 1, root += bit;
    rest <<= 1;
  }
  return (rest != 0 ? root + (root & 1) : root) >> 1;
}

float sqrtf(float x) {
  bits in = {x}, out;
  if (!(x > 0.0f) || in.word == 0x7F800000u) return x < 0.0f ? (x - x) / 0.0f : x;
  int32_t exponent = (int32_t)(in.word >> 23);
  uint32_t m = in.word & 0x7FFFFFu;
  if (exponent > 0) m |= 0x800000u;
  else for (exponent = 1; m < 0x800000u; exponent--) m <<= 1;
  exponent -= 127;
  int32_t half = (exponent - (exponent & 1)) / 2;
  out.word = root_bits(m, exponent & 1) + ((uint32_t)(half + 126) << 23);
  return out.value;
}
