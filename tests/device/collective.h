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
    size_t count = 1;
    twill_type_t type = TWILL_FLOAT32;
    twill_redop_t op = TWILL_SUM;
    uint64_t inplace = 0; // bit per rank
    uint64_t seed = 1;
};

// The buffers of all ranks for one call: inputs are drawn so that every order of reducing gives
// the same, outputs poisoned, guard bytes around all.
class Buffers
{
  public:
    explicit Buffers(const Collective &what);

    const void *in(int rank) const;
    void *out(int rank);
    const void *scalar(int rank) const { return &scalars_[rank]; }
    std::string check(); // "" or the first difference

  private:
    struct Memory {
        std::vector<uint8_t> bytes;
        size_t at = 0, length = 0; // the buffer inside, between guards
        bool present = false;
    };
    Memory allot(size_t elems, uint64_t salt) const;
    bool has_in(int rank) const;
    bool has_out(int rank) const;
    bool in_place(int rank) const;
    std::vector<uint8_t> want_out(int rank);
    uint64_t bits_of(double value, bool part);
    uint64_t want_float(size_t i);
    uint64_t want_int(size_t i) const;
    const std::vector<uint8_t> &want_reduced();
    bool guards_whole(const Memory &memory) const;

    Collective what_;
    size_t bytes_, in_groups_, out_groups_;
    std::vector<std::vector<uint8_t>> values_; // what each rank gives
    std::vector<std::vector<double>> numbers_; // the same, if they are floats to reduce
    std::vector<uint64_t> scalars_;
    std::vector<uint64_t> known_[2]; // bits of whole numbers, of their parts
    std::vector<uint8_t> reduced_;   // what all of it reduces to, once asked for
    std::vector<Memory> in_, out_;   // in place: out_ (in_ for reduce_scatter) is both
};

tw_exec_call make_call(const World &world, const tw_plan *plan, const Collective &what,
                       Buffers &buffers, int rank);
// One call on all ranks, checked. "" or what went wrong.
std::string run_collective(World &world, const tw_plan *plan, const Collective &what,
                           const Driver &driver);

#endif
