// SPDX-License-Identifier: Apache-2.0
// Knows: what each type's bits mean and what each reduction means. Never knows: twill's reductions.
#include "reference.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace reference
{

namespace
{

struct Type {
    const char *name;
    size_t bytes;
    int exponent_bits, fraction_bits; // 0, 0: an integer
    bool is_signed;
};
const Type types[type_count] = {
    {"int8", 1, 0, 0, true},     {"uint8", 1, 0, 0, false},     {"int32", 4, 0, 0, true},
    {"uint32", 4, 0, 0, false},  {"int64", 8, 0, 0, true},      {"uint64", 8, 0, 0, false},
    {"float16", 2, 5, 10, true}, {"float32", 4, 8, 23, true},   {"float64", 8, 11, 52, true},
    {"bfloat16", 2, 8, 7, true}, {"float8e4m3", 1, 4, 3, true}, {"float8e5m2", 1, 5, 2, true},
};
const char *const op_names[redop_count] = {"sum", "prod", "max", "min",
                                           "avg", "band", "bor", "bxor"};

uint64_t mask(twill_type_t type) { return UINT64_MAX >> (64 - 8 * types[type].bytes); }

int bias(twill_type_t type) { return (1 << (types[type].exponent_bits - 1)) - 1; }

bool is_float8(twill_type_t type) { return type == TWILL_FLOAT8E4M3 || type == TWILL_FLOAT8E5M2; }

// The largest finite magnitude's bits.
uint64_t top_bits(twill_type_t type)
{
    const uint64_t inf = ((1ull << types[type].exponent_bits) - 1) << types[type].fraction_bits;
    return type == TWILL_FLOAT8E4M3 ? 0x7e : inf - 1;
}

__extension__ typedef __int128 wide_int;

wide_int int_value(twill_type_t type, uint64_t bits)
{
    const uint64_t top = 1ull << (8 * types[type].bytes - 1);
    return types[type].is_signed && (bits & top) != 0 ? (wide_int)bits - ((wide_int)top << 1)
                                                      : (wide_int)bits;
}

uint64_t int_bits(twill_type_t type, wide_int value) { return (uint64_t)value & mask(type); }

uint64_t reduce_int(twill_type_t type, twill_redop_t op, uint64_t a, uint64_t b)
{
    const wide_int x = int_value(type, a);
    const wide_int y = int_value(type, b);
    switch (op) {
    case TWILL_PROD:
        return (a * b) & mask(type);
    case TWILL_MAX:
        return x < y ? b : a;
    case TWILL_MIN:
        return x < y ? a : b;
    case TWILL_BAND:
        return a & b;
    case TWILL_BOR:
        return a | b;
    case TWILL_BXOR:
        return a ^ b;
    default:
        return int_bits(type, x + y);
    }
}

double combine(twill_redop_t op, double x, double y)
{
    if (op == TWILL_PROD) {
        return x * y;
    }
    if (op != TWILL_MAX && op != TWILL_MIN) {
        return x + y;
    }
    if (std::isnan(x) || std::isnan(y)) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const bool x_below = x < y || (x == y && std::signbit(x));
    return x_below == (op == TWILL_MIN) ? x : y;
}

} // namespace

size_t bytes(twill_type_t type) { return types[type].bytes; }
bool is_float(twill_type_t type) { return types[type].exponent_bits != 0; }
bool is_signed_int(twill_type_t type) { return !is_float(type) && types[type].is_signed; }
Format format(twill_type_t type) { return {types[type].exponent_bits, types[type].fraction_bits}; }
bool has_op(twill_type_t type, twill_redop_t op) { return !is_float(type) || op < TWILL_BAND; }
bool is_narrow(twill_type_t type) { return is_float(type) && types[type].bytes < 4; }
const char *name(twill_type_t type) { return types[type].name; }
const char *name(twill_redop_t op) { return op_names[op]; }
twill_type_t wide_type(twill_type_t type) { return is_narrow(type) ? TWILL_FLOAT32 : type; }

uint64_t load(twill_type_t type, const void *data, size_t i)
{
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const char *>(data) + i * bytes(type), bytes(type));
    return bits;
}

void store(twill_type_t type, void *data, size_t i, uint64_t bits)
{
    std::memcpy(static_cast<char *>(data) + i * bytes(type), &bits, bytes(type));
}

std::vector<uint8_t> pack(twill_type_t type, const std::vector<uint64_t> &elements)
{
    std::vector<uint8_t> data(elements.size() * bytes(type));
    for (size_t i = 0; i < elements.size(); i++) {
        store(type, data.data(), i, elements[i]);
    }
    return data;
}

std::vector<uint64_t> unpack(twill_type_t type, const std::vector<uint8_t> &data)
{
    std::vector<uint64_t> elements(data.size() / bytes(type));
    for (size_t i = 0; i < elements.size(); i++) {
        elements[i] = load(type, data.data(), i);
    }
    return elements;
}

namespace
{

// Of a narrow type, by its definition.
double decode_narrow(twill_type_t type, uint64_t bits)
{
    const int fraction_bits = types[type].fraction_bits;
    const uint64_t sign = 1ull << (8 * bytes(type) - 1);
    const uint64_t magnitude = bits & (sign - 1);
    const int exponent = (int)(magnitude >> fraction_bits);
    const double fraction = (double)(magnitude & ((1ull << fraction_bits) - 1));
    double value;
    if (magnitude > top_bits(type)) {
        value = !(type == TWILL_FLOAT8E4M3) && fraction == 0
                    ? std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::quiet_NaN();
    } else if (exponent == 0) {
        value = std::ldexp(fraction, 1 - bias(type) - fraction_bits);
    } else {
        value = std::ldexp(fraction + std::ldexp(1.0, fraction_bits),
                           exponent - bias(type) - fraction_bits);
    }
    return (bits & sign) != 0 ? -value : value;
}

std::vector<double> decode_all(twill_type_t type)
{
    std::vector<double> all((size_t)1 << (8 * bytes(type)));
    for (size_t bits = 0; bits < all.size(); bits++) {
        all[bits] = decode_narrow(type, bits);
    }
    return all;
}

} // namespace

double decode(twill_type_t type, uint64_t bits)
{
    static const std::vector<double> float16 = decode_all(TWILL_FLOAT16);
    static const std::vector<double> bfloat16 = decode_all(TWILL_BFLOAT16);
    static const std::vector<double> float8e4m3 = decode_all(TWILL_FLOAT8E4M3);
    static const std::vector<double> float8e5m2 = decode_all(TWILL_FLOAT8E5M2);
    double value;
    float single;
    switch (type) {
    case TWILL_FLOAT64:
        std::memcpy(&value, &bits, sizeof(value));
        return value;
    case TWILL_FLOAT32: {
        const uint32_t word = (uint32_t)bits;
        std::memcpy(&single, &word, sizeof(single));
        return single;
    }
    case TWILL_FLOAT16:
        return float16.data()[bits];
    case TWILL_BFLOAT16:
        return bfloat16.data()[bits];
    case TWILL_FLOAT8E4M3:
        return float8e4m3.data()[bits];
    default:
        return float8e5m2.data()[bits];
    }
}

uint64_t widen(twill_type_t type, uint64_t bits)
{
    return is_narrow(type) ? encode(TWILL_FLOAT32, decode(type, bits)) : bits;
}

uint64_t canonical_nan(twill_type_t type)
{
    const Format f = format(type);
    return type == TWILL_FLOAT8E4M3
               ? 0x7f
               : ((2ull << f.exponent_bits) - 1) << (f.fraction_bits - 1); // inf and the next bit
}

uint64_t encode(twill_type_t type, double value)
{
    const Format f = format(type);
    const uint64_t sign = std::signbit(value) ? 1ull << (8 * bytes(type) - 1) : 0;
    if (std::isnan(value)) {
        return canonical_nan(type);
    }
    if (type == TWILL_FLOAT64) {
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        return bits;
    }
    if (type == TWILL_FLOAT32) { // C++ rounds to nearest even
        const float single = (float)value;
        uint32_t bits;
        std::memcpy(&bits, &single, sizeof(bits));
        return bits;
    }
    const double magnitude = std::fabs(value);
    const double largest = decode(type, top_bits(type));
    // a whole number of units in the last place, the ties to even
    int exponent = magnitude == 0 || std::isinf(magnitude) ? 0 : std::ilogb(magnitude);
    exponent = exponent < 1 - bias(type) ? 1 - bias(type) : exponent;
    const int unit = exponent - f.fraction_bits;
    const double rounded = std::isinf(magnitude)
                               ? magnitude
                               : std::ldexp(std::nearbyint(std::ldexp(magnitude, -unit)), unit);
    if (rounded > largest) {
        return sign | (is_float8(type) ? top_bits(type) : top_bits(type) + 1);
    }
    if (rounded == 0) {
        return sign;
    }
    // a carry into the next power of two is right by itself: 2^fraction_bits more
    const uint64_t units = (uint64_t)std::ldexp(rounded, -unit);
    return sign | (((uint64_t)(exponent + bias(type) - 1) << f.fraction_bits) + units);
}

uint64_t reduce_wide(twill_redop_t op, twill_type_t a_type, uint64_t a, twill_type_t b_type,
                     uint64_t b)
{
    if (!is_float(a_type)) {
        return reduce_int(a_type, op, a, b);
    }
    // The fp64 result of two floats of 24 bits rounds to fp32 as the exact one would: 53 >= 2 * 24
    // + 2.
    return encode(wide_type(a_type), combine(op, decode(a_type, a), decode(b_type, b)));
}

uint64_t reduce(twill_type_t type, twill_redop_t op, uint64_t a, uint64_t b)
{
    const uint64_t wide = reduce_wide(op, type, a, type, b);
    return is_narrow(type) ? encode(type, decode(TWILL_FLOAT32, wide)) : wide;
}

uint64_t divide(twill_type_t type, uint64_t a, int n)
{
    if (!is_float(type)) {
        return int_bits(type, int_value(type, a) / n); // C++ truncates toward zero
    }
    const twill_type_t wide = wide_type(type);
    const uint64_t quotient = encode(wide, decode(wide, a) / n);
    return is_narrow(type) ? encode(type, decode(wide, quotient)) : quotient;
}

uint64_t scale(twill_type_t type, uint64_t a, uint64_t scalar)
{
    return reduce(type, TWILL_PROD, a, scalar);
}

uint64_t from_int(twill_type_t type, int value)
{
    const int most = 8; // few numbers are met often
    static std::vector<uint64_t> known[type_count];
    if (!is_float(type) || value < -most || value > most) {
        return is_float(type) ? encode(type, value) : int_bits(type, value);
    }
    if (known[type].empty()) {
        for (int v = -most; v <= most; v++) {
            known[type].push_back(encode(type, v));
        }
    }
    return known[type][value + most];
}

} // namespace reference
