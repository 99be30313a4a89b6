/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: values by (seed, rank, block, index), and results in the defined order, or with a bound
 * of how far rounding may lead in any order. Never knows: twill's reductions. */
#include "property/expect.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "device/reference.h"

namespace property
{

namespace
{

const size_t PERIOD = 1021; /* elements; prime, so that no cut falls on it by itself */

bool is_float8(twill_type_t type) { return type == TWILL_FLOAT8E4M3 || type == TWILL_FLOAT8E5M2; }

double unit(uint64_t bits) { return (double)(bits >> 11) / 9007199254740992.0; } /* 0 to 1 */

uint64_t wild(twill_type_t type, uint64_t bits)
{
    const uint64_t mask = UINT64_MAX >> (64 - 8 * reference::bytes(type));
    if (!reference::is_float(type))
        return bits & mask;
    const reference::Format format = reference::format(type);
    const uint64_t fraction = ((uint64_t)1 << format.fraction_bits) - 1;
    const uint64_t exponent = (((uint64_t)1 << format.exponent_bits) - 1) << format.fraction_bits;
    switch (mix(bits) % 16) {
    case 0:
        return bits & mask & ~fraction & ~exponent; /* zero */
    case 1:
        return (bits & mask & ~fraction) | exponent; /* infinite, where there is such */
    case 2:
        return (bits & mask) | exponent; /* mostly NaN */
    case 3:
        return bits & mask & ~exponent; /* subnormal */
    default:
        return bits & mask;
    }
}

uint64_t rough(twill_type_t type, int op, uint64_t bits)
{
    const double sign = bits & 1 ? -1 : 1;
    if (op == TWILL_PROD)
        return reference::encode(type, sign * (0.75 + 0.75 * unit(bits)));
    return reference::encode(type, sign * std::ldexp(unit(bits), (int)(bits >> 1 & 7) - 4));
}

std::string shown(twill_type_t type, uint64_t bits)
{
    std::ostringstream out;
    out << std::hex << bits;
    if (reference::is_float(type))
        out << " (" << std::dec << reference::decode(type, bits) << ')';
    return out.str();
}

} // namespace

Scope::Scope(const Call &call, const Place &at, bool deterministic)
    : call_(call), size_(at.size()), root_(call.root % at.size()), deterministic_(deterministic),
      seed_(mix(call.seed + (uint64_t)at.members[0]))
{
}

uint64_t Scope::scalar(int rank) const
{
    const uint64_t bits = mix(seed_ ^ mix((uint64_t)rank + 77));
    if (call_.data == WILD)
        return wild(call_.type, bits);
    if (call_.data == ROUGH)
        return reference::encode(call_.type, (bits & 1 ? -1 : 1) * (0.5 + 1.5 * unit(bits)));
    const int whole = is_float8(call_.type) ? 1 : 1 + (int)(bits >> 8 & 1);
    return reference::from_int(call_.type, bits & 1 ? -whole : whole);
}

/* Whatever the order, no partial result needs rounding, nor is it too large or too small. */
uint64_t Scope::exact_input(int rank, size_t i, uint64_t bits) const
{
    const twill_type_t type = call_.type;
    if (call_.op == TWILL_PROD) { /* ranks take turns at growing and shrinking */
        const double factor = bits & 2 ? 1 : rank & 1 ? 2 : 0.5;
        return reference::encode(type, bits & 1 ? -factor : factor);
    }
    /* e5m2 counts to 8 only: one rank adds nothing */
    if (is_float8(type) && (int)(mix(seed_ + i) % (uint64_t)size_) == rank && size_ > 8)
        return 0;
    const int most = is_float8(type) ? 1 : 7;
    return reference::from_int(type, (int)(bits % (2 * (uint64_t)most + 1)) - most);
}

uint64_t Scope::input(int rank, int block, size_t i) const
{
    const uint64_t bits = mix(seed_ ^ mix(((uint64_t)rank << 32) + ((uint64_t)block << 48) + i));
    if (call_.data == WILD)
        return wild(call_.type, bits);
    return call_.data == ROUGH ? rough(call_.type, call_.op, bits) : exact_input(rank, i, bits);
}

void Scope::fill(uint8_t *at, size_t count, int rank, int block) const
{
    const size_t width = reference::bytes(call_.type), period = PERIOD * width;
    for (size_t i = 0; i < std::min(count, PERIOD); i++)
        reference::store(call_.type, at, i, input(rank, block, i));
    for (size_t done = period; done < count * width; done += period)
        std::memcpy(at + done, at, std::min(period, count * width - done));
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* What a rank adds to the result. */
uint64_t Scope::leaf(int rank, int block, size_t i) const
{
    const uint64_t bits = input(rank, block, i);
    return call_.op == PREMUL ? reference::scale(call_.type, bits, scalar(rank)) : bits;
}

/* Of the wide type: neighbours, split at the largest power of two below their count. */
uint64_t Scope::tree(int first, int count, int block, size_t i) const
{
    const twill_type_t wide = reference::wide_type(call_.type);
    if (count == 1)
        return reference::widen(call_.type, leaf(first, block, i));
    int half = 1;
    while (2 * half < count)
        half *= 2;
    const int op = call_.op == PREMUL ? TWILL_SUM : call_.op;
    return reference::reduce_wide((twill_redop_t)op, wide, tree(first, half, block, i), wide,
                                  tree(first + half, count - half, block, i));
}

uint64_t Scope::reduced(int block, size_t i) const
{
    if (size_ == 1 && call_.op != TWILL_AVG && call_.op != PREMUL)
        return input(0, block, i);
    const uint64_t wide = tree(0, size_, block, i);
    if (call_.op == TWILL_AVG)
        return reference::divide(call_.type, wide, size_);
    if (!reference::is_narrow(call_.type))
        return wide;
    return reference::encode(call_.type, reference::decode(TWILL_FLOAT32, wide));
}

/* One addition has one result, and so has one that nobody may reorder. */
bool Scope::is_exact() const
{
    const bool selects = call_.op == TWILL_MAX || call_.op == TWILL_MIN;
    return call_.data != ROUGH || selects || deterministic_ || size_ <= 2;
}

/* Each of n - 1 operations, and the division, errs by half a unit in the last place of a partial
 * result, which is no larger than the sum of magnitudes (Higham, section 4.2). */
std::string Scope::compare_near(const uint8_t *at, size_t count, int block) const
{
    const reference::Format format = reference::format(call_.type);
    const double half = std::ldexp(1.0, -format.fraction_bits - 1);
    const double tiny =
        std::ldexp(1.0, 2 - (1 << (format.exponent_bits - 1)) - format.fraction_bits);
    /* the bound's own arithmetic, and that of the reference, is long double */
    const double growth = std::expm1(size_ * std::log1p(half)) * 1.01;
    std::vector<long double> want(std::min(count, PERIOD)), bound(want.size());
    for (size_t i = 0; i < want.size(); i++) {
        long double sum = 0, magnitudes = 0, product = 1;
        for (int rank = 0; rank < size_; rank++) {
            const double value = reference::decode(call_.type, leaf(rank, block, i));
            sum += value;
            product *= value;
            magnitudes += std::fabs(value);
        }
        const bool is_product = call_.op == TWILL_PROD;
        const int over = call_.op == TWILL_AVG ? size_ : 1;
        want[i] = is_product ? product : sum / over;
        bound[i] = growth * (is_product ? std::fabs(product) : magnitudes / over) + size_ * tiny;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = reference::load(call_.type, at, i);
        const long double got = reference::decode(call_.type, bits), right = want[i % PERIOD];
        if (std::fabs(got - right) <= bound[i % PERIOD])
            continue;
        std::ostringstream out;
        out << "element " << i << " of " << count << " is " << shown(call_.type, bits)
            << ", wanted " << right << " +- " << bound[i % PERIOD];
        return out.str();
    }
    return "";
}

std::string Scope::compare_exact(const uint8_t *at, const std::vector<uint8_t> &want,
                                 size_t count) const
{
    const size_t width = reference::bytes(call_.type);
    for (size_t i = 0; i < count; i += PERIOD) {
        const size_t here = std::min(PERIOD, count - i);
        if (std::memcmp(at + i * width, want.data(), here * width) == 0)
            continue;
        size_t j = 0;
        while (std::memcmp(at + (i + j) * width, &want[j * width], width) == 0)
            j++;
        return "element " + std::to_string(i + j) + " of " + std::to_string(count) + " is " +
               shown(call_.type, reference::load(call_.type, at, i + j)) + ", wanted " +
               shown(call_.type, reference::load(call_.type, want.data(), j));
    }
    return "";
}

std::string Scope::compare(const uint8_t *at, size_t count, int rank, int block) const
{
    std::vector<uint8_t> want(std::min(count, PERIOD) * reference::bytes(call_.type));
    const bool gathers = many_out(call_.kind), scatters = many_in(call_.kind);
    if (!reduces(call_.kind)) {
        fill(want.data(), std::min(count, PERIOD), gathers ? block : root_, scatters ? rank : 0);
        return compare_exact(at, want, count);
    }
    const int part = scatters ? rank : 0;
    if (!is_exact())
        return compare_near(at, count, part);
    for (size_t i = 0; i < std::min(count, PERIOD); i++)
        reference::store(call_.type, want.data(), i, reduced(part, i));
    return compare_exact(at, want, count);
}

} // namespace property
