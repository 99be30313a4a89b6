// SPDX-License-Identifier: Apache-2.0
// Knows: what each collective must yield, computed naively. Never knows: plans' steps, reductions
// of twill.
#include "collective.h"

#include <algorithm>
#include <cstring>

#include "reference.h"

namespace
{

const uint8_t guard_byte = 0xc3;
const uint8_t poison_byte = 0xa7;

uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

bool reduces(tw_coll coll)
{
    return coll == TW_COLL_ALL_REDUCE || coll == TW_COLL_REDUCE || coll == TW_COLL_REDUCE_SCATTER;
}

const int most_scalar = 2;

// What premul_sum multiplies a rank's input by.
int scalar_of(int rank) { return 1 + rank % most_scalar; }

// What floats hold: whole numbers so small that sums over the ranks, and products of signs and
// twos, come out alike in every order. An element is zero on all but so many ranks as the type can
// count.
class Numbers
{
  public:
    explicit Numbers(const Collective &what) : prod_(what.op == TWILL_PROD)
    {
        const int digits = reference::format(what.type).fraction_bits + 1;
        const int room = (1 << (digits < 16 ? digits : 16)) / most_scalar; // sums to it are exact
        limit_ = std::max(1, std::min(4, room / what.size));
        apart_ = (what.size + room / limit_ - 1) / (room / limit_);
    }
    int at(int rank, size_t i, uint64_t bits) const
    {
        static const int factors[] = {1, -1, 1, 2};
        if (prod_) {
            return factors[bits % 4];
        }
        return (rank + i) % apart_ == 0 ? (int)(bits % (2 * limit_ + 1)) - limit_ : 0;
    }

  private:
    bool prod_;
    int limit_;
    size_t apart_;
};

double combine(twill_redop_t op, double a, double b)
{
    switch (op) {
    case TWILL_PROD:
        return a * b;
    case TWILL_MAX:
        return std::max(a, b);
    case TWILL_MIN:
        return std::min(a, b);
    default:
        return a + b;
    }
}

} // namespace

Buffers::Buffers(const Collective &what) : what_(what), bytes_(reference::bytes(what.type))
{
    for (int r = 0; r < what.size; r++) {
        scalars_.push_back(reference::from_int(what.type, scalar_of(r)));
    }
    const tw_coll coll = what.coll;
    in_groups_ = coll == TW_COLL_REDUCE_SCATTER || coll == TW_COLL_ALL_TO_ALL ? what.size
                 : coll == TW_COLL_BARRIER                                    ? 0
                                                                              : 1;
    out_groups_ = coll == TW_COLL_ALL_GATHER || coll == TW_COLL_ALL_TO_ALL ? what.size
                  : coll == TW_COLL_BARRIER                                ? 0
                                                                           : 1;
    const size_t in_elems = in_groups_ * what.count;
    for (int r = 0; r < what.size; r++) {
        std::vector<uint8_t> values(in_elems * bytes_);
        const uint64_t salt = mix(what.seed * 1000 + r);
        const bool floats = reduces(coll) && reference::is_float(what.type);
        const Numbers numbers(what);
        std::vector<double> held(floats ? in_elems : 0);
        for (size_t i = 0; i < held.size(); i++) {
            held[i] = numbers.at(r, i, mix(salt + i));
            reference::store(what.type, values.data(), i, bits_of(held[i], false));
        }
        for (size_t i = 0; !floats && i < values.size(); i++) {
            values[i] = (uint8_t)mix(salt + i);
        }
        numbers_.push_back(held);
        values_.push_back(values);
        // in place the larger of the two buffers serves as both
        const bool one = in_place(r);
        Memory in = allot(in_elems, salt);
        Memory out = allot(out_groups_ * what.count, salt + 1);
        in.present = has_in(r) && !(one && out_groups_ >= in_groups_);
        out.present = has_out(r) && !(one && out_groups_ < in_groups_);
        in_.push_back(in);
        out_.push_back(out);
        if (has_in(r) && !values.empty()) {
            std::memcpy(const_cast<void *>(this->in(r)), values.data(), values.size());
        }
    }
}

Buffers::Memory Buffers::allot(size_t elems, uint64_t salt) const
{
    Memory memory;
    memory.length = elems * bytes_;
    memory.at = 64 + mix(salt) % 64;
    memory.bytes.assign(memory.at + memory.length + 64, guard_byte);
    std::fill_n(&memory.bytes[memory.at], memory.length, poison_byte);
    return memory;
}

bool Buffers::has_in(int rank) const
{
    return what_.coll != TW_COLL_BARRIER && (what_.coll != TW_COLL_BROADCAST || rank == what_.root);
}

bool Buffers::has_out(int rank) const
{
    return what_.coll != TW_COLL_BARRIER && (what_.coll != TW_COLL_REDUCE || rank == what_.root);
}

bool Buffers::in_place(int rank) const
{
    return what_.inplace >> rank % 64 & 1 && has_in(rank) && has_out(rank) &&
           what_.coll != TW_COLL_ALL_TO_ALL;
}

const void *Buffers::in(int rank) const
{
    if (!has_in(rank)) {
        return nullptr;
    }
    const Memory &own = in_[rank].present ? in_[rank] : out_[rank];
    const size_t group = !in_[rank].present && what_.coll == TW_COLL_ALL_GATHER ? rank : 0;
    return own.bytes.data() + own.at + group * what_.count * bytes_;
}

void *Buffers::out(int rank)
{
    if (!has_out(rank)) {
        return nullptr;
    }
    Memory &own = out_[rank].present ? out_[rank] : in_[rank];
    const size_t group = !out_[rank].present && what_.coll == TW_COLL_REDUCE_SCATTER ? rank : 0;
    return own.bytes.data() + own.at + group * what_.count * bytes_;
}

// Of a whole number, or of its part of the ranks (which fp32 rounds first where it is a partial's
// type). Few numbers are met often.
uint64_t Buffers::bits_of(double value, bool part)
{
    const int most = 1000;
    const auto encoded = [&] {
        const double share = value / what_.size;
        const bool single = what_.type != TWILL_FLOAT64;
        return reference::encode(what_.type, !part ? value : single ? (float)share : share);
    };
    if (value < -most || value > most) {
        return encoded();
    }
    std::vector<uint64_t> &known = known_[part];
    if (known.empty()) {
        known.assign(2 * most + 1, UINT64_MAX);
    }
    uint64_t &bits = known[(int)value + most];
    if (bits == UINT64_MAX) {
        bits = encoded();
    }
    return bits;
}

uint64_t Buffers::want_float(size_t i)
{
    const bool scaled = what_.op == TW_REDOP_PREMUL_SUM;
    double sum = 0;
    for (int r = 0; r < what_.size; r++) {
        const double value = numbers_[r][i] * (scaled ? scalar_of(r) : 1);
        sum = r == 0 ? value : combine(what_.op, sum, value);
    }
    return bits_of(sum, what_.op == TWILL_AVG);
}

uint64_t Buffers::want_int(size_t i) const
{
    uint64_t sum = 0;
    for (int r = 0; r < what_.size; r++) {
        uint64_t value = reference::load(what_.type, values_[r].data(), i);
        if (what_.op == TW_REDOP_PREMUL_SUM) {
            value = reference::scale(what_.type, value, scalars_[r]);
        }
        sum = r == 0 ? value : reference::reduce(what_.type, what_.op, sum, value);
    }
    return what_.op == TWILL_AVG ? reference::divide(what_.type, sum, what_.size) : sum;
}

// All that the inputs reduce to, computed once.
const std::vector<uint8_t> &Buffers::want_reduced()
{
    const size_t elems = in_groups_ * what_.count;
    if (reduced_.empty() && elems > 0) {
        reduced_.resize(elems * bytes_);
        for (size_t i = 0; i < elems; i++) {
            reference::store(what_.type, reduced_.data(), i,
                             reference::is_float(what_.type) ? want_float(i) : want_int(i));
        }
    }
    return reduced_;
}

std::vector<uint8_t> Buffers::want_out(int rank)
{
    const size_t group_bytes = what_.count * bytes_;
    std::vector<uint8_t> want(out_groups_ * group_bytes);
    const auto copy = [&](size_t to, int from, size_t group) {
        std::copy_n(values_[from].begin() + group * group_bytes, group_bytes,
                    want.begin() + to * group_bytes);
    };
    if (what_.coll == TW_COLL_BROADCAST) {
        copy(0, what_.root, 0);
    } else if (what_.coll == TW_COLL_ALL_GATHER || what_.coll == TW_COLL_ALL_TO_ALL) {
        for (int r = 0; r < what_.size; r++) {
            copy(r, r, what_.coll == TW_COLL_ALL_GATHER ? 0 : rank);
        }
    } else if (reduces(what_.coll)) {
        const size_t group = what_.coll == TW_COLL_REDUCE_SCATTER ? rank : 0;
        std::copy_n(want_reduced().begin() + group * group_bytes, group_bytes, want.begin());
    }
    return want;
}

bool Buffers::guards_whole(const Memory &memory) const
{
    const auto is_guard = [](uint8_t byte) { return byte == guard_byte; };
    return std::all_of(memory.bytes.begin(), memory.bytes.begin() + memory.at, is_guard) &&
           std::all_of(memory.bytes.begin() + memory.at + memory.length, memory.bytes.end(),
                       is_guard);
}

std::string Buffers::check()
{
    for (int r = 0; r < what_.size; r++) {
        const std::string who = "rank " + std::to_string(r) + ": ";
        if (!guards_whole(in_[r]) || !guards_whole(out_[r])) {
            return who + "wrote outside its buffers";
        }
        if (has_in(r) && !in_place(r) && !values_[r].empty() &&
            std::memcmp(in(r), values_[r].data(), values_[r].size()) != 0) {
            return who + "changed its input";
        }
        if (!has_out(r)) {
            continue;
        }
        const std::vector<uint8_t> want = want_out(r);
        const uint8_t *got = static_cast<const uint8_t *>(out(r));
        const bool alike = want.empty() || std::memcmp(got, want.data(), want.size()) == 0;
        for (size_t i = 0; !alike && i < want.size(); i++) {
            if (got[i] != want[i]) {
                return who + "element " + std::to_string(i / bytes_) + " byte " +
                       std::to_string(i % bytes_) + " is " + std::to_string(got[i]) + ", not " +
                       std::to_string(want[i]);
            }
        }
    }
    return "";
}

tw_exec_call make_call(const World &world, const tw_plan *plan, const Collective &what,
                       Buffers &buffers, int rank)
{
    tw_exec_call call = {};
    call.plan = plan;
    call.rank = rank;
    call.in = buffers.in(rank);
    call.out = buffers.out(rank);
    call.count = what.count;
    call.type = what.type;
    call.op = what.op;
    call.scalar = buffers.scalar(rank);
    call.header = mix(what.seed);
    call.call_index = world.call_index;
    return call;
}

std::string run_collective(World &world, const tw_plan *plan, const Collective &what,
                           const Driver &driver)
{
    Buffers buffers(what);
    std::vector<tw_exec_call> calls;
    for (int r = 0; r < what.size; r++) {
        calls.push_back(make_call(world, plan, what, buffers, r));
    }
    std::string failure = world.start(calls);
    failure = failure.empty() ? driver(world.execs) : failure;
    return failure.empty() ? buffers.check() : failure;
}
