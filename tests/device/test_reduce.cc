// SPDX-License-Identifier: Apache-2.0
// Knows: the contract of src/device/reduce.h. Never knows: how kernels compute.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "reference.h"

extern "C" {
#include "base/status.h"
#include "device/reduce.h"
}

namespace
{

using reference::bf16;

const std::array<twill_type_t, 9> served_types = {TWILL_INT8,    TWILL_UINT8,   TWILL_INT32,
                                                  TWILL_UINT32,  TWILL_INT64,   TWILL_UINT64,
                                                  TWILL_FLOAT32, TWILL_FLOAT64, TWILL_BFLOAT16};
const std::array<twill_redop_t, 5> all_ops = {TWILL_SUM, TWILL_PROD, TWILL_MAX, TWILL_MIN,
                                              TWILL_AVG};

// Sanitizers slow the reference down and would find in all edges what they find in some.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const size_t edge_step = 17;
#else
const size_t edge_step = 1;
#endif

bool has_isa(const std::string &name)
{
    return name == "portable" || (name == "avx2" && __builtin_cpu_supports("avx2")) ||
           (name == "avx512" && __builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl"));
}

std::vector<tw_isa> isas_here()
{
    std::vector<tw_isa> out;
    for (const char *name : {"portable", "avx2", "avx512"}) {
        tw_isa isa;
        if (has_isa(name) && tw_isa_select(name, &isa) == TWILL_OK) {
            out.push_back(isa);
        }
    }
    return out;
}

template <class T> T from_bits(uint64_t bits)
{
    T out;
    std::memcpy(&out, &bits, sizeof(out));
    return out;
}

template <class T> uint64_t to_bits(T value)
{
    uint64_t out = 0;
    std::memcpy(&out, &value, sizeof(value));
    return out;
}

// Random bits, with the values at which float arithmetic goes wrong over-represented.
template <class T> T draw(std::mt19937_64 &rng)
{
    const uint64_t bits = rng();
    if (std::is_integral<T>::value || bits % 4 != 0) {
        return from_bits<T>(rng());
    }
    const uint64_t one = 1;
    const int width = 8 * sizeof(T);
    const int mantissa = sizeof(T) == 8 ? 52 : sizeof(T) == 4 ? 23 : 7;
    const uint64_t sign = (bits >> 8 & 1) << (width - 1);
    const uint64_t inf = ((one << (width - 1)) - 1) & ~((one << mantissa) - 1);
    const uint64_t edges[] = {0,       1,       (one << mantissa) - 1,       one << mantissa, inf,
                              inf + 1, inf - 1, inf | one << (mantissa - 1), inf >> 1};
    return from_bits<T>(edges[(bits >> 16) % 9] | sign);
}

template <class T> std::vector<T> draw_many(size_t count, uint64_t seed)
{
    std::mt19937_64 rng(seed);
    std::vector<T> out(count);
    for (T &value : out) {
        value = draw<T>(rng);
    }
    return out;
}

template <class T> void expect_equal(const T *got, const T *want, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        if (to_bits(got[i]) != to_bits(want[i])) {
            ADD_FAILURE() << what << " element " << i << ": got 0x" << std::hex << to_bits(got[i])
                          << ", want 0x" << to_bits(want[i]);
            return;
        }
    }
}

template <class T>
void check_pairs(twill_type_t type, twill_redop_t op, const std::vector<T> &left,
                 const std::vector<T> &right)
{
    std::vector<T> want(left.size());
    std::vector<T> got(left.size());
    for (size_t i = 0; i < left.size(); i++) {
        want[i] = reference::reduce(left[i], right[i], op);
    }
    for (const tw_isa isa : isas_here()) {
        const tw_reduce_fn fn = tw_reduce_find(type, op, isa);
        ASSERT_NE(fn, nullptr);
        fn(got.data(), left.data(), right.data(), left.size());
        expect_equal(got.data(), want.data(), want.size(), tw_isa_name(isa));
    }
}

TEST(Isa, Select)
{
    tw_isa isa = TW_ISA_COUNT;
    EXPECT_EQ(tw_isa_select("portable", &isa), TWILL_OK);
    EXPECT_EQ(isa, TW_ISA_PORTABLE);
    isa = TW_ISA_COUNT;
    EXPECT_EQ(tw_isa_select("sse9", &isa), TWILL_ERR_INVALID);
    EXPECT_NE(std::string(tw_fail_text()).find("sse9"), std::string::npos);
    EXPECT_EQ(isa, TW_ISA_COUNT);
    for (const char *name : {"avx2", "avx512"}) {
        EXPECT_EQ(tw_isa_select(name, &isa), has_isa(name) ? TWILL_OK : TWILL_ERR_INVALID);
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

TEST(Reduce, UnservedPairsAreNull)
{
    for (const twill_type_t type : {TWILL_FLOAT16, TWILL_FLOAT8E4M3, TWILL_FLOAT8E5M2}) {
        EXPECT_EQ(tw_reduce_find(type, TWILL_SUM, TW_ISA_PORTABLE), nullptr);
        EXPECT_EQ(tw_divide_find(type, TW_ISA_PORTABLE), nullptr);
    }
    EXPECT_EQ(tw_reduce_find((twill_type_t)15, TWILL_SUM, TW_ISA_PORTABLE), nullptr);
    EXPECT_EQ(tw_reduce_find(TWILL_FLOAT32, (twill_redop_t)7, TW_ISA_PORTABLE), nullptr);
    EXPECT_EQ(tw_reduce_find(TWILL_FLOAT32, TWILL_SUM, TW_ISA_COUNT), nullptr);
    EXPECT_EQ(tw_reduce_find(TWILL_FLOAT32, TWILL_AVG, TW_ISA_PORTABLE),
              tw_reduce_find(TWILL_FLOAT32, TWILL_SUM, TW_ISA_PORTABLE));
}

template <class T> void check_all_pairs(twill_type_t type)
{
    std::vector<T> left(65536);
    std::vector<T> right(65536);
    for (size_t i = 0; i < 65536; i++) {
        left[i] = (T)i;
        right[i] = (T)(i >> 8);
    }
    for (const twill_redop_t op : all_ops) {
        check_pairs<T>(type, op, left, right);
    }
}

TEST(Reduce, AllPairsOf8Bits)
{
    check_all_pairs<int8_t>(TWILL_INT8);
    check_all_pairs<uint8_t>(TWILL_UINT8);
}

TEST(Reduce, EveryBfloat16AgainstEdges)
{
    std::vector<uint16_t> edges;
    for (unsigned exponent :
         {0u, 1u, 2u, 8u, 63u, 119u, 120u, 126u, 127u, 128u, 135u, 200u, 247u, 253u, 254u, 255u}) {
        for (unsigned mantissa :
             {0u, 1u, 2u, 3u, 15u, 31u, 63u, 64u, 65u, 85u, 95u, 96u, 124u, 125u, 126u, 127u}) {
            edges.push_back((uint16_t)(exponent << 7 | mantissa));
            edges.push_back((uint16_t)(0x8000 | exponent << 7 | mantissa));
        }
    }
    ASSERT_EQ(edges.size(), 512u);
    std::vector<bf16> left(65536);
    for (size_t i = 0; i < left.size(); i++) {
        left[i].bits = (uint16_t)i;
    }
    for (size_t e = 0; e < edges.size(); e += edge_step) {
        const std::vector<bf16> right(65536, bf16{edges[e]});
        // every edge with sum; the other operations take turns over the edges
        check_pairs(TWILL_BFLOAT16, TWILL_SUM, left, right);
        check_pairs(TWILL_BFLOAT16,
                    std::array<twill_redop_t, 3>{TWILL_PROD, TWILL_MAX, TWILL_MIN}[e % 3], left,
                    right);
    }
}

TEST(Reduce, SampledValues)
{
    for (const twill_type_t type : served_types) {
        for (const twill_redop_t op : all_ops) {
            reference::with_type(type, [&](auto zero) {
                using T = decltype(zero);
                check_pairs<T>(type, op, draw_many<T>(30011, 17 + type),
                               draw_many<T>(30011, 1700 + op));
            });
        }
    }
}

// All counts around several vectors, any alignment, dst apart from or equal to an operand; nothing
// outside dst changes.
template <class T> void check_shapes(twill_type_t type, twill_redop_t op, tw_isa isa)
{
    std::mt19937_64 rng(7 * type + op);
    const tw_reduce_fn fn = tw_reduce_find(type, op, isa);
    const size_t most = 200;
    for (size_t count = 0; count <= most; count += edge_step == 1 ? 1 : 1 + rng() % 4) {
        const std::vector<T> a = draw_many<T>(count, rng());
        const std::vector<T> b = draw_many<T>(count, rng());
        std::vector<T> want(count);
        for (size_t i = 0; i < count; i++) {
            want[i] = reference::reduce(a[i], b[i], op);
        }
        const size_t bytes = count * sizeof(T);
        std::vector<uint8_t> mem[3];
        uint8_t *at[3];
        for (int m = 0; m < 3; m++) {
            mem[m].assign(bytes + 192, 0x5a);
            at[m] = mem[m].data() + 64 + rng() % 64;
        }
        const unsigned alias = rng() % 3; // dst is apart, left, right
        if (bytes > 0) {
            std::memcpy(at[1], a.data(), bytes);
            std::memcpy(at[2], b.data(), bytes);
        }
        uint8_t *dst = at[alias];
        fn(dst, at[1], at[2], count);
        std::vector<T> got(count);
        if (bytes > 0) {
            std::memcpy(got.data(), dst, bytes);
        }
        expect_equal(got.data(), want.data(), count, tw_isa_name(isa));
        for (uint8_t *p = mem[alias].data(); p < mem[alias].data() + mem[alias].size(); p++) {
            ASSERT_TRUE((p >= dst && p < dst + bytes) || *p == 0x5a) << "guard, count " << count;
        }
    }
}

TEST(Reduce, CountsAlignmentsAliases)
{
    for (const tw_isa isa : isas_here()) {
        for (const twill_type_t type : served_types) {
            for (const twill_redop_t op : {TWILL_SUM, TWILL_PROD, TWILL_MAX, TWILL_MIN}) {
                reference::with_type(
                    type, [&](auto zero) { check_shapes<decltype(zero)>(type, op, isa); });
            }
        }
    }
}

TEST(Divide, ValuesCountsAlignments)
{
    for (const tw_isa isa : isas_here()) {
        for (const twill_type_t type : served_types) {
            reference::with_type(type, [&](auto zero) {
                using T = decltype(zero);
                for (const int nranks : {1, 2, 3, 7, 64, 127, 128, 255, 256, 1000, 70000}) {
                    for (size_t count : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 4099}) {
                        const std::vector<T> data = draw_many<T>(count, count + nranks);
                        std::vector<uint8_t> mem(count * sizeof(T) + 3, 0x5a);
                        std::vector<T> want(count);
                        std::vector<T> got(count);
                        for (size_t i = 0; i < count; i++) {
                            want[i] = reference::divide(data[i], nranks);
                        }
                        std::copy_n((const uint8_t *)data.data(), count * sizeof(T), &mem[1]);
                        tw_divide_find(type, isa)(&mem[1], count, nranks);
                        std::copy_n(&mem[1], count * sizeof(T), (uint8_t *)got.data());
                        expect_equal(got.data(), want.data(), count, tw_isa_name(isa));
                        ASSERT_TRUE(mem[0] == 0x5a && mem[mem.size() - 1] == 0x5a);
                    }
                }
            });
        }
    }
}

TEST(Reduce, OddCases)
{
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = from_bits<float>(0xffc12345); // neither quiet-canonical nor positive
    const float snan = from_bits<float>(0x7f800001);
    const float tiny = from_bits<float>(1);
    const std::vector<float> a = {0.0f, -0.0f, inf, nan, 1, tiny, snan, -0.0f, inf};
    const std::vector<float> b = {-0.0f, 0.0f, -inf, 1, nan, tiny, 0, -0.0f, 1};
    const uint32_t canon = 0x7fc00000;
    const std::vector<uint32_t> sum = {0, 0, canon, canon, canon, 2, canon, 0x80000000, 0x7f800000};
    const std::vector<uint32_t> max = {0, 0,     0x7f800000, canon,     canon,
                                       1, canon, 0x80000000, 0x7f800000};
    const std::vector<uint32_t> min = {0x80000000, 0x80000000, 0xff800000, canon,     canon,
                                       1,          canon,      0x80000000, 0x3f800000};
    for (const tw_isa isa : isas_here()) {
        std::vector<uint32_t> got(a.size());
        tw_reduce_find(TWILL_FLOAT32, TWILL_SUM, isa)(got.data(), a.data(), b.data(), a.size());
        EXPECT_EQ(got, sum) << tw_isa_name(isa);
        tw_reduce_find(TWILL_FLOAT32, TWILL_MAX, isa)(got.data(), a.data(), b.data(), a.size());
        EXPECT_EQ(got, max) << tw_isa_name(isa);
        tw_reduce_find(TWILL_FLOAT32, TWILL_MIN, isa)(got.data(), a.data(), b.data(), a.size());
        EXPECT_EQ(got, min) << tw_isa_name(isa);
    }
}

#if defined(__SSE__)
// The caller flushes denormals, rounds upwards, and traps: results are the same and its mode is
// given back.
TEST(Reduce, CallersModeDoesNotMatter)
{
    const unsigned saved = _mm_getcsr();
    const unsigned odd = 0xdfc0;                 // FTZ, DAZ, round up, all masked
    const unsigned trapping = 0x1e80 & ~0x1800u; // unmasked: inexact, underflow
    for (const twill_type_t type : {TWILL_FLOAT32, TWILL_FLOAT64, TWILL_BFLOAT16}) {
        reference::with_type(type, [&](auto zero) {
            using T = decltype(zero);
            const std::vector<T> a = draw_many<T>(5003, 5);
            const std::vector<T> b = draw_many<T>(5003, 6);
            for (const tw_isa isa : isas_here()) {
                for (const twill_redop_t op : all_ops) {
                    for (const unsigned mode : {odd, trapping}) {
                        std::vector<T> want(a.size());
                        std::vector<T> got(a.size());
                        const tw_reduce_fn reduce = tw_reduce_find(type, op, isa);
                        const tw_divide_fn divide = tw_divide_find(type, isa);
                        reduce(want.data(), a.data(), b.data(), a.size());
                        divide(want.data(), want.size(), 3);
                        _mm_setcsr(mode);
                        reduce(got.data(), a.data(), b.data(), a.size());
                        divide(got.data(), got.size(), 3);
                        const unsigned after = _mm_getcsr();
                        _mm_setcsr(saved);
                        EXPECT_EQ(after, mode);
                        expect_equal(got.data(), want.data(), want.size(), tw_isa_name(isa));
                    }
                }
            }
        });
    }
}
#endif

} // namespace
