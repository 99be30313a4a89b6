/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the buffers of vcase.h are laid out and filled. Never knows: twill's plans. */
#include "vcase.h"

#include <sstream>

namespace vcase
{

static const unsigned char POISON = 0xa5;
static const size_t GAP = 3; /* elements between blocks, and around the buffer */

std::string Case::text() const
{
    std::ostringstream out;
    out << name(kind) << " type " << type << " op " << op << " root " << root << " layout "
        << layout << " in_place " << in_place << " counts";
    for (int from = 0; from < size(); from++) {
        out << (from ? " |" : "");
        for (int to = 0; to < size(); to++)
            if (kind == ALL_TO_ALL_V || from == to)
                out << ' ' << pairs[(size_t)from][(size_t)to];
    }
    return out.str();
}

/* Blocks packed, apart from each other, or apart and in falling order. */
void Buffers::lay(Side *side, bool in) const
{
    const size_t width = data::type_bytes(c_.type);
    const bool many = in ? c_.many_in() : c_.many_out();
    const bool has = in ? c_.has_in(rank_) : c_.has_out(rank_);
    const int blocks = many ? c_.size() : 1;
    side->counts.assign((size_t)blocks, 0);
    side->displs.assign((size_t)blocks, 0);
    size_t end = 0;
    for (int i = 0; has && i < blocks; i++) {
        const bool reversed = many && c_.layout == REVERSED;
        const int block = reversed ? blocks - 1 - i : i;
        side->counts[(size_t)block] = in ? c_.count_in(rank_, block) : c_.count_out(rank_, block);
        end += many && c_.layout != PACKED ? GAP : 0;
        side->displs[(size_t)block] = end;
        end += side->counts[(size_t)block];
    }
    side->bytes.assign((end + 2 * GAP) * width, POISON);
    side->at = side->bytes.data() + GAP * width;
}

Buffers::Buffers(const Case &c, int rank) : c_(c), rank_(rank)
{
    const size_t width = data::type_bytes(c.type);
    const bool rooted = c.kind == GATHER_V || c.kind == SCATTER_V;
    lay(&in_, true);
    lay(&out_, false);
    in_place_ = (c.in_place >> rank & 1) && (!rooted || rank == c.root) &&
                (c.kind != ALL_TO_ALL_V || (in_.counts == out_.counts));
    send_ = in_.at;
    recv_ = out_.at;
    if (in_place_ && c.many_in() && c.many_out())
        recv_ = send_;
    else if (in_place_ && c.many_out())
        send_ = recv_ + out_.displs[(size_t)rank] * width;
    else if (in_place_)
        recv_ = send_ + in_.displs[(size_t)rank] * width;
    for (size_t block = 0; c.has_in(rank) && block < in_.counts.size(); block++)
        data::fill(send_ + in_.displs[block] * width, in_.counts[block], c.type,
                   c.seed + (c.kind == ALL_TO_ALL_V || c.many_in() ? block : 0), rank, 0, c.op);
    in_.before = in_.bytes;
    out_.before = out_.bytes;
}

enum twill_status Buffers::call(twill_comm_t comm, twill_stream_t stream)
{
    const bool packed = c_.layout == PACKED;
    const size_t *in_counts = in_.counts.data(), *out_counts = out_.counts.data();
    const size_t *in_displs = packed ? nullptr : in_.displs.data();
    const size_t *out_displs = packed ? nullptr : out_.displs.data();
    switch (c_.kind) {
    case ALL_GATHER_V:
        return twill_all_gather_v(send_, recv_, out_counts, out_displs, c_.type, comm, stream);
    case REDUCE_SCATTER_V:
        return twill_reduce_scatter_v(send_, recv_, in_counts, in_displs, c_.type, c_.op, comm,
                                      stream);
    case ALL_TO_ALL_V:
        return twill_all_to_all_v(send_, in_counts, in_displs, recv_, out_counts, out_displs,
                                  c_.type, comm, stream);
    case GATHER_V: /* elsewhere than at the root nothing is looked at but the own count */
        if (rank_ != c_.root)
            return twill_gather_v(send_, in_counts[0], nullptr, nullptr, nullptr, c_.type, c_.root,
                                  comm, stream);
        return twill_gather_v(send_, in_counts[0], recv_, out_counts, out_displs, c_.type, c_.root,
                              comm, stream);
    default:
        if (rank_ != c_.root)
            return twill_scatter_v(nullptr, nullptr, nullptr, recv_, out_counts[0], c_.type,
                                   c_.root, comm, stream);
        return twill_scatter_v(send_, in_counts, in_displs, recv_, out_counts[0], c_.type, c_.root,
                               comm, stream);
    }
}

void Buffers::forget()
{
    for (Side *side : {&in_, &out_}) {
        std::fill(side->counts.begin(), side->counts.end(), (size_t)1 << 60);
        std::fill(side->displs.begin(), side->displs.end(), (size_t)1 << 60);
    }
}

data::Bytes Buffers::want(int block) const
{
    const size_t count = c_.count_out(rank_, block);
    data::Bytes bytes(count * data::type_bytes(c_.type));
    if (c_.kind == REDUCE_SCATTER_V)
        data::fill_reduced(bytes.data(), count, c_.type, c_.op, c_.seed + (uint64_t)rank_,
                           c_.size());
    else
        data::fill(bytes.data(), count, c_.type, c_.seed + (c_.many_in() ? (uint64_t)rank_ : 0),
                   c_.many_out() ? block : c_.root);
    return bytes;
}

std::string Buffers::check() const
{
    const size_t width = data::type_bytes(c_.type);
    /* what the buffer that was written must be as a whole */
    const Side &side = in_place_ && c_.many_in() ? in_ : out_;
    data::Bytes whole = side.before;
    Side plan;
    lay(&plan, false);
    for (int block = 0; c_.has_out(rank_) && block < (c_.many_out() ? c_.size() : 1); block++) {
        const data::Bytes bytes = want(block);
        const size_t at = (size_t)(recv_ - side.bytes.data()) + plan.displs[(size_t)block] * width;
        if (!bytes.empty())
            memcpy(whole.data() + at, bytes.data(), bytes.size());
    }
    /* in place, a reduction may use the rest of its buffer */
    const bool all_of_it = !(in_place_ && c_.kind == REDUCE_SCATTER_V);
    const size_t first = all_of_it ? 0 : (size_t)(recv_ - side.bytes.data());
    const size_t last = all_of_it ? whole.size() : first + c_.count_out(rank_, rank_) * width;
    for (size_t i = first; i < last; i++)
        if (side.bytes[i] != whole[i])
            return c_.text() + ": rank " + std::to_string(rank_) + ": byte " + std::to_string(i) +
                   " of its receive buffer is " + std::to_string(side.bytes[i]) + ", not " +
                   std::to_string(whole[i]);
    if (!in_place_ && in_.bytes != in_.before)
        return c_.text() + ": rank " + std::to_string(rank_) + ": its input was changed";
    return "";
}

static uint64_t next(uint64_t *state) { return data::mix(*state += 0x9e3779b97f4a7c15ull); }

Case draw(uint64_t *state, int size, size_t most)
{
    Case c;
    c.kind = (Kind)(next(state) % KINDS);
    c.type = (twill_type_t)(next(state) % reference::type_count);
    c.op = (twill_redop_t)(next(state) % 8);
    c.op = c.kind == REDUCE_SCATTER_V && reference::has_op(c.type, c.op) ? c.op : TWILL_SUM;
    c.root = (int)(next(state) % (uint64_t)size);
    c.layout = (Layout)(next(state) % LAYOUTS);
    c.in_place = next(state);
    c.seed = next(state);
    const uint64_t manner = next(state) % 8; /* 0: all zero, 1: all equal, 2: symmetric */
    const size_t same = next(state) % most;
    c.pairs.assign((size_t)size, std::vector<size_t>((size_t)size));
    for (size_t from = 0; from < (size_t)size; from++) {
        for (size_t to = 0; to < (size_t)size; to++) {
            size_t count = next(state) % 3 == 0 ? 0 : next(state) % (next(state) % 2 ? 9 : most);
            count = manner == 0 ? 0 : manner == 1 ? same : count;
            c.pairs[from][to] = manner == 2 && to < from ? c.pairs[to][from] : count;
        }
    }
    return c;
}

} // namespace vcase
