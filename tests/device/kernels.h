// SPDX-License-Identifier: Apache-2.0
// Knows: which kernels there are, what each must yield by the reference. Never knows: how they
// compute.
#ifndef TW_TESTS_DEVICE_KERNELS_H
#define TW_TESTS_DEVICE_KERNELS_H

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <random>
#include <string>
#include <vector>

#include "reference.h"

extern "C" {
#include "device/convert.h"
#include "device/reduce.h"
}

// Sanitizers slow the reference down and would find in all edges what they find in some.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const size_t edge_step = 17;
#else
const size_t edge_step = 1;
#endif

inline bool has_isa(const std::string &name)
{
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    const bool avx2 = false;
    const bool avx512 = false;
#endif
    return name == "portable" || (name == "avx2" && avx2) || (name == "avx512" && avx512);
}

inline std::vector<tw_isa> isas_here()
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

struct Kernel {
    twill_type_t type;
    twill_redop_t op;
    tw_reduce_form form;

    twill_type_t wide() const { return reference::wide_type(type); }
    twill_type_t left() const
    {
        return form == TW_FORM_PLAIN || form == TW_FORM_WIDEN ? type : wide();
    }
    twill_type_t right() const { return form == TW_FORM_WIDE ? wide() : type; }
    twill_type_t dst() const { return form == TW_FORM_PLAIN ? type : wide(); }
    uint64_t want(uint64_t a, uint64_t b) const
    {
        return form == TW_FORM_PLAIN ? reference::reduce(type, op, a, b)
                                     : reference::reduce_wide(op, left(), a, right(), b);
    }
    std::string name() const
    {
        static const char *const forms[] = {" plain", " widen", " add", " wide"};
        return std::string(reference::name(op)) + " of " + reference::name(type) + forms[form];
    }
};

// All of a type, or of all types; forms other than plain where they differ from it.
inline std::vector<Kernel> kernels_of(twill_type_t type)
{
    std::vector<Kernel> out;
    for (int op = 0; op < reference::redop_count; op++) {
        for (int form = 0; form < TW_FORM_COUNT; form++) {
            if (reference::has_op(type, (twill_redop_t)op) &&
                (form == TW_FORM_PLAIN || reference::is_narrow(type))) {
                out.push_back({type, (twill_redop_t)op, (tw_reduce_form)form});
            }
        }
    }
    return out;
}

inline std::vector<Kernel> all_kernels()
{
    std::vector<Kernel> out;
    for (int type = 0; type < reference::type_count; type++) {
        for (const Kernel &kernel : kernels_of((twill_type_t)type)) {
            out.push_back(kernel);
        }
    }
    return out;
}

// Random bits, with the values at which float arithmetic goes wrong over-represented.
inline uint64_t draw(twill_type_t type, std::mt19937_64 &rng)
{
    const int width = 8 * (int)reference::bytes(type);
    const uint64_t all = UINT64_MAX >> (64 - width);
    const uint64_t bits = rng();
    if (!reference::is_float(type) || bits % 4 != 0) {
        return rng() & all;
    }
    const int mantissa = reference::format(type).fraction_bits;
    const uint64_t sign = (bits >> 8 & 1) << (width - 1);
    const uint64_t inf = (all >> 1) & ~((1ull << mantissa) - 1);
    const uint64_t edges[] = {
        0,       1,       (1ull << mantissa) - 1,       1ull << mantissa, inf,
        inf + 1, inf - 1, inf | 1ull << (mantissa - 1), inf >> 1,         all >> 1};
    return edges[(bits >> 16) % 10] | sign;
}

inline std::vector<uint64_t> draw_many(twill_type_t type, size_t count, uint64_t seed)
{
    std::mt19937_64 rng(seed);
    std::vector<uint64_t> out(count);
    for (uint64_t &value : out) {
        value = draw(type, rng);
    }
    return out;
}

// got: packed elements. Tells the first difference.
inline void expect_elements(twill_type_t type, const void *got, const std::vector<uint64_t> &want,
                            const std::string &what)
{
    const std::vector<uint8_t> packed = reference::pack(type, want);
    if (packed.empty() || std::equal(packed.begin(), packed.end(), (const uint8_t *)got)) {
        return;
    }
    for (size_t i = 0; i < want.size(); i++) {
        const uint64_t bits = reference::load(type, got, i);
        if (bits != want[i]) {
            ADD_FAILURE() << what << " element " << i << ": got 0x" << std::hex << bits
                          << ", want 0x" << want[i];
            return;
        }
    }
}

#endif
