// SPDX-License-Identifier: Apache-2.0
// Knows: every 16-bit value against 512 edge values, for every operation. Never knows: how kernels
// compute.
#include <cmath>
#include <numeric>

#include "kernels.h"

namespace
{

// What the fp32 results may be that round to each value, found from the reference's numbers: from
// half way to the neighbour below up to half way to the one above, both ends only for even values.
struct Bounds {
    float low, high;
};

struct Values {
    std::vector<float> number;
    std::vector<Bounds> bounds; // of NaN: none
    unsigned inf;
    uint16_t nan;

    explicit Values(twill_type_t type)
        : number(65536), bounds(65536, {1, -1}), inf(reference::encode(type, HUGE_VAL)),
          nan(reference::canonical_nan(type))
    {
        for (unsigned bits = 0; bits < 65536; bits++) {
            number[bits] = (float)reference::decode(type, bits);
        }
        for (unsigned bits = 0; bits <= inf; bits++) {
            const double below = bits == 0 ? 0 : half_way(bits - 1);
            const double above = bits == inf ? HUGE_VAL : half_way(bits);
            bounds[bits] = {(float)below, (float)above};
            bounds[bits | 0x8000] = {-(float)above, -(float)below};
        }
    }

    // between a finite value and the next, or where the next would be
    double half_way(unsigned bits) const
    {
        const double value = number[bits];
        const double step = bits + 1 < inf ? number[bits + 1] - value : value - number[bits - 1];
        return value + step / 2;
    }
};

// The loops below are the bulk of these tests, and run without the compiler's help.

// The first value of `got` that is wrong, or 65536.
unsigned first_wrong_arithmetic(const Values &values, twill_redop_t op, uint16_t edge,
                                const uint16_t *got)
{
    const float *number = values.number.data();
    const Bounds *bounds = values.bounds.data();
    const double y = number[edge];
    const bool sums = op == TWILL_SUM;
    for (unsigned i = 0; i < 65536; i++) {
        const double x = number[i];
        const float exact = (float)(sums ? x + y : x * y);
        const Bounds &b = bounds[got[i]];
        const bool inside = exact > b.low && exact < b.high;
        if (inside) {
            continue;
        }
        const bool tie = (exact == b.low || exact == b.high) && (got[i] & 1) == 0 &&
                         std::signbit(exact) == (got[i] >> 15);
        if (!tie && !(exact != exact && got[i] == values.nan)) {
            return i;
        }
    }
    return 65536;
}

unsigned first_wrong_order(const Values &values, twill_redop_t op, uint16_t edge,
                           const uint16_t *got)
{
    const float *number = values.number.data();
    const float y = number[edge];
    const bool least = op == TWILL_MIN;
    for (unsigned i = 0; i < 65536; i++) {
        const float x = number[i];
        const bool x_below = x < y || (x == y && i > edge); // the negative zero is the greater i
        const unsigned want = x != x || y != y ? values.nan : x_below == least ? i : edge;
        if (got[i] != want) {
            return i;
        }
    }
    return 65536;
}

std::vector<uint16_t> edges_of(twill_type_t type)
{
    const int fraction = reference::format(type).fraction_bits;
    const unsigned top = (1u << reference::format(type).exponent_bits) - 1;
    const unsigned ones = (1u << fraction) - 1;
    const unsigned middle = top / 2;
    std::vector<uint16_t> edges;
    for (unsigned exponent :
         {0u, 1u, 2u, 4u, middle / 2, middle - 8, middle - 7, middle - 1, middle, middle + 1,
          middle + 8, top - 8, top - 4, top - 2, top - 1, top}) {
        for (unsigned mantissa :
             {0u, 1u, 2u, 3u, ones / 8, ones / 4, ones / 2 - 1, ones / 2, ones / 2 + 1,
              ones / 2 + 2, ones / 3 * 2, ones / 4 * 3, ones - 3, ones - 2, ones - 1, ones}) {
            edges.push_back((uint16_t)(exponent << fraction | mantissa));
            edges.push_back((uint16_t)(0x8000 | exponent << fraction | mantissa));
        }
    }
    return edges;
}

// The first instruction set is held against the reference, the others against it.
void check_edge(twill_type_t type, const Values &values, twill_redop_t op, uint16_t edge)
{
    static uint16_t left[65536];
    static uint16_t right[65536];
    static uint16_t want[65536];
    static uint16_t got[65536];
    const std::vector<tw_isa> isas = isas_here();
    std::iota(left, left + 65536, 0);
    std::fill_n(right, 65536, edge);
    tw_reduce_find(type, op, isas[0])(want, left, right, 65536);
    const bool arithmetic = op == TWILL_SUM || op == TWILL_PROD;
    const unsigned wrong = arithmetic ? first_wrong_arithmetic(values, op, edge, want)
                                      : first_wrong_order(values, op, edge, want);
    ASSERT_EQ(wrong, 65536u) << reference::name(op) << " of " << reference::name(type) << std::hex
                             << " 0x" << wrong << " and 0x" << edge << " is 0x"
                             << want[wrong % 65536];
    for (size_t i = 1; i < isas.size(); i++) {
        tw_reduce_find(type, op, isas[i])(got, left, right, 65536);
        EXPECT_EQ(std::memcmp(got, want, sizeof(got)), 0)
            << reference::name(op) << " of " << reference::name(type) << std::hex << " and 0x"
            << edge << " " << tw_isa_name(isas[i]);
    }
}

void check_type(twill_type_t type)
{
    const Values values(type);
    const std::vector<uint16_t> edges = edges_of(type);
    ASSERT_EQ(edges.size(), 512u);
    for (size_t e = 0; e < edges.size(); e += edge_step) {
        for (const twill_redop_t op : {TWILL_SUM, TWILL_PROD, TWILL_MAX, TWILL_MIN}) {
            check_edge(type, values, op, edges[e]);
        }
    }
}

TEST(Reduce16Bit, EveryFloat16AgainstEdges) { check_type(TWILL_FLOAT16); }
TEST(Reduce16Bit, EveryBfloat16AgainstEdges) { check_type(TWILL_BFLOAT16); }

} // namespace
