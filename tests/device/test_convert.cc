// SPDX-License-Identifier: Apache-2.0
// Knows: the contract of src/device/convert.h. Never knows: how kernels convert.
#include "kernels.h"
#include "world.h"

namespace
{

using namespace reference;

const twill_type_t narrow_types[] = {TWILL_FLOAT16, TWILL_BFLOAT16, TWILL_FLOAT8E4M3,
                                     TWILL_FLOAT8E5M2};

TEST(Convert, WideTypes)
{
    for (int type = 0; type < type_count; type++) {
        const twill_type_t t = (twill_type_t)type;
        EXPECT_EQ(tw_wide_type(t), is_narrow(t) ? TWILL_FLOAT32 : t);
        EXPECT_EQ(tw_widen_find(t, TW_ISA_PORTABLE) != nullptr, is_narrow(t));
        EXPECT_EQ(tw_round_find(t, TW_ISA_PORTABLE) != nullptr, is_narrow(t));
    }
    EXPECT_EQ(tw_widen_find((twill_type_t)12, TW_ISA_PORTABLE), nullptr);
    EXPECT_EQ(tw_round_find(TWILL_FLOAT16, TW_ISA_COUNT), nullptr);
}

TEST(Convert, EveryNarrowValueWidens)
{
    for (const twill_type_t type : narrow_types) {
        std::vector<uint64_t> all((size_t)1 << (8 * bytes(type)));
        std::vector<uint64_t> want(all.size());
        for (size_t i = 0; i < all.size(); i++) {
            all[i] = i;
            want[i] = encode(TWILL_FLOAT32, decode(type, i));
        }
        const std::vector<uint8_t> from = pack(type, all);
        for (const tw_isa isa : isas_here()) {
            std::vector<uint32_t> got(all.size());
            tw_widen_find(type, isa)(got.data(), from.data(), all.size());
            expect_elements(TWILL_FLOAT32, got.data(), want,
                            std::string(name(type)) + " " + tw_isa_name(isa));
        }
    }
}

void check_rounding(twill_type_t type, const std::vector<uint64_t> &values)
{
    std::vector<uint64_t> want(values.size());
    for (size_t i = 0; i < values.size(); i++) {
        want[i] = encode(type, decode(TWILL_FLOAT32, values[i]));
    }
    const std::vector<uint8_t> from = pack(TWILL_FLOAT32, values);
    for (const tw_isa isa : isas_here()) {
        std::vector<uint8_t> got(values.size() * bytes(type));
        tw_round_find(type, isa)(got.data(), from.data(), values.size());
        expect_elements(type, got.data(), want, std::string(name(type)) + " " + tw_isa_name(isa));
    }
}

// Every value, every point half way between two neighbours (the last between the largest number
// and where the next would be), and fp32's neighbours of all these.
TEST(Convert, ValuesHalfWayPointsAndNeighboursRound)
{
    for (const twill_type_t type : narrow_types) {
        const Format f = format(type);
        const uint64_t sign = 1ull << (8 * bytes(type) - 1);
        std::vector<uint64_t> points;
        for (uint64_t bits = 0; bits < sign; bits++) {
            const double value = decode(type, bits);
            if (!std::isfinite(value)) {
                continue;
            }
            double next = decode(type, bits + 1);
            if (!std::isfinite(next)) {
                next = value + std::ldexp(1.0, std::ilogb(value) - f.fraction_bits);
            }
            for (const double point : {value, value + (next - value) / 2, next}) {
                const uint64_t at = encode(TWILL_FLOAT32, point);
                for (const uint64_t near : {at, at + 1, at > 0 ? at - 1 : at}) {
                    points.push_back(near);
                    points.push_back(near | 0x80000000u);
                }
            }
        }
        check_rounding(type, points);
    }
}

TEST(Convert, SpecialsRound)
{
    const std::vector<uint64_t> specials = {
        0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000,
        0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xff800001,
        0x7fc00000, 0xffc00000, 0x7fffffff, 0xffffffff, 0x3f800000, 0xbf800000};
    for (const twill_type_t type : narrow_types) {
        check_rounding(type, specials);
    }
    EXPECT_EQ(encode(TWILL_FLOAT8E4M3, 1e9), 0x7eu); // the reference says what the page says
    EXPECT_EQ(encode(TWILL_FLOAT8E5M2, -1e9), 0xfbu);
    EXPECT_EQ(encode(TWILL_FLOAT8E5M2, std::numeric_limits<double>::infinity()), 0x7bu);
    EXPECT_EQ(encode(TWILL_FLOAT16, 65520), 0x7c00u);
    EXPECT_EQ(encode(TWILL_FLOAT16, 65519.9), 0x7bffu);
}

TEST(Convert, SampledValuesRound)
{
    for (const twill_type_t type : narrow_types) {
        std::vector<uint64_t> values = draw_many(TWILL_FLOAT32, 50021 / edge_step, 11 + type);
        std::mt19937_64 rng(type);
        for (unsigned i = 0; i < rounds(50000, 2000); i++) { // in and around the type's range
            values.push_back((rng() & 0x807fffff) | (90 + rng() % 64) << 23);
        }
        check_rounding(type, values);
    }
}

} // namespace
