// SPDX-License-Identifier: Apache-2.0
// Knows: the contract of src/device/reduce.h. Never knows: how kernels compute.
#include "kernels.h"
#include "world.h"

extern "C" {
#include "base/status.h"
}

namespace
{

using namespace reference;

TEST(Isa, Select)
{
    tw_isa isa = TW_ISA_COUNT;
    EXPECT_EQ(tw_isa_select("portable", &isa), TWILL_OK);
    EXPECT_EQ(isa, TW_ISA_PORTABLE);
    isa = TW_ISA_COUNT;
    EXPECT_EQ(tw_isa_select("sse9", &isa), TWILL_ERR_INVALID);
    EXPECT_NE(std::string(tw_fail_text()).find("sse9"), std::string::npos);
    EXPECT_EQ(isa, TW_ISA_COUNT);
    for (const char *set : {"avx2", "avx512"}) {
        EXPECT_EQ(tw_isa_select(set, &isa), has_isa(set) ? TWILL_OK : TWILL_ERR_INVALID);
    }
    tw_isa unset = TW_ISA_COUNT;
    tw_isa empty = TW_ISA_COUNT;
    EXPECT_EQ(tw_isa_select(nullptr, &unset), TWILL_OK);
    EXPECT_EQ(tw_isa_select("", &empty), TWILL_OK);
    EXPECT_EQ(unset, isas_here().back());
    EXPECT_EQ(empty, unset);
    EXPECT_STREQ(tw_isa_name(TW_ISA_AVX2), "avx2");
    EXPECT_EQ(tw_isa_name(TW_ISA_COUNT), nullptr);
}

TEST(Reduce, EveryTypeHasItsOperations)
{
    for (int t = 0; t < type_count; t++) {
        const twill_type_t type = (twill_type_t)t;
        for (int o = 0; o < redop_count; o++) {
            const twill_redop_t op = (twill_redop_t)o;
            for (int f = 0; f < TW_FORM_COUNT; f++) {
                const tw_reduce_form form = (tw_reduce_form)f;
                for (const tw_isa isa : isas_here()) {
                    EXPECT_EQ(tw_reduce_form_find(type, op, form, isa) != nullptr, has_op(type, op))
                        << name(op) << " of " << name(type) << " form " << form;
                }
            }
        }
        EXPECT_NE(tw_divide_find(type, TW_ISA_PORTABLE), nullptr);
        EXPECT_NE(tw_scale_find(type, TW_ISA_PORTABLE), nullptr);
        for (const twill_redop_t as_sum : {TWILL_AVG, TW_REDOP_PREMUL_SUM}) {
            EXPECT_EQ(tw_reduce_find(type, as_sum, TW_ISA_PORTABLE),
                      tw_reduce_find(type, TWILL_SUM, TW_ISA_PORTABLE));
        }
    }
}

TEST(Reduce, WhatIsNoneIsNull)
{
    EXPECT_EQ(tw_reduce_find((twill_type_t)15, TWILL_SUM, TW_ISA_PORTABLE), nullptr);
    EXPECT_EQ(tw_reduce_find(TWILL_FLOAT32, (twill_redop_t)TW_REDOP_COUNT, TW_ISA_PORTABLE),
              nullptr);
    EXPECT_EQ(tw_reduce_find(TWILL_FLOAT32, TWILL_OP_CREATED, TW_ISA_PORTABLE), nullptr);
    EXPECT_EQ(tw_reduce_find(TWILL_FLOAT32, TWILL_SUM, TW_ISA_COUNT), nullptr);
    EXPECT_EQ(tw_divide_find((twill_type_t)12, TW_ISA_PORTABLE), nullptr);
    EXPECT_EQ(tw_scale_find((twill_type_t)12, TW_ISA_PORTABLE), nullptr);
    EXPECT_EQ(tw_scale_find(TWILL_INT8, TW_ISA_COUNT), nullptr);
}

void check_pairs(const Kernel &kernel, const std::vector<uint64_t> &left,
                 const std::vector<uint64_t> &right)
{
    std::vector<uint64_t> want(left.size());
    for (size_t i = 0; i < left.size(); i++) {
        want[i] = kernel.want(left[i], right[i]);
    }
    const std::vector<uint8_t> a = pack(kernel.left(), left);
    const std::vector<uint8_t> b = pack(kernel.right(), right);
    for (const tw_isa isa : isas_here()) {
        const tw_reduce_fn fn = tw_reduce_form_find(kernel.type, kernel.op, kernel.form, isa);
        std::vector<uint8_t> got(left.size() * bytes(kernel.dst()));
        ASSERT_NE(fn, nullptr) << kernel.name();
        fn(got.data(), a.data(), b.data(), left.size());
        expect_elements(kernel.dst(), got.data(), want, kernel.name() + " " + tw_isa_name(isa));
    }
}

TEST(Reduce, AllPairsOf8Bits)
{
    std::vector<uint64_t> left(65536);
    std::vector<uint64_t> right(65536);
    for (size_t i = 0; i < left.size(); i++) {
        left[i] = i & 0xff;
        right[i] = i >> 8;
    }
    for (const Kernel &kernel : all_kernels()) {
        if (bytes(kernel.left()) == 1 && bytes(kernel.right()) == 1 && kernel.op != TWILL_AVG) {
            check_pairs(kernel, left, right);
        }
    }
}

TEST(Reduce, SampledValues)
{
    for (const Kernel &kernel : all_kernels()) {
        const size_t count = rounds(6011, 300);
        check_pairs(kernel, draw_many(kernel.left(), count, 17 + kernel.type),
                    draw_many(kernel.right(), count, 1700 + kernel.op));
    }
}

// Memory with guards for one array of a call.
struct Array {
    std::vector<uint8_t> memory;
    size_t at, length;

    Array(const std::vector<uint8_t> &data, uint64_t offset)
        : memory(data.size() + 192, 0x5a), at(64 + offset % 64), length(data.size())
    {
        std::copy(data.begin(), data.end(), memory.begin() + at);
    }
    uint8_t *data() { return memory.data() + at; }
    bool guards_whole() const
    {
        const std::vector<uint8_t> guard(192, 0x5a);
        return std::equal(memory.begin(), memory.begin() + at, guard.begin()) &&
               std::equal(memory.begin() + at + length, memory.end(), guard.begin());
    }
};

std::vector<uint8_t> first_of(twill_type_t type, const std::vector<uint8_t> &data, size_t count)
{
    return {data.begin(), data.begin() + count * bytes(type)};
}

// Operands and results, of which each call takes some first ones.
struct Operands {
    std::vector<uint8_t> left, right, want;
};

Operands draw_operands(const Kernel &kernel, size_t most)
{
    const std::vector<uint64_t> a = draw_many(kernel.left(), most, kernel.type);
    const std::vector<uint64_t> b = draw_many(kernel.right(), most, 99 + kernel.op);
    std::vector<uint64_t> want(most);
    for (size_t i = 0; i < most; i++) {
        want[i] = kernel.want(a[i], b[i]);
    }
    return {pack(kernel.left(), a), pack(kernel.right(), b), pack(kernel.dst(), want)};
}

// One call at drawn alignments, dst apart from or equal to an operand; nothing outside dst changes.
void check_shape(const Kernel &kernel, const Operands &all, tw_isa isa, size_t count,
                 std::mt19937_64 &rng)
{
    Array a(first_of(kernel.left(), all.left, count), rng());
    Array b(first_of(kernel.right(), all.right, count), rng());
    Array apart(std::vector<uint8_t>(count * bytes(kernel.dst())), rng());
    const unsigned alias = rng() % 3;
    Array &dst = alias == 0 && kernel.left() == kernel.dst()    ? a
                 : alias == 1 && kernel.right() == kernel.dst() ? b
                                                                : apart;
    tw_reduce_form_find(kernel.type, kernel.op, kernel.form, isa)(dst.data(), a.data(), b.data(),
                                                                  count);
    ASSERT_TRUE(std::equal(dst.data(), dst.data() + dst.length, all.want.begin()))
        << kernel.name() << " " << tw_isa_name(isa) << " count " << count << " alias " << alias;
    ASSERT_TRUE(a.guards_whole() && b.guards_whole() && apart.guards_whole())
        << kernel.name() << " " << tw_isa_name(isa) << " count " << count;
}

TEST(Reduce, CountsAlignmentsAliases)
{
    std::mt19937_64 rng(7);
    for (const Kernel &kernel : all_kernels()) {
        const Operands all = draw_operands(kernel, 131);
        for (size_t count = 0; kernel.op != TWILL_AVG && count <= 130; count++) {
            for (const tw_isa isa : isas_here()) {
                if (rng() % edge_step == 0) {
                    check_shape(kernel, all, isa, count, rng);
                }
            }
        }
    }
}

// fn: dst of to from src of from, by count; want: one element.
template <class Run, class Want>
void check_map(twill_type_t to, twill_type_t from, const std::string &what, Run run, Want want)
{
    for (size_t count : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 130, 611}) {
        const std::vector<uint64_t> values = draw_many(from, count, count);
        std::vector<uint64_t> wanted(count);
        for (size_t i = 0; i < count; i++) {
            wanted[i] = want(values[i]);
        }
        Array src(pack(from, values), count);
        Array dst(std::vector<uint8_t>(count * bytes(to)), 3 * count);
        run(dst.data(), src.data(), count);
        expect_elements(to, dst.data(), wanted, what);
        ASSERT_TRUE(src.guards_whole() && dst.guards_whole()) << what;
        if (to == from) { // in place
            run(src.data(), src.data(), count);
            expect_elements(to, src.data(), wanted, what + " in place");
        }
    }
}

TEST(Divide, ValuesCountsAlignments)
{
    for (const tw_isa isa : isas_here()) {
        for (int t = 0; t < type_count; t++) {
            const twill_type_t type = (twill_type_t)t;
            for (const int nranks : {1, 2, 3, 7, 64, 127, 128, 255, 256, 1000, 70000}) {
                const tw_divide_fn fn = tw_divide_find(type, isa);
                check_map(
                    type, wide_type(type),
                    std::string(name(type)) + " / " + std::to_string(nranks) + " " +
                        tw_isa_name(isa),
                    [&](void *dst, const void *src, size_t n) { fn(dst, src, n, nranks); },
                    [&](uint64_t a) { return divide(type, a, nranks); });
            }
        }
    }
}

TEST(Scale, ValuesCountsAlignments)
{
    for (const tw_isa isa : isas_here()) {
        for (int t = 0; t < type_count; t++) {
            const twill_type_t type = (twill_type_t)t;
            std::vector<uint64_t> scalars = draw_many(type, 12, t);
            scalars.push_back(from_int(type, 1));
            scalars.push_back(from_int(type, -1));
            scalars.push_back(is_float(type) ? encode(type, -0.0) : 0);
            for (const uint64_t scalar : scalars) {
                const tw_scale_fn fn = tw_scale_find(type, isa);
                uint8_t odd[9]; // the scalar is not aligned
                store(type, odd + 1, 0, scalar);
                check_map(
                    type, type,
                    std::string(name(type)) + " * " + std::to_string(scalar) + " " +
                        tw_isa_name(isa),
                    [&](void *dst, const void *src, size_t n) { fn(dst, src, n, odd + 1); },
                    [&](uint64_t a) { return scale(type, a, scalar); });
            }
        }
    }
}

// Bits as docs/numbers.md has them: a, b, and what sum, max and min are.
struct Odd {
    twill_type_t type;
    uint64_t a, b, sum, max, min;
};

TEST(Reduce, OddCases)
{
    const Odd odd[] = {
        // zeros, infinities, NaN (negative, signalling), the least subnormal
        {TWILL_FLOAT32, 0, 0x80000000, 0, 0, 0x80000000},
        {TWILL_FLOAT32, 0x80000000, 0x80000000, 0x80000000, 0x80000000, 0x80000000},
        {TWILL_FLOAT32, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800000, 0xff800000},
        {TWILL_FLOAT32, 0xffc12345, 0x3f800000, 0x7fc00000, 0x7fc00000, 0x7fc00000},
        {TWILL_FLOAT32, 0x3f800000, 0x7f800001, 0x7fc00000, 0x7fc00000, 0x7fc00000},
        {TWILL_FLOAT32, 1, 1, 2, 1, 1},
        {TWILL_FLOAT64, 0, 0x8000000000000000, 0, 0, 0x8000000000000000},
        {TWILL_FLOAT16, 0x7bff, 0x7bff, 0x7c00, 0x7bff, 0x7bff}, // 65504 twice: inf
        {TWILL_FLOAT16, 0x8000, 0, 0, 0, 0x8000},
        {TWILL_FLOAT16, 0xfc01, 0, 0x7e00, 0x7e00, 0x7e00},
        {TWILL_BFLOAT16, 0x7f7f, 0x7f7f, 0x7f80, 0x7f7f, 0x7f7f},
        {TWILL_BFLOAT16, 1, 1, 2, 1, 1},
        {TWILL_FLOAT8E4M3, 0x7e, 0x7e, 0x7e, 0x7e, 0x7e}, // 448 twice: 448
        {TWILL_FLOAT8E4M3, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe},
        {TWILL_FLOAT8E4M3, 0xff, 0x38, 0x7f, 0x7f, 0x7f},
        {TWILL_FLOAT8E4M3, 0x80, 0x00, 0x00, 0x00, 0x80},
        {TWILL_FLOAT8E5M2, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b}, // 57344 twice: 57344
        {TWILL_FLOAT8E5M2, 0x7c, 0x3c, 0x7b, 0x7b, 0x3c}, // inf and 1
        {TWILL_FLOAT8E5M2, 0x7c, 0xfc, 0x7e, 0x7b, 0xfb}, // inf and -inf
        {TWILL_FLOAT8E5M2, 0xfd, 0x3c, 0x7e, 0x7e, 0x7e},
        {TWILL_INT8, 0x7f, 0x01, 0x80, 0x7f, 0x01}, // wraps
        {TWILL_UINT8, 0xff, 0x02, 0x01, 0xff, 0x02},
    };
    for (const tw_isa isa : isas_here()) {
        for (const Odd &o : odd) {
            const std::pair<twill_redop_t, uint64_t> results[] = {
                {TWILL_SUM, o.sum}, {TWILL_MAX, o.max}, {TWILL_MIN, o.min}};
            for (const auto &result : results) {
                uint64_t got = 0;
                uint64_t swapped = 0;
                tw_reduce_find(o.type, result.first, isa)(&got, &o.a, &o.b, 1);
                tw_reduce_find(o.type, result.first, isa)(&swapped, &o.b, &o.a, 1);
                EXPECT_EQ(got, result.second) << name(result.first) << " of " << name(o.type)
                                              << std::hex << " 0x" << o.a << " 0x" << o.b;
                EXPECT_EQ(swapped, got);
            }
        }
    }
}

} // namespace
