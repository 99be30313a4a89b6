// SPDX-License-Identifier: Apache-2.0
// Knows: what each collective must yield, computed naively. Never knows: plans' steps, reductions
// of twill.
#include "collective.h"

#include <algorithm>

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

size_t type_size(twill_type_t type)
{
    switch (type) {
#define TYPE_SIZE(name, value, bytes)                                                              \
    case TWILL_##name:                                                                             \
        return bytes;
        TWILL_TYPE_LIST(TYPE_SIZE)
#undef TYPE_SIZE
    }
    return 0;
}

bool reduces(tw_coll coll)
{
    return coll == TW_COLL_ALL_REDUCE || coll == TW_COLL_REDUCE || coll == TW_COLL_REDUCE_SCATTER;
}

// Small whole numbers: sums of up to 64 ranks, and products of signs and a few twos, are exact in
// every type whatever the order.
template <class T> T small_value(uint64_t bits, twill_redop_t op)
{
    if (op == TWILL_PROD) {
        const int factors[] = {1, -1, 1, 2};
        T out;
        reference::assign(factors[bits % 4], &out);
        return out;
    }
    T out;
    reference::assign((int)(bits % 9) - 4, &out);
    return out;
}

template <class T> T value_at(const std::vector<uint8_t> &bytes, size_t i)
{
    T out;
    std::memcpy(&out, &bytes[i * sizeof(T)], sizeof(T));
    return out;
}

} // namespace

Buffers::Buffers(const Collective &what) : what_(what), bytes_(type_size(what.type))
{
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
        const bool typed = reduces(coll) && reference::with_type(what.type, [&](auto zero) {
                               using T = decltype(zero);
                               for (size_t i = 0; i < in_elems; i++) {
                                   const T value = small_value<T>(mix(salt + i), what.op);
                                   std::memcpy(&values[i * sizeof(T)], &value, sizeof(T));
                               }
                           });
        for (size_t i = 0; !typed && i < values.size(); i++) {
            values[i] = (uint8_t)mix(salt + i);
        }
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

std::vector<uint8_t> Buffers::want_out(int rank) const
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
        const size_t first = what_.coll == TW_COLL_REDUCE_SCATTER ? rank * what_.count : 0;
        reference::with_type(what_.type, [&](auto zero) {
            using T = decltype(zero);
            for (size_t i = 0; i < what_.count; i++) {
                T sum = value_at<T>(values_[0], first + i);
                for (int r = 1; r < what_.size; r++) {
                    sum = reference::reduce(sum, value_at<T>(values_[r], first + i), what_.op);
                }
                sum = what_.op == TWILL_AVG ? reference::divide(sum, what_.size) : sum;
                std::memcpy(&want[i * sizeof(T)], &sum, sizeof(T));
            }
        });
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

std::string Buffers::check() const
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
        const uint8_t *got = static_cast<const uint8_t *>(const_cast<Buffers *>(this)->out(r));
        for (size_t i = 0; i < want.size(); i++) {
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
