/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: formats of numbers, from their definitions. Never knows: how twill-perf encodes them. */
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <set>
#include <vector>

extern "C" {
#include "perf.h"
}

namespace
{

const twill_type_t kFloats[] = {TWILL_FLOAT16,  TWILL_FLOAT32,    TWILL_FLOAT64,
                                TWILL_BFLOAT16, TWILL_FLOAT8E4M3, TWILL_FLOAT8E5M2};

struct Known {
    twill_type_t type;
    uint64_t bits;
    double value;
};

TEST(PerfValues, DecodesKnownBits)
{
    const Known known[] = {
        {TWILL_FLOAT16, 0x3c00, 1},
        {TWILL_FLOAT16, 0xc000, -2},
        {TWILL_FLOAT16, 0x7bff, 65504},
        {TWILL_FLOAT16, 0x0001, 0x1p-24},
        {TWILL_FLOAT16, 0x3555, 0x1.554p-2},
        {TWILL_FLOAT16, 0x7c00, HUGE_VAL},
        {TWILL_BFLOAT16, 0x3f80, 1},
        {TWILL_BFLOAT16, 0xc040, -3},
        {TWILL_BFLOAT16, 0x0001, 0x1p-133},
        {TWILL_FLOAT8E4M3, 0x38, 1},
        {TWILL_FLOAT8E4M3, 0x7e, 448},
        {TWILL_FLOAT8E4M3, 0x01, 0x1p-9},
        {TWILL_FLOAT8E5M2, 0x3c, 1},
        {TWILL_FLOAT8E5M2, 0x7b, 57344},
        {TWILL_FLOAT8E5M2, 0xfc, -HUGE_VAL},
        {TWILL_FLOAT32, 0x40490fdb, 3.14159274101257324},
        {TWILL_FLOAT64, 0x4000000000000000, 2},
    };
    for (const Known &k : known)
        EXPECT_EQ(perf_bits_decode(k.type, k.bits), k.value) << perf_type_name(k.type) << k.bits;
    EXPECT_TRUE(isnan(perf_bits_decode(TWILL_FLOAT8E4M3, 0x7f)));
    EXPECT_TRUE(isnan(perf_bits_decode(TWILL_FLOAT8E5M2, 0x7e)));
    EXPECT_TRUE(isnan(perf_bits_decode(TWILL_FLOAT16, 0x7e00)));
}

/* Numbers, points half way between two and beyond the largest, from the formats' definitions. */
TEST(PerfValues, RoundsToNearestEven)
{
    const Known known[] = {
        {TWILL_FLOAT16, 0x3c00, 1 + 0x1p-11},
        {TWILL_FLOAT16, 0x3c02, 1 + 0x3p-11},
        {TWILL_FLOAT16, 0x7bff, 65519.99},
        {TWILL_FLOAT16, 0x7c00, 65520},
        {TWILL_FLOAT16, 0x8000, -0x1p-25},
        {TWILL_FLOAT16, 0x0001, 0x1.001p-25},
        {TWILL_FLOAT16, 0x0400, 0x0.fffp-14}, // carries into the normal numbers
        {TWILL_BFLOAT16, 0x3f80, 1 + 0x1p-8},
        {TWILL_BFLOAT16, 0x4000, 1.9999},
        {TWILL_BFLOAT16, 0xff80, -0x1.ffp127},
        {TWILL_FLOAT8E4M3, 0x38, 1.0625},
        {TWILL_FLOAT8E4M3, 0x3a, 1.1875},
        {TWILL_FLOAT8E4M3, 0x7e, 1000},
        {TWILL_FLOAT8E4M3, 0xfe, -HUGE_VAL},
        {TWILL_FLOAT8E5M2, 0x3c, 1.125},
        {TWILL_FLOAT8E5M2, 0x7b, HUGE_VAL},
        {TWILL_FLOAT32, 0x3eaaaaab, 1.0 / 3},
        {TWILL_FLOAT64, 0x3fd5555555555555, 1.0 / 3},
    };
    for (const Known &k : known)
        EXPECT_EQ(perf_bits_round(k.type, k.value), k.bits) << perf_type_name(k.type) << k.value;
    for (twill_type_t type : kFloats) {
        const uint64_t end = perf_type_bytes(type) < 4 ? 1ull << 8 * perf_type_bytes(type) : 0;
        for (uint64_t bits = 0; bits < end; bits++) {
            const double value = perf_bits_decode(type, bits);
            if (isfinite(value)) {
                ASSERT_EQ(perf_bits_round(type, value), bits) << perf_type_name(type);
            }
        }
    }
}

TEST(PerfValues, ExtendsSigns)
{
    EXPECT_EQ((int64_t)perf_bits_extend(TWILL_INT8, 0x80), -128);
    EXPECT_EQ(perf_bits_extend(TWILL_UINT8, 0x80), 0x80u);
    EXPECT_EQ((int64_t)perf_bits_extend(TWILL_INT32, 0xffffffff), -1);
    EXPECT_EQ(perf_bits_extend(TWILL_UINT32, 0xffffffff), 0xffffffffu);
    EXPECT_EQ((int64_t)perf_bits_extend(TWILL_INT64, UINT64_MAX), -1);
}

/* Values encoded here and decoded from memory are what the kind promises. */
TEST(PerfValues, KeepTheirKindsPromise)
{
    std::vector<uint64_t> bits(2000);
    std::vector<char> memory(2000 * 8);
    for (twill_type_t type : kFloats)
        for (enum perf_kind kind : {PERF_SMALL, PERF_POWER, PERF_FINITE}) {
            struct perf_values values = {type, kind, kind == PERF_SMALL ? 3 : 1, 7, 9};
            perf_values_bits(&values, 2, 0, bits.size(), bits.data());
            perf_values_store(&values, 2, 0, bits.size(), memory.data());
            std::vector<uint64_t> scratch(bits.size());
            std::vector<double> numbers(bits.size());
            perf_values_numbers(&values, 2, 0, bits.size(), scratch.data(), numbers.data());
            std::set<double> seen;
            for (size_t i = 0; i < bits.size(); i++) {
                ASSERT_EQ(perf_bits_load(type, memory.data(), i), bits[i]);
                double value = perf_bits_decode(type, bits[i]);
                ASSERT_TRUE(isfinite(value));
                ASSERT_EQ(value, numbers[i]);
                seen.insert(value);
            }
            if (kind == PERF_SMALL) {
                EXPECT_EQ(seen, (std::set<double>{-3, -2, -1, 0, 1, 2, 3}));
            }
            if (kind == PERF_POWER) {
                EXPECT_EQ(seen, (std::set<double>{-2, -1, -0.5, 0.5, 1, 2}));
            }
            if (kind == PERF_FINITE) {
                EXPECT_GT(seen.size(), 100u);
            }
        }
}

TEST(PerfValues, DifferByRankIterationIndexAndSeed)
{
    std::set<uint64_t> seen;
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (uint64_t iteration = 0; iteration < 3; iteration++)
            for (int rank = 0; rank < 3; rank++) {
                struct perf_values values = {TWILL_UINT64, PERF_RAW, 0, seed, iteration};
                uint64_t bits[100];
                perf_values_bits(&values, rank, 5, 100, bits);
                seen.insert(bits, bits + 100);
            }
    EXPECT_EQ(seen.size(), 2700u);
}

TEST(PerfValues, AreTheSameWhereverABlockBegins)
{
    struct perf_values values = {TWILL_UINT8, PERF_RAW, 0, 1, 1};
    uint64_t whole[1000], part[100];
    perf_values_bits(&values, 1, 0, 1000, whole);
    perf_values_bits(&values, 1, 737, 100, part);
    EXPECT_EQ(memcmp(part, whole + 737, sizeof(part)), 0);
}

struct Shape {
    enum perf_op op;
    size_t bytes;
    int ranks;
    size_t count, size_bytes, send_count, recv_count;
    int rank;
    bool uneven;
};

TEST(PerfShapes, CountBytesAsNcclTestsDo)
{
    const Shape shapes[] = {
        {PERF_ALL_REDUCE, 1024, 4, 256, 1024, 256, 256, 0, false},
        {PERF_BROADCAST, 1023, 4, 255, 1020, 255, 255, 0, false},
        {PERF_REDUCE_SCATTER, 1024, 4, 64, 1024, 256, 64, 0, false},
        {PERF_REDUCE_SCATTER, 1024, 3, 85, 1020, 255, 85, 0, false},
        {PERF_ALL_GATHER, 1024, 4, 64, 1024, 64, 256, 0, false},
        {PERF_ALL_TO_ALL, 1024, 4, 64, 1024, 256, 256, 0, false},
        {PERF_ALL_GATHER, 8, 4, 0, 0, 0, 0, 0, false},
        {PERF_SEND_RECV, 16, 2, 4, 16, 4, 4, 0, false},
        {PERF_BARRIER, 1024, 4, 0, 0, 0, 0, 0, false},
        {PERF_GATHER, 1024, 4, 64, 1024, 64, 256, 0, false},
        {PERF_SCATTER, 1024, 4, 64, 1024, 256, 64, 0, false},
        {PERF_GATHER_V, 1024, 4, 64, 1024, 64, 256, 0, false},
        /* blocks of 126, 84, 42 and 0 elements */
        {PERF_GATHER, 1024, 4, 64, 1024, 64, 256, 1, true},
        {PERF_GATHER_V, 1024, 4, 64, 1008, 126, 252, 0, true},
        {PERF_ALL_GATHER_V, 1024, 4, 64, 1008, 84, 252, 1, true},
        {PERF_SCATTER_V, 1024, 4, 64, 1008, 252, 42, 2, true},
        {PERF_REDUCE_SCATTER_V, 1024, 4, 64, 1008, 252, 0, 3, true},
        {PERF_ALL_TO_ALL_V, 1024, 4, 64, 1008, 252, 252, 3, true},
    };
    for (const Shape &s : shapes) {
        struct perf_case c = {};
        c.op = s.op;
        c.type = TWILL_FLOAT32;
        struct perf_options options = {};
        options.uneven = s.uneven;
        struct perf_rank rank = {};
        rank.options = &options;
        rank.rank = s.rank;
        rank.size = s.ranks;
        perf_case_shape(&rank, &c, s.bytes);
        EXPECT_EQ(c.count, s.count) << perf_op_info(s.op)->name;
        EXPECT_EQ(c.size_bytes, s.size_bytes) << perf_op_info(s.op)->name;
        EXPECT_EQ(c.send_count, s.send_count) << perf_op_info(s.op)->name;
        EXPECT_EQ(c.recv_count, s.recv_count) << perf_op_info(s.op)->name;
    }
}

/* Whoever sends and whoever receives a block say the same of it, and blocks are packed. */
TEST(PerfShapes, UnevenBlocksFitTogether)
{
    const int n = 5;
    for (const enum perf_op op : {PERF_ALL_TO_ALL_V, PERF_ALL_GATHER_V, PERF_SCATTER_V}) {
        struct perf_case c = {};
        c.op = op;
        c.uneven = true;
        c.count = 100;
        size_t in_at = 0, out_at = 0;
        for (int peer = 0; peer < n; peer++) {
            if (perf_op_info(op)->many_in) {
                EXPECT_EQ(perf_case_in_first(&c, n, 2, peer), in_at);
            }
            if (perf_op_info(op)->many_out) {
                EXPECT_EQ(perf_case_out_first(&c, n, peer, 2), out_at);
            }
            in_at += perf_case_block(&c, n, 2, peer);
            out_at += perf_case_block(&c, n, peer, 2);
        }
    }
}

TEST(PerfShapes, BusFactorsAreNcclTests)
{
    EXPECT_DOUBLE_EQ(perf_op_info(PERF_ALL_REDUCE)->bus_factor(4), 1.5);
    EXPECT_DOUBLE_EQ(perf_op_info(PERF_REDUCE_SCATTER)->bus_factor(4), 0.75);
    EXPECT_DOUBLE_EQ(perf_op_info(PERF_ALL_GATHER)->bus_factor(8), 0.875);
    EXPECT_DOUBLE_EQ(perf_op_info(PERF_ALL_TO_ALL)->bus_factor(2), 0.5);
    EXPECT_DOUBLE_EQ(perf_op_info(PERF_REDUCE)->bus_factor(4), 1);
    EXPECT_DOUBLE_EQ(perf_op_info(PERF_BROADCAST)->bus_factor(4), 1);
    EXPECT_DOUBLE_EQ(perf_op_info(PERF_SEND_RECV)->bus_factor(4), 1);
}

} // namespace
