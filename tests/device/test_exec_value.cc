// SPDX-License-Identifier: Apache-2.0
// Knows: what src/device/exec_state.h says of values and places. Never knows: steps, passes.
#include "kernels.h"
#include "world.h"

extern "C" {
#include "device/exec_state.h"
}

namespace
{

using namespace reference;

const int nranks = 3;

struct Case {
    twill_type_t type;
    twill_redop_t op;
    bool left_wide, right_wide, to_wide[2], two, both, final; // two operands, both places
    bool left_raw, right_raw;

    twill_type_t type_of(bool wide) const { return wide ? wide_type(type) : type; }
    // one type throughout, and nothing that is only done in the wide one
    bool plain() const
    {
        return !left_wide && !(two && right_wide) && !to_wide[0] && !(both && to_wide[1]) &&
               !(final && op == TWILL_AVG);
    }
};

tw_exec_math math_of(const Case &c, tw_isa isa, uint64_t scalar)
{
    const twill_type_t wide = wide_type(c.type);
    tw_exec_math math = {};
    for (int form = 0; form < TW_FORM_COUNT; form++) {
        math.reduce[form] = tw_reduce_form_find(c.type, c.op, (tw_reduce_form)form, isa);
    }
    if (c.op == TWILL_AVG) {
        math.divide = tw_divide_find(c.type, isa);
        math.wide_divide = tw_divide_find(wide, isa);
    }
    if (c.op == TW_REDOP_PREMUL_SUM) {
        math.scale = tw_scale_find(c.type, isa);
    }
    math.widen = tw_widen_find(c.type, isa);
    math.round = tw_round_find(c.type, isa);
    math.bytes = (uint32_t)bytes(c.type);
    math.wide_bytes = (uint32_t)bytes(wide);
    math.nranks = nranks;
    store(c.type, &math.scalar, 0, scalar);
    return math;
}

// Bits of the type that is computed in: the type itself in a plain case, else the wide one.
uint64_t operand(const Case &c, uint64_t bits, bool wide, bool raw, uint64_t scalar)
{
    const bool scales = raw && c.op == TW_REDOP_PREMUL_SUM;
    const uint64_t input = scales ? scale(c.type, bits, scalar) : bits;
    return c.plain() || !is_narrow(c.type) || (wide && !scales) ? input : widen(c.type, input);
}

uint64_t want(const Case &c, uint64_t a, uint64_t b, bool to_wide, uint64_t scalar)
{
    const bool narrow = c.plain() || !is_narrow(c.type);
    const twill_type_t inside = narrow ? c.type : wide_type(c.type);
    uint64_t sum = operand(c, a, c.left_wide, c.left_raw, scalar);
    if (c.two) {
        sum = reduce(inside, c.op, sum, operand(c, b, c.right_wide, c.right_raw, scalar));
    }
    if (c.final && c.op == TWILL_AVG) {
        return divide(c.type_of(to_wide), sum, nranks);
    }
    return narrow || to_wide ? sum : encode(c.type, decode(TWILL_FLOAT32, sum));
}

void check(const Case &c, tw_isa isa, size_t count, std::mt19937_64 &rng)
{
    const uint64_t scalar = is_float(c.type) ? encode(c.type, 1.5) : 3;
    const std::vector<uint64_t> a = draw_many(c.type_of(c.left_wide), count, rng());
    const std::vector<uint64_t> b = draw_many(c.type_of(c.right_wide), count, rng());
    std::vector<uint8_t> left = pack(c.type_of(c.left_wide), a);
    std::vector<uint8_t> right = pack(c.type_of(c.right_wide), b);
    std::vector<uint8_t> to[2];
    const bool in_place = rng() % 3 == 0 && c.left_wide == c.to_wide[0];
    tw_exec_value value = {};
    value.left = {(char *)left.data(), c.left_wide, c.left_raw};
    value.right = {c.two ? (char *)right.data() : nullptr, c.right_wide, c.right_raw};
    for (int t = 0; t < 2; t++) {
        to[t].resize(count * bytes(c.type_of(c.to_wide[t])));
        value.to[t] = {t == 0 || c.both ? (char *)to[t].data() : nullptr, c.to_wide[t], false};
    }
    value.to[0].at = in_place ? value.left.at : value.to[0].at;
    value.count = count;
    value.final = c.final;
    const tw_exec_math math = math_of(c, isa, scalar);
    tw_exec_value_put(&math, &value);
    for (int t = 0; t < (c.both ? 2 : 1); t++) {
        std::vector<uint64_t> wanted(count);
        for (size_t i = 0; i < count; i++) {
            wanted[i] = want(c, a[i], b[i], c.to_wide[t], scalar);
        }
        expect_elements(c.type_of(c.to_wide[t]), value.to[t].at, wanted,
                        std::string(name(c.type)) + " op " + std::to_string(c.op) + " left " +
                            std::to_string(c.left_wide) + std::to_string(c.left_raw) + " right " +
                            std::to_string(c.two) + std::to_string(c.right_wide) +
                            std::to_string(c.right_raw) + " to " + std::to_string(t) +
                            std::to_string(c.to_wide[t]) + " final " + std::to_string(c.final));
    }
}

// Every mix of widths, places and flags for a few types and operations; float32 has one width.
TEST(ExecValue, EveryMixOfWidths)
{
    std::mt19937_64 rng(41);
    const std::vector<tw_isa> isas = isas_here();
    unsigned turn = 0;
    for (const twill_type_t type : {TWILL_FLOAT16, TWILL_BFLOAT16, TWILL_FLOAT8E4M3,
                                    TWILL_FLOAT8E5M2, TWILL_FLOAT32, TWILL_INT8}) {
        for (const twill_redop_t op : {TWILL_SUM, TWILL_AVG, TWILL_MIN, TW_REDOP_PREMUL_SUM}) {
            for (unsigned bits = 0; bits < 512; bits++) {
                const bool wides = is_narrow(type);
                const auto bit = [&](int i) { return (bits >> i & 1) != 0; };
                const Case c = {type,   op,     bit(0), bit(1), {bit(2), bit(3)},
                                bit(4), bit(5), bit(6), bit(7), bit(8)};
                const bool raw_fits =
                    !(c.left_raw && c.left_wide) && !(c.right_raw && c.right_wide);
                if (raw_fits && (wides || (bits & 15) == 0)) {
                    // past a chunk of partials, and for some cases past one of bytes
                    turn++;
                    const size_t count = turn % 64 == 0 ? 9001 : turn % 8 == 0 ? 521 : turn % 40;
                    check(c, isas[turn % isas.size()], count, rng);
                }
            }
        }
    }
}

TEST(ExecValue, NothingIsNothing)
{
    std::mt19937_64 rng(1);
    for (const bool wide : {false, true}) {
        const Case c = {TWILL_FLOAT16, TWILL_AVG, wide, false, {wide, false},
                        true,          true,      true, false, false};
        check(c, TW_ISA_PORTABLE, 0, rng);
    }
}

} // namespace
