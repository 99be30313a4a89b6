/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how buffers are laid out, offset, poisoned and looked over. Never knows: twill's plans. */
#include "property/buffers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "device/reference.h"

namespace property
{

namespace
{

const uint8_t POISON = 0xa5;
const size_t GUARD_BYTES = 64;

/* Arrays of a call that are overwritten as soon as it has returned. */
struct Lent {
    std::vector<size_t> numbers;
    explicit Lent(const std::vector<size_t> &given) : numbers(given) {}
    ~Lent() { std::fill(numbers.begin(), numbers.end(), (size_t)1 << 60); }
    Lent(const Lent &) = delete;
    Lent &operator=(const Lent &) = delete;
};

} // namespace

void Bytes::make(size_t size, uint8_t value, bool mapped)
{
    void *at = mapped ? nullptr : ::operator new(size);
    if (mapped && twill_mem_alloc(&at, size, TWILL_DEVICE_HOST) != TWILL_OK)
        throw std::bad_alloc();
    mapped_ = mapped;
    size_ = size;
    at_ = static_cast<uint8_t *>(at);
    std::memset(at_, value, size);
}

Bytes::~Bytes()
{
    if (!mapped_)
        ::operator delete(at_);
    else if (twill_mem_free(at_) != TWILL_OK)
        std::abort();
}

Buffers::Buffers(const Case &c, const Call &call, int rank)
    : call_(call), scope_(call, place(c, call.comm, rank), c.deterministic),
      rank_(place(c, call.comm, rank).rank), mapped_(call.mapped >> rank & 1),
      width_(reference::bytes(call.type)), op_((twill_redop_t)call.op)
{
    lay(&in_, true);
    lay(&out_, false);
    const bool in = many_in(call_.kind), out = many_out(call_.kind);
    in_place_ = (call_.in_place >> rank & 1) && has(true) && has(false) && call_.kind != SENDS &&
                call_.kind != BARRIER && (!(in && out) || in_.counts == out_.counts);
    send_ = in_.at;
    recv_ = out_.at;
    if (in_place_ && in && out)
        recv_ = send_;
    else if (in_place_ && out)
        send_ = recv_ + out_.displs[(size_t)rank_] * width_;
    else if (in_place_)
        recv_ = send_ + (in ? in_.displs[(size_t)rank_] * width_ : 0);
    for (size_t block = 0; has(true) && block < in_.counts.size(); block++)
        scope_.fill(send_ + in_.displs[block] * width_, in_.counts[block], rank_, (int)block);
    in_.before.assign(in_.memory.begin(), in_.memory.end());
    out_.before.assign(out_.memory.begin(), out_.memory.end());
}

Buffers::~Buffers() = default;

void Buffers::hide_input() { std::fill_n(send_, in_.bytes, POISON); }

bool Buffers::has(bool in) const
{
    if (!has_root(call_.kind) || rank_ == scope_.root())
        return true;
    const bool only_root_sends =
        call_.kind == BROADCAST || call_.kind == SCATTER || call_.kind == SCATTER_V;
    return in != only_root_sends;
}

size_t Buffers::count_of(int block, bool in) const
{
    if (!is_v(call_.kind))
        return call_.count;
    const bool many = in ? many_in(call_.kind) : many_out(call_.kind);
    const auto other = (size_t)block, own = (size_t)rank_;
    if (call_.kind == ALL_TO_ALL_V || call_.kind == SENDS)
        return in ? call_.pairs[own][other] : call_.pairs[other][own];
    return many ? call_.pairs[other][other] : call_.pairs[own][own];
}

/* Blocks packed, apart from each other, or apart and in falling order; any alignment. */
void Buffers::lay(Side *side, bool in)
{
    const bool many = in ? many_in(call_.kind) : many_out(call_.kind);
    const int blocks = many ? scope_.size() : 1;
    const uint64_t salt = mix(scope_.seed() ^ mix((uint64_t)rank_ + 1));
    side->counts.assign((size_t)blocks, 0);
    side->displs.assign((size_t)blocks, 0);
    size_t end = 0;
    for (int i = 0; has(in) && call_.kind != BARRIER && i < blocks; i++) {
        const int block = many && call_.layout == REVERSED ? blocks - 1 - i : i;
        if (many && call_.layout != PACKED)
            end += mix(salt + (uint64_t)block) % 4;
        side->counts[(size_t)block] = count_of(block, in);
        side->displs[(size_t)block] = end;
        end += side->counts[(size_t)block];
    }
    const uint64_t roll = mix(salt + (in ? 100 : 200));
    const size_t offset = roll % 2 ? 0 : roll % 4 ? roll / 8 % 64 : roll / 8 % 8 * width_;
    side->bytes = end * width_;
    side->memory.make(side->bytes + 2 * GUARD_BYTES + offset, POISON, mapped_);
    side->at = side->memory.data() + GUARD_BYTES + offset;
}

/* ---- the call -------------------------------------------------------------------------------- */

enum twill_status Buffers::prepare(twill_comm_t comm)
{
    if (!reduces(call_.kind) || call_.op != PREMUL)
        return TWILL_OK;
    uint8_t *at = scalar_ + scope_.seed() % 8;
    reference::store(call_.type, at, 0, scope_.scalar(rank_));
    const enum twill_status status = twill_op_create_premul_sum(
        &op_, at, call_.type, call_.by_value ? TWILL_SCALAR_VALUE : TWILL_SCALAR_POINTER, comm);
    if (call_.by_value)
        std::memset(scalar_, POISON, sizeof(scalar_));
    return status;
}

enum twill_status Buffers::message(int peer, bool send, int part, twill_comm_t comm,
                                   twill_stream_t stream) const
{
    const auto other = (size_t)peer, own = (size_t)rank_;
    const int parts = send ? call_.parts[own][other] : call_.parts[other][own];
    const Side &side = send ? in_ : out_;
    const size_t all = side.counts[other], half = all / 2;
    const size_t first = parts == 2 && part == 1 ? half : 0;
    const size_t count = parts == 2 ? (part == 0 ? half : all - half) : all;
    uint8_t *at = side.at + (side.displs[other] + first) * width_;
    if (send)
        return twill_send(at, count, call_.type, peer, comm, stream);
    return twill_recv(at, count, call_.type, peer, comm, stream);
}

/* In any order of peers; messages of a pair in theirs. */
enum twill_status Buffers::exchange(twill_comm_t comm, twill_stream_t stream) const
{
    enum twill_status first = twill_group_start();
    Random random(scope_.seed() + (uint64_t)rank_);
    std::vector<int> order;
    for (int i = 0; i < 2 * scope_.size(); i++)
        order.insert(order.begin() + (long)random.below(order.size() + 1), i);
    for (const int i : order) {
        const int peer = i / 2;
        const bool send = i % 2 == 0;
        const auto other = (size_t)peer, own = (size_t)rank_;
        const int parts = send ? call_.parts[own][other] : call_.parts[other][own];
        for (int part = 0; part < parts && first == TWILL_OK; part++)
            first = message(peer, send, part, comm, stream);
    }
    const enum twill_status end = twill_group_end();
    return first == TWILL_OK ? end : first;
}

enum twill_status Buffers::call_v(const void *send, void *recv, twill_comm_t comm,
                                  twill_stream_t stream) const
{
    Lent in_counts(in_.counts), out_counts(out_.counts), in_displs(in_.displs),
        out_displs(out_.displs);
    const bool packed = call_.layout == PACKED && scope_.seed() & 1;
    const bool at_root = rank_ == scope_.root();
    const size_t *counts_in = in_counts.numbers.data(), *counts_out = out_counts.numbers.data();
    const size_t *displs_in = packed ? nullptr : in_displs.numbers.data();
    const size_t *displs_out = packed ? nullptr : out_displs.numbers.data();
    switch (call_.kind) {
    case ALL_GATHER_V:
        return twill_all_gather_v(send, recv, counts_out, displs_out, call_.type, comm, stream);
    case REDUCE_SCATTER_V:
        return twill_reduce_scatter_v(send, recv, counts_in, displs_in, call_.type, op_, comm,
                                      stream);
    case ALL_TO_ALL_V:
        return twill_all_to_all_v(send, counts_in, displs_in, recv, counts_out, displs_out,
                                  call_.type, comm, stream);
    case GATHER_V:
        return twill_gather_v(send, counts_in[0], recv, at_root ? counts_out : nullptr,
                              at_root ? displs_out : nullptr, call_.type, scope_.root(), comm,
                              stream);
    default:
        return twill_scatter_v(send, at_root ? counts_in : nullptr, at_root ? displs_in : nullptr,
                               recv, counts_out[0], call_.type, scope_.root(), comm, stream);
    }
}

enum twill_status Buffers::call(twill_comm_t comm, twill_stream_t stream)
{
    /* what is ignored may be anything, what is empty may be NULL */
    void *const nothing = scope_.seed() & 2 ? nullptr : reinterpret_cast<void *>(16);
    const bool null = scope_.seed() & 4;
    const void *send = !has(true) ? nothing : null && in_.bytes == 0 ? nullptr : send_;
    void *recv = !has(false) ? nothing : null && out_.bytes == 0 ? nullptr : recv_;
    if (in_place_) {
        send = send_;
        recv = recv_;
    }
    const size_t count = call_.count;
    const twill_type_t type = call_.type;
    const int root = scope_.root();
    enum twill_status status = TWILL_OK;
    switch (call_.kind) {
    case ALL_REDUCE:
        status = twill_all_reduce(send, recv, count, type, op_, comm, stream);
        break;
    case REDUCE:
        status = twill_reduce(send, recv, count, type, op_, root, comm, stream);
        break;
    case BROADCAST:
        status = twill_broadcast(send, recv, count, type, root, comm, stream);
        break;
    case REDUCE_SCATTER:
        status = twill_reduce_scatter(send, recv, count, type, op_, comm, stream);
        break;
    case ALL_GATHER:
        status = twill_all_gather(send, recv, count, type, comm, stream);
        break;
    case ALL_TO_ALL:
        status = twill_all_to_all(send, recv, count, type, comm, stream);
        break;
    case GATHER:
        status = twill_gather(send, recv, count, type, root, comm, stream);
        break;
    case SCATTER:
        status = twill_scatter(send, recv, count, type, root, comm, stream);
        break;
    case BARRIER:
        status = twill_barrier(comm, stream);
        break;
    case SENDS:
        status = exchange(comm, stream);
        break;
    default:
        status = call_v(send, recv, comm, stream);
    }
    if (status == TWILL_OK && op_ >= TWILL_OP_CREATED && reduces(call_.kind) && scope_.seed() & 8 &&
        !keeps_op_)
        status = twill_op_destroy(op_, comm);
    return status;
}

/* ---- the result ------------------------------------------------------------------------------ */

std::string Buffers::look(bool at_result) const
{
    if (call_.kind == BARRIER)
        return "";
    /* which bytes of the written buffer may change: none but the blocks */
    const Side &side = in_place_ && (many_in(call_.kind) || !many_out(call_.kind)) ? in_ : out_;
    std::vector<uint8_t> rest(side.memory.begin(), side.memory.end());
    for (size_t block = 0; has(false) && block < out_.counts.size(); block++) {
        const size_t displ = out_.displs[block] * width_, bytes = out_.counts[block] * width_;
        const uint8_t *at = recv_ + displ;
        const std::string wrong =
            at_result ? scope_.compare(at, out_.counts[block], rank_, (int)block) : "";
        if (!wrong.empty())
            return "block " + std::to_string(block) + ": " + wrong;
        const auto from = (size_t)(at - side.memory.begin());
        std::copy_n(side.before.begin() + (long)from, bytes, rest.begin() + (long)from);
    }
    if (rest != side.before) {
        const auto i = std::mismatch(rest.begin(), rest.end(), side.before.begin()).first;
        return "byte " + std::to_string((i - rest.begin()) - (recv_ - side.memory.begin())) +
               " from the start of its output was written";
    }
    if (&side != &in_ && !in_.is_as_before())
        return "its input was written";
    if (&side != &out_ && !out_.is_as_before())
        return "an output that it did not name was written";
    return "";
}

} // namespace property
