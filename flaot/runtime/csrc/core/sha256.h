/* SHA-256 (FIPS 180-4). */
#ifndef FLAOT_CORE_SHA256_H
#define FLAOT_CORE_SHA256_H
#include <stddef.h>
#include <stdint.h>

void fl_sha256(const uint8_t *data, size_t size, uint8_t digest[32]);

#endif
