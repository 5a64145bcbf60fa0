// CVectors: vector instructions that Swift's SIMD types have no operation for. One instruction a
// function where the processor has it, no policy.
//
// The compiler recognizes them in Swift only while it cannot see where the operands come from.
// With them a JPEG of 2400×1600 to 800 pixels takes 0.74 of the job's processor time.
#pragma once

#include <stdint.h>

typedef int16_t pictor_int16x8 __attribute__((vector_size(16)));
typedef int32_t pictor_int32x4 __attribute__((vector_size(16)));

/// Multiplies element by element and adds the two products of each pair (SSE2: PMADDWD). The sum of
/// a pair is in 32 bits, modulo 2^32.
static inline __attribute__((always_inline)) pictor_int32x4 pictor_vectors_multiply_add(
    pictor_int16x8 a, pictor_int16x8 b) {
#if defined(__SSE2__)
  return (pictor_int32x4)__builtin_ia32_pmaddwd128(a, b);
#else
  pictor_int32x4 sums;
  for (int i = 0; i < 4; i++)
    sums[i] = (int32_t)((uint32_t)(a[2 * i] * b[2 * i]) + (uint32_t)(a[2 * i + 1] * b[2 * i + 1]));
  return sums;
#endif
}

/// Returns the lower elements of both, in turn (SSE2: PUNPCKLWD).
static inline __attribute__((always_inline)) pictor_int16x8 pictor_vectors_interleave_low(
    pictor_int16x8 a, pictor_int16x8 b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

/// Returns the upper elements of both, in turn (SSE2: PUNPCKHWD).
static inline __attribute__((always_inline)) pictor_int16x8 pictor_vectors_interleave_high(
    pictor_int16x8 a, pictor_int16x8 b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
