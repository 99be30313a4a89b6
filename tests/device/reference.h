// SPDX-License-Identifier: Apache-2.0
// Knows: what each type's bits mean and what each reduction means, in fp64 and wide integers, one
// element at a time. Never knows: twill's reductions.
#ifndef TW_TESTS_DEVICE_REFERENCE_H
#define TW_TESTS_DEVICE_REFERENCE_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "twill.h"

// Elements are bits in a uint64_t, zero above the type's width.
namespace reference
{

const int type_count = 12;
const int redop_count = 8;

struct Format { // of a float
    int exponent_bits, fraction_bits;
};

size_t bytes(twill_type_t type);
bool is_float(twill_type_t type);
bool is_signed_int(twill_type_t type);
Format format(twill_type_t type);
bool has_op(twill_type_t type, twill_redop_t op);
bool is_narrow(twill_type_t type); // a float that is widened to fp32
const char *name(twill_type_t type);
const char *name(twill_redop_t op);

uint64_t load(twill_type_t type, const void *data, size_t i);
void store(twill_type_t type, void *data, size_t i, uint64_t bits);
std::vector<uint8_t> pack(twill_type_t type, const std::vector<uint64_t> &elements);
std::vector<uint64_t> unpack(twill_type_t type, const std::vector<uint8_t> &data);

double decode(twill_type_t type, uint64_t bits);
// One rounding, to nearest even; NaN canonical; float8 saturates, infinities too.
uint64_t encode(twill_type_t type, double value);
uint64_t canonical_nan(twill_type_t type);
// To the wide type: exact.
uint64_t widen(twill_type_t type, uint64_t bits);

// One operation, rounded to the type. avg reduces as sum.
uint64_t reduce(twill_type_t type, twill_redop_t op, uint64_t a, uint64_t b);
// The same rounded to the wide type; a and b are of these types.
uint64_t reduce_wide(twill_redop_t op, twill_type_t a_type, uint64_t a, twill_type_t b_type,
                     uint64_t b);
// a, of the wide type, over n, rounded to the type.
uint64_t divide(twill_type_t type, uint64_t a, int n);
// The product as premul_sum makes it, rounded to the type.
uint64_t scale(twill_type_t type, uint64_t a, uint64_t scalar);
twill_type_t wide_type(twill_type_t type);

// A whole number, exact if it is small (unsigned types wrap).
uint64_t from_int(twill_type_t type, int value);

} // namespace reference

#endif
