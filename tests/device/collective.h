// SPDX-License-Identifier: Apache-2.0
// Knows: what each collective must yield, computed naively. Never knows: plans' steps, reductions
// of twill.
#ifndef TW_TESTS_DEVICE_COLLECTIVE_H
#define TW_TESTS_DEVICE_COLLECTIVE_H

#include <string>
#include <vector>

#include "world.h"

struct Collective {
    tw_coll coll = TW_COLL_ALL_REDUCE;
    int size = 2;
    int root = 0;
    size_t count = 1;                       // of a group
    std::vector<std::vector<size_t>> pairs; // v-variants: as in contract::count_in
    twill_type_t type = TWILL_FLOAT32;
    twill_redop_t op = TWILL_SUM;
    uint64_t inplace = 0; // bit per rank
    uint64_t seed = 1;
    // The result is defined to the bit: inputs of many magnitudes, added in the stated order. Else
    // they are drawn so that every order gives the same.
    bool ordered = false;
};

// Counts for a v-variant: some none, most of them small, up to `most`. Ranks in place give as much
// as they get.
std::vector<std::vector<size_t>> draw_pairs(const Collective &what, size_t most,
                                            std::mt19937_64 &rng);

// The buffers of all ranks for one call: inputs drawn, outputs poisoned, guard bytes around all,
// groups of v-variants packed or with gaps.
class Buffers
{
  public:
    explicit Buffers(const Collective &what);

    const void *in(int rank) const;
    void *out(int rank);
    size_t own_count(int rank) const; // of the one group where others have one each
    tw_exec_counts counts(int rank, bool in) const;
    const void *scalar(int rank) const { return &scalars_[rank]; }
    std::string check() const; // "" or the first difference

  private:
    struct Memory {
        std::vector<uint8_t> bytes;
        size_t at = 0, length = 0; // the buffer inside, between guards
        bool present = false;
    };
    // Groups of IN or OUT on one rank, in elements.
    struct Layout {
        std::vector<size_t> counts, displs;
        size_t elems = 0;
        bool packed = true;
    };
    Layout lay(int rank, bool in) const;
    Memory allot(size_t elems, uint64_t salt) const;
    std::vector<uint8_t> draw(const Layout &layout, int rank, uint64_t salt) const;
    bool has(int rank, bool in) const;
    bool in_place(int rank) const;
    bool many(bool in) const;
    const uint8_t *group_at(int rank, bool in, size_t group) const;
    std::vector<uint8_t> want(int rank, size_t group) const;
    uint64_t in_order(const std::vector<uint64_t> &given) const;
    uint64_t in_any_order(const std::vector<uint64_t> &given) const;
    bool guards_whole(const Memory &memory) const;
    bool gaps_whole(int rank) const;

    Collective what_;
    size_t bytes_;
    std::vector<std::vector<uint8_t>> values_; // what each rank gives, laid out as its IN
    std::vector<uint64_t> scalars_;            // of premul_sum
    std::vector<Layout> in_lay_, out_lay_;
    std::vector<Memory> in_, out_; // in place: the larger one is both
};

tw_exec_call make_call(const World &world, const tw_plan *plan, const Collective &what,
                       Buffers &buffers, int rank);
// One call on all ranks, checked. "" or what went wrong.
std::string run_collective(World &world, const tw_plan *plan, const Collective &what,
                           const Driver &driver);

#endif
