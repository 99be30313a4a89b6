// SPDX-License-Identifier: Apache-2.0
// Knows: every 16-bit value against 512 edge values, for every operation. Never knows: how kernels
// compute.
#include <cmath>

#include "kernels.h"

namespace
{

// What the fp32 results may be that round to each value, found from the reference's numbers: from
// half way to the neighbour below up to half way to the one above, both ends only for even values.
struct Values {
    std::vector<float> number, low, high;
    uint16_t nan;

    explicit Values(twill_type_t type)
        : number(65536), low(65536), high(65536), nan(reference::canonical_nan(type))
    {
        for (unsigned bits = 0; bits < 65536; bits++) {
            number[bits] = (float)reference::decode(type, bits);
        }
        const unsigned inf = reference::encode(type, std::numeric_limits<double>::infinity());
        for (unsigned bits = 0; bits <= inf; bits++) {
            const double below = bits == 0 ? 0 : half_way(bits - 1, inf);
            const double above =
                bits == inf ? std::numeric_limits<double>::infinity() : half_way(bits, inf);
            low[bits] = (float)below;
            high[bits] = (float)above;
            low[bits | 0x8000] = -(float)above;
            high[bits | 0x8000] = -(float)below;
        }
    }

    // between a finite value and the next, or where the next would be
    double half_way(unsigned bits, unsigned inf) const
    {
        const double value = number[bits];
        const double step = bits + 1 < inf ? number[bits + 1] - value : value - number[bits - 1];
        return value + step / 2;
    }

    bool right(float exact, uint16_t got) const
    {
        if (exact != exact) {
            return got == nan;
        }
        if (std::signbit(exact) != (got >> 15) || (got & 0x7fff) > (nan & ~(nan & -nan))) {
            return false;
        }
        return (got & 1) == 0 ? exact >= low[got] && exact <= high[got]
                              : exact > low[got] && exact < high[got];
    }
};

bool pair_right(const Values &values, twill_redop_t op, uint16_t a, uint16_t b, uint16_t got)
{
    const double x = values.number[a];
    const double y = values.number[b];
    if (op == TWILL_SUM || op == TWILL_PROD) {
        return values.right((float)(op == TWILL_SUM ? x + y : x * y), got);
    }
    if (x != x || y != y) {
        return got == values.nan;
    }
    const bool a_below = x < y || (x == y && (a >> 15) > (b >> 15));
    return got == (a_below == (op == TWILL_MIN) ? a : b);
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
    for (unsigned i = 0; i < 65536; i++) {
        left[i] = (uint16_t)i;
        right[i] = edge;
    }
    tw_reduce_find(type, op, isas[0])(want, left, right, 65536);
    for (unsigned i = 0; i < 65536; i++) {
        if (!pair_right(values, op, (uint16_t)i, edge, want[i])) {
            ADD_FAILURE() << reference::name(op) << " of " << reference::name(type) << std::hex
                          << " 0x" << i << " and 0x" << edge << " is 0x" << want[i];
            return;
        }
    }
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
