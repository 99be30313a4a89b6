// SPDX-License-Identifier: Apache-2.0
// Knows: what each collective must yield, computed naively. Never knows: plans' steps, reductions
// of twill.
#include "collective.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

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

const int most_scalar = 2;

// What premul_sum multiplies a rank's input by.
int scalar_of(int rank) { return 1 + rank % most_scalar; }

// What floats hold where any order of adding must give the same: whole numbers so small that sums
// over the ranks, and products of signs and twos, are exact. An element is zero on all but so many
// ranks as the type can count.
class Numbers
{
  public:
    explicit Numbers(const Collective &what) : prod_(what.op == TWILL_PROD)
    {
        const int digits = reference::format(what.type).fraction_bits + 1;
        const int room = (1 << std::min(digits, 16)) / most_scalar; // sums to it are exact
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

// Where every order of adding and every rounding shows: fractions of several magnitudes.
double rough_number(uint64_t bits)
{
    const double fraction = static_cast<double>(bits >> 11) / 9007199254740992.0 - 0.5;
    return std::ldexp(fraction, (int)(bits % 7) - 2);
}

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

// Neighbouring ranks first .. first + count - 1, split at the largest power of two below count.
uint64_t tree(twill_type_t type, const std::vector<uint64_t> &leaves, size_t first, size_t count,
              twill_redop_t op)
{
    if (count == 1) {
        return leaves[first];
    }
    size_t half = 1;
    while (2 * half < count) {
        half *= 2;
    }
    return reference::reduce(type, op, tree(type, leaves, first, half, op),
                             tree(type, leaves, first + half, count - half, op));
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

Buffers::Buffers(const Collective &what) : what_(what), bytes_(reference::bytes(what.type))
{
    for (int r = 0; r < what.size; r++) {
        const uint64_t salt = mix(what.seed * 1000 + r);
        in_lay_.push_back(lay(r, true));
        out_lay_.push_back(lay(r, false));
        values_.push_back(draw(in_lay_[r], r, salt));
        // where the order is defined, products are rounded too, and that shows
        const bool fraction = what.ordered && reference::is_float(what.type);
        scalars_.push_back(fraction ? reference::encode(what.type, 1 + 0.3 * (r % 3))
                                    : reference::from_int(what.type, scalar_of(r)));
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

std::vector<uint8_t> Buffers::draw(const Layout &layout, int rank, uint64_t salt) const
{
    std::vector<uint8_t> values(layout.elems * bytes_);
    const bool floats = contract::reduces(what_.coll) && reference::is_float(what_.type);
    const Numbers numbers(what_);
    for (size_t i = 0; floats && i < layout.elems; i++) {
        const uint64_t bits = mix(salt + i);
        reference::store(what_.type, values.data(), i,
                         what_.ordered
                             ? reference::encode(what_.type, rough_number(bits))
                             : reference::from_int(what_.type, numbers.at(rank, i, bits)));
    }
    for (size_t i = 0; !floats && i < values.size(); i++) {
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

// What the ranks' elements must reduce to where the order is defined.
uint64_t Buffers::in_order(const std::vector<uint64_t> &given) const
{
    const twill_type_t type = what_.type, wide = reference::wide_type(type);
    const bool scales = what_.op == TW_REDOP_PREMUL_SUM;
    std::vector<uint64_t> leaves = given;
    for (int r = 0; r < what_.size; r++) {
        const uint64_t input = scales ? reference::scale(type, given[r], scalars_[r]) : given[r];
        leaves[r] = reference::widen(type, input);
    }
    const uint64_t sum = tree(wide, leaves, 0, leaves.size(), what_.op);
    return reference::divide(type, sum, what_.op == TWILL_AVG ? what_.size : 1);
}

// The same of floats where it is not, since all is exact but the average; and of integers.
uint64_t Buffers::in_any_order(const std::vector<uint64_t> &given) const
{
    const twill_type_t type = what_.type;
    const bool scales = what_.op == TW_REDOP_PREMUL_SUM;
    double number = 0;
    if (!reference::is_float(type)) {
        return in_order(given);
    }
    for (int r = 0; r < what_.size; r++) {
        const double value = reference::decode(type, given[r]) * (scales ? scalar_of(r) : 1);
        number = r == 0 ? value : combine(what_.op, number, value);
    }
    if (what_.op != TWILL_AVG) {
        return reference::encode(type, number);
    }
    const bool single = type != TWILL_FLOAT64; // the quotient is rounded to fp32 first
    return reference::encode(type, single ? (float)(number / what_.size) : number / what_.size);
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
    std::vector<uint64_t> given(what_.size);
    for (size_t i = 0; i < elems; i++) {
        for (int r = 0; r < what_.size; r++) {
            given[r] = reference::load(what_.type, values_[r].data(), in_lay_[r].displs[part] + i);
        }
        reference::store(what_.type, bytes.data(), i,
                         what_.ordered ? in_order(given) : in_any_order(given));
    }
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
    std::vector<uint8_t> used(layout.elems * bytes_);
    for (size_t g = 0; g < layout.counts.size(); g++) {
        std::fill_n(used.begin() + layout.displs[g] * bytes_, layout.counts[g] * bytes_, 1);
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
    std::map<std::pair<int, size_t>, std::vector<uint8_t>> reduced;
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
            const std::pair<int, size_t> key(contract::source_group(what_.coll, r), g);
            const bool shared = contract::reduces(what_.coll); // ranks may have the same result
            const auto known = shared ? reduced.find(key) : reduced.end();
            const std::vector<uint8_t> wanted = known != reduced.end() ? known->second : want(r, g);
            const uint8_t *got = group_at(r, false, g);
            const bool alike =
                wanted.empty() || std::memcmp(got, wanted.data(), wanted.size()) == 0;
            if (shared) {
                reduced.emplace(key, wanted);
            }
            for (size_t i = 0; !alike && i < wanted.size(); i++) {
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
