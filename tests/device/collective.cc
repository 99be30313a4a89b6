// SPDX-License-Identifier: Apache-2.0
// Knows: what each collective must yield, computed naively. Never knows: plans' steps, reductions
// of twill.
#include "collective.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "plan/contract.hh"
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

// Where every order of adding and every rounding shows: fractions of several magnitudes.
template <class T> T rough_value(uint64_t bits)
{
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(bits);
    } else {
        T out;
        const double fraction = static_cast<double>(bits >> 11) / 9007199254740992.0 - 0.5;
        reference::narrow(std::ldexp(fraction, (int)(bits % 7) - 2), &out);
        return out;
    }
}

// The type in which partials are kept.
template <class T> T to_wide(T value) { return value; }
inline float to_wide(reference::bf16 value) { return (float)reference::widen(value); }
inline void from_wide(float value, reference::bf16 *out) { reference::narrow((double)value, out); }
template <class T> void from_wide(T value, T *out) { *out = value; }

template <class T> T value_at(const std::vector<uint8_t> &bytes, size_t i)
{
    T out;
    std::memcpy(&out, &bytes[i * sizeof(T)], sizeof(T));
    return out;
}

// Neighbouring ranks first .. first + count - 1, split at the largest power of two below count.
template <class W>
W tree(const std::vector<W> &leaves, size_t first, size_t count, twill_redop_t op)
{
    if (count == 1) {
        return leaves[first];
    }
    size_t half = 1;
    while (2 * half < count) {
        half *= 2;
    }
    return reference::reduce(tree(leaves, first, half, op),
                             tree(leaves, first + half, count - half, op), op);
}

template <class T> T in_order(const std::vector<T> &given, twill_redop_t op)
{
    std::vector<decltype(to_wide(T()))> leaves;
    T out;
    for (const T &value : given) {
        leaves.push_back(to_wide(value));
    }
    auto sum = tree(leaves, 0, leaves.size(), op);
    from_wide(op == TWILL_AVG ? reference::divide(sum, (int)given.size()) : sum, &out);
    return out;
}

template <class T> T in_any_order(const std::vector<T> &given, twill_redop_t op)
{
    T out = given[0];
    for (size_t r = 1; r < given.size(); r++) {
        out = reference::reduce(out, given[r], op);
    }
    return op == TWILL_AVG ? reference::divide(out, (int)given.size()) : out;
}

} // namespace

std::vector<std::vector<size_t>> draw_pairs(const Collective &what, size_t most,
                                            std::mt19937_64 &rng)
{
    std::vector<std::vector<size_t>> pairs(what.size, std::vector<size_t>(what.size));
    const size_t bounds[] = {1, 10, most / 8 + 2, most + 1};
    for (std::vector<size_t> &row : pairs) {
        for (size_t &count : row) {
            count = rng() % bounds[rng() % 4];
        }
    }
    for (int r = 0; r < what.size; r++) {
        for (int p = 0; p < what.size && (what.inplace >> r % 64 & 1); p++) {
            pairs[p][r] = pairs[r][p];
        }
    }
    return pairs;
}

Buffers::Buffers(const Collective &what) : what_(what), bytes_(type_size(what.type))
{
    for (int r = 0; r < what.size; r++) {
        const uint64_t salt = mix(what.seed * 1000 + r);
        in_lay_.push_back(lay(r, true));
        out_lay_.push_back(lay(r, false));
        values_.push_back(draw(in_lay_[r], salt));
        // in place the buffer of more groups serves as both
        const bool one = in_place(r), in_serves = many(true) && !many(false);
        Memory in = allot(in_lay_[r].elems, salt);
        Memory out = allot(out_lay_[r].elems, salt + 1);
        in.present = has(r, true) && !(one && !in_serves);
        out.present = has(r, false) && !(one && in_serves);
        in_.push_back(in);
        out_.push_back(out);
        for (size_t g = 0; has(r, true) && g < in_lay_[r].counts.size(); g++) {
            if (in_lay_[r].counts[g] > 0) {
                std::memcpy(const_cast<uint8_t *>(group_at(r, true, g)),
                            &values_[r][in_lay_[r].displs[g] * bytes_],
                            in_lay_[r].counts[g] * bytes_);
            }
        }
    }
}

bool Buffers::many(bool in) const
{
    return in ? contract::many_in(what_.coll) : contract::many_out(what_.coll);
}

bool Buffers::has(int rank, bool in) const
{
    return in ? contract::has_in(what_.coll, what_.root, rank)
              : contract::has_out(what_.coll, what_.root, rank);
}

bool Buffers::in_place(int rank) const
{
    return what_.inplace >> rank % 64 & 1 && has(rank, true) && has(rank, false);
}

// Gaps depend on the group alone, so that in place a rank's IN and OUT are laid out alike.
Buffers::Layout Buffers::lay(int rank, bool in) const
{
    Layout layout;
    layout.packed = !contract::is_v(what_.coll) || !many(in) || mix(what_.seed + rank) % 2;
    for (int g = 0; g < (many(in) ? what_.size : 1) && what_.coll != TW_COLL_BARRIER; g++) {
        layout.elems += layout.packed ? 0 : mix(what_.seed * 7 + g) % 3;
        layout.displs.push_back(layout.elems);
        layout.counts.push_back(
            in ? contract::count_in(what_.coll, what_.count, what_.pairs, rank, g)
               : contract::count_out(what_.coll, what_.count, what_.pairs, rank, g));
        layout.elems += layout.counts.back();
    }
    return layout;
}

std::vector<uint8_t> Buffers::draw(const Layout &layout, uint64_t salt) const
{
    std::vector<uint8_t> values(layout.elems * bytes_);
    const bool typed =
        contract::reduces(what_.coll) && reference::with_type(what_.type, [&](auto zero) {
            using T = decltype(zero);
            for (size_t i = 0; i < layout.elems; i++) {
                const T value = what_.ordered ? rough_value<T>(mix(salt + i))
                                              : small_value<T>(mix(salt + i), what_.op);
                std::memcpy(&values[i * sizeof(T)], &value, sizeof(T));
            }
        });
    for (size_t i = 0; !typed && i < values.size(); i++) {
        values[i] = (uint8_t)mix(salt + i);
    }
    return values;
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

const void *Buffers::in(int rank) const
{
    if (!has(rank, true)) {
        return nullptr;
    }
    const Memory &own = in_[rank].present ? in_[rank] : out_[rank];
    const bool group = !in_[rank].present && !many(true) && many(false);
    return own.bytes.data() + own.at + (group ? out_lay_[rank].displs[rank] * bytes_ : 0);
}

void *Buffers::out(int rank)
{
    if (!has(rank, false)) {
        return nullptr;
    }
    Memory &own = out_[rank].present ? out_[rank] : in_[rank];
    const bool group = !out_[rank].present && !many(false) && many(true);
    return own.bytes.data() + own.at + (group ? in_lay_[rank].displs[rank] * bytes_ : 0);
}

size_t Buffers::own_count(int rank) const
{
    return contract::is_v(what_.coll) ? what_.pairs[rank][rank] : what_.count;
}

// All that the rank may know: its own row and column, or all counts, or at the root only.
tw_exec_counts Buffers::counts(int rank, bool in) const
{
    const Layout &layout = in ? in_lay_[rank] : out_lay_[rank];
    if (!contract::is_v(what_.coll) || !many(in) || !has(rank, in)) {
        return {nullptr, nullptr};
    }
    return {layout.counts.data(), layout.packed ? nullptr : layout.displs.data()};
}

const uint8_t *Buffers::group_at(int rank, bool in, size_t group) const
{
    const void *start = in ? this->in(rank) : const_cast<Buffers *>(this)->out(rank);
    const Layout &layout = in ? in_lay_[rank] : out_lay_[rank];
    return static_cast<const uint8_t *>(start) + layout.displs[group] * bytes_;
}

// One group of OUT.
std::vector<uint8_t> Buffers::want(int rank, size_t group) const
{
    const size_t elems = out_lay_[rank].counts[group];
    const int from = contract::source_rank(what_.coll, what_.root, group);
    const int part = contract::source_group(what_.coll, rank);
    std::vector<uint8_t> bytes(elems * bytes_);
    if (!contract::reduces(what_.coll)) {
        std::copy_n(values_[from].begin() + in_lay_[from].displs[part] * bytes_, bytes.size(),
                    bytes.begin());
        return bytes;
    }
    reference::with_type(what_.type, [&](auto zero) {
        using T = decltype(zero);
        std::vector<T> given(what_.size);
        for (size_t i = 0; i < elems; i++) {
            for (int r = 0; r < what_.size; r++) {
                given[r] = value_at<T>(values_[r], in_lay_[r].displs[part] + i);
            }
            const T sum = what_.ordered ? in_order(given, what_.op) : in_any_order(given, what_.op);
            std::memcpy(&bytes[i * sizeof(T)], &sum, sizeof(T));
        }
    });
    return bytes;
}

bool Buffers::guards_whole(const Memory &memory) const
{
    const auto is_guard = [](uint8_t byte) { return byte == guard_byte; };
    return std::all_of(memory.bytes.begin(), memory.bytes.begin() + memory.at, is_guard) &&
           std::all_of(memory.bytes.begin() + memory.at + memory.length, memory.bytes.end(),
                       is_guard);
}

// Nothing was written between the groups of OUT.
bool Buffers::gaps_whole(int rank) const
{
    if (!has(rank, false) || !out_[rank].present) {
        return true;
    }
    const Layout &layout = out_lay_[rank];
    std::vector<bool> used(layout.elems * bytes_);
    for (size_t g = 0; g < layout.counts.size(); g++) {
        std::fill_n(used.begin() + layout.displs[g] * bytes_, layout.counts[g] * bytes_, true);
    }
    for (size_t i = 0; i < used.size(); i++) {
        if (!used[i] && out_[rank].bytes[out_[rank].at + i] != poison_byte) {
            return false;
        }
    }
    return true;
}

std::string Buffers::check() const
{
    for (int r = 0; r < what_.size; r++) {
        const std::string who = "rank " + std::to_string(r) + ": ";
        if (!guards_whole(in_[r]) || !guards_whole(out_[r]) || !gaps_whole(r)) {
            return who + "wrote outside its buffers";
        }
        for (size_t g = 0; has(r, true) && !in_place(r) && g < in_lay_[r].counts.size(); g++) {
            const size_t bytes = in_lay_[r].counts[g] * bytes_;
            if (bytes > 0 && std::memcmp(group_at(r, true, g),
                                         &values_[r][in_lay_[r].displs[g] * bytes_], bytes) != 0) {
                return who + "changed its input";
            }
        }
        for (size_t g = 0; has(r, false) && g < out_lay_[r].counts.size(); g++) {
            const std::vector<uint8_t> wanted = want(r, g);
            const uint8_t *got = group_at(r, false, g);
            for (size_t i = 0; i < wanted.size(); i++) {
                if (got[i] != wanted[i]) {
                    return who + "group " + std::to_string(g) + " element " +
                           std::to_string(i / bytes_) + " byte " + std::to_string(i % bytes_) +
                           " is " + std::to_string(got[i]) + ", not " + std::to_string(wanted[i]);
                }
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
    call.count = buffers.own_count(rank);
    call.in_counts = buffers.counts(rank, true);
    call.out_counts = buffers.counts(rank, false);
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
