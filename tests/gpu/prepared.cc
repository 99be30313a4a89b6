/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where a case's buffers lie and what its calls are given. Never knows: in which order. */
#include <algorithm>
#include <cstring>

#include "device/reference.h"
#include "gpu/run.h"

namespace gpu
{

/* ---- buffers -----------------------------------------------------------------------------------
 */

static const size_t IGNORED = 64;     /* bytes of a buffer that nobody should touch */
static const size_t SCALAR_SHIFT = 3; /* a scalar may lie anywhere */

/* Bytes of the rank's sendbuf and recvbuf. */
std::pair<size_t, size_t> Prepared::shape(int rank) const
{
    const size_t elem = reference::bytes(c_.type);
    const bool root = rank == c_.root;

    return {has_in(c_.kind, root) ? c_.in_extent(rank) * elem : IGNORED,
            has_out(c_.kind, root) ? c_.out_extent(rank) * elem : IGNORED};
}

static bool is_in_place(const Case &c, int rank)
{
    const bool root = rank == c.root;
    return c.ranks[(size_t)rank].in_place && has_in(c.kind, root) && has_out(c.kind, root);
}

/* In place, one buffer is the rank's own block of the other, where that has several. */
static size_t block_at(const Case &c, int rank)
{
    const size_t elem = reference::bytes(c.type);

    if (many_in(c.kind) == many_out(c.kind))
        return 0;
    return (many_in(c.kind) ? c.in_first(rank, rank) : c.out_first(rank, rank)) * elem;
}

void Prepared::reserve(size_t local)
{
    const Local &at = *world_->locals()[local];
    const RankCase &rank = c_.ranks[(size_t)at.rank];
    const size_t elem = reference::bytes(c_.type), scalar = region_bytes(elem, SCALAR_SHIFT);
    const auto bytes = shape(at.rank);
    const size_t own_block = is_in_place(c_, at.rank) ? block_at(c_, at.rank) : 0;
    const size_t each = region_bytes(bytes.first, rank.in_shift * elem) +
                        region_bytes(std::max(bytes.second, own_block), rank.out_shift * elem) +
                        scalar;

    world_->locals()[local]->arena.reset((c_.how == PLAIN ? (size_t)c_.rounds : 1) * each,
                                         (size_t)c_.rounds * 2 * each);
}

static void put(const Region &region, size_t at, const char *from, size_t bytes)
{
    if (bytes != 0)
        memcpy(region.up + region.at + at, from, bytes);
}

/* Where its blocks belong. */
static void put_input(const Case &c, const Region &region, size_t at, int rank, const Bytes &input)
{
    const size_t elem = reference::bytes(c.type);

    if (!many_in(c.kind) || input.empty()) {
        put(region, at, input.data(), input.size());
        return;
    }
    for (int to = 0; to < c.size; to++)
        if (c.block(rank, to) != 0)
            put(region, at + c.in_first(rank, to) * elem,
                input.data() + c.in_before(rank, to) * elem, c.block(rank, to) * elem);
}

/* In place. The own block may be of nothing, behind all others. */
static size_t largest(const std::pair<size_t, size_t> &bytes, size_t own_block)
{
    return std::max(std::max(bytes.first, bytes.second), own_block);
}

/* Rounds of a graph have one set of buffers. */
void Prepared::take(size_t local, int round)
{
    Local &at = *world_->locals()[local];
    const RankCase &rank = c_.ranks[(size_t)at.rank];
    const size_t elem = reference::bytes(c_.type);
    const auto bytes = shape(at.rank);
    const bool root = at.rank == c_.root, again = c_.how != PLAIN && round > 0;
    const uint64_t salt = mix(c_.seed + (uint64_t)(at.rank * 8 + round));
    const Round &data = rounds_[(size_t)round];
    Part part;

    const auto region = [&](size_t payload, size_t shift, Region Part::*which) {
        return region_take(&at.arena, payload, shift,
                           again ? (parts_[local][0].*which).device : nullptr, salt);
    };
    part.in_place = is_in_place(c_, at.rank);
    part.in = region(part.in_place ? largest(bytes, block_at(c_, at.rank)) : bytes.first,
                     rank.in_shift * elem, &Part::in);
    if (!part.in_place)
        part.out = region(bytes.second, rank.out_shift * elem, &Part::out);
    const size_t own_block = part.in_place ? block_at(c_, at.rank) : 0;
    const size_t in_at = many_out(c_.kind) ? own_block : 0;
    part.out_at = many_in(c_.kind) ? own_block : 0;
    put_input(c_, part.in, in_at, at.rank, data.inputs[(size_t)at.rank]);
    if (c_.op == PREMUL_POINTER && reduces(c_.kind)) {
        part.scalar = region(elem, SCALAR_SHIFT, &Part::scalar);
        put(part.scalar, 0, data.scalars[(size_t)at.rank].data(), elem);
    }
    part.sendbuf = part.in.pointer() + in_at;
    part.recvbuf = (part.in_place ? part.in : part.out).pointer() + part.out_at;
    if (rank.null_ignored && (!has_in(c_.kind, root) || c_.in_extent(at.rank) == 0))
        part.sendbuf = nullptr;
    if (rank.null_ignored && (!has_out(c_.kind, root) || c_.out_extent(at.rank) == 0))
        part.recvbuf = nullptr;
    parts_[local].push_back(part);
}

Prepared::Prepared(const Case &c, World *world)
    : c_(c), world_(world), parts_(world->locals().size())
{
    for (int round = 0; round < c.rounds; round++)
        rounds_.push_back(draw_round(c, round));
    for (size_t i = 0; i < parts_.size(); i++) {
        reserve(i);
        for (int round = 0; round < c.rounds; round++)
            take(i, round);
    }
}

/* ---- moving and calling ------------------------------------------------------------------------
 */

void Prepared::upload(size_t local, int round, cudaStream_t stream)
{
    const Part &p = part(local, round);
    const On on(world_->locals()[local]->device);

    for (const Region *region : {&p.in, &p.out, &p.scalar})
        if (region->bytes != 0)
            CUDA(cudaMemcpyAsync(region->device, region->up, region->bytes, cudaMemcpyHostToDevice,
                                 stream));
}

void Prepared::download(size_t local, int round, cudaStream_t stream)
{
    const Part &p = part(local, round);
    const On on(world_->locals()[local]->device);

    for (const Region *region : {&p.in, &p.out, &p.scalar})
        if (region->bytes != 0)
            CUDA(cudaMemcpyAsync(region->down, region->device, region->bytes,
                                 cudaMemcpyDeviceToHost, stream));
}

/* What a rank says of its blocks: gone once the call has returned. */
struct Counts {
    Counts(const Case &c, int rank)
        : in_at(c.ranks[(size_t)rank].in_at), out_at(c.ranks[(size_t)rank].out_at)
    {
        for (int peer = 0; peer < c.size; peer++) {
            in.push_back(c.block(rank, peer));
            out.push_back(c.block(peer, rank));
        }
    }
    const size_t *in_displs() const { return in_at.empty() ? nullptr : in_at.data(); }
    const size_t *out_displs() const { return out_at.empty() ? nullptr : out_at.data(); }

    std::vector<size_t> in, out, in_at, out_at;
};

static enum twill_status call_varied(const Case &c, const Part &p, int rank, twill_redop_t op,
                                     twill_comm_t comm, cudaStream_t stream)
{
    const Counts counts(c, rank);
    const size_t *in = counts.in.data(), *out = counts.out.data();
    const size_t *in_displs = counts.in_displs(), *out_displs = counts.out_displs();
    const bool root = rank == c.root;

    switch (c.kind) {
    case REDUCE_SCATTER_V:
        return twill_reduce_scatter_v(p.sendbuf, p.recvbuf, in, in_displs, c.type, op, comm,
                                      stream);
    case ALL_GATHER_V:
        return twill_all_gather_v(p.sendbuf, p.recvbuf, out, out_displs, c.type, comm, stream);
    case ALL_TO_ALL_V:
        return twill_all_to_all_v(p.sendbuf, in, in_displs, p.recvbuf, out, out_displs, c.type,
                                  comm, stream);
    case GATHER_V:
        return twill_gather_v(p.sendbuf, in[c.root], p.recvbuf, root ? out : nullptr,
                              root ? out_displs : nullptr, c.type, c.root, comm, stream);
    default:
        return twill_scatter_v(p.sendbuf, root ? in : nullptr, root ? in_displs : nullptr,
                               p.recvbuf, out[c.root], c.type, c.root, comm, stream);
    }
}

static enum twill_status call_now(const Case &c, const Part &p, int rank, twill_redop_t op,
                                  twill_comm_t comm, cudaStream_t stream)
{
    if (varies(c.kind))
        return call_varied(c, p, rank, op, comm, stream);
    switch (c.kind) {
    case ALL_REDUCE:
        return twill_all_reduce(p.sendbuf, p.recvbuf, c.count, c.type, op, comm, stream);
    case REDUCE:
        return twill_reduce(p.sendbuf, p.recvbuf, c.count, c.type, op, c.root, comm, stream);
    case BROADCAST:
        return twill_broadcast(p.sendbuf, p.recvbuf, c.count, c.type, c.root, comm, stream);
    case REDUCE_SCATTER:
        return twill_reduce_scatter(p.sendbuf, p.recvbuf, c.count, c.type, op, comm, stream);
    case ALL_GATHER:
        return twill_all_gather(p.sendbuf, p.recvbuf, c.count, c.type, comm, stream);
    case ALL_TO_ALL:
        return twill_all_to_all(p.sendbuf, p.recvbuf, c.count, c.type, comm, stream);
    case GATHER:
        return twill_gather(p.sendbuf, p.recvbuf, c.count, c.type, c.root, comm, stream);
    case SCATTER:
        return twill_scatter(p.sendbuf, p.recvbuf, c.count, c.type, c.root, comm, stream);
    default:
        return twill_barrier(comm, stream);
    }
}

void Prepared::call(size_t local, int round, cudaStream_t stream)
{
    const Local &at = *world_->locals()[local];
    const Part &p = part(local, round);
    const bool created = reduces(c_.kind) && c_.op >= PREMUL_VALUE;
    const bool pointed = c_.op == PREMUL_POINTER;
    const int current = c_.ranks[(size_t)at.rank].current % devices();
    const On on(current);
    twill_redop_t op = (twill_redop_t)c_.op;
    int after = -1;

    if (created)
        TWILL(twill_op_create_premul_sum(
                  &op, pointed ? p.scalar.pointer() : rounds_[0].scalars[(size_t)at.rank].data(),
                  c_.type, pointed ? TWILL_SCALAR_POINTER : TWILL_SCALAR_VALUE, at.comm),
              at.comm);
    TWILL(call_now(c_, p, at.rank, op, at.comm, stream), at.comm);
    if (created) /* the call has copied it */
        TWILL(twill_op_destroy(op, at.comm), at.comm);
    CUDA(cudaGetDevice(&after));
    if (after != current)
        throw Failure(format("the call of rank %d left device %d current instead of %d", at.rank,
                             after, current));
}

/* ---- judging -----------------------------------------------------------------------------------
 */

std::string Prepared::judge()
{
    const size_t elem = reference::bytes(c_.type);

    for (size_t i = 0; i < parts_.size(); i++)
        for (int round = 0; round < c_.rounds; round++) {
            const int rank = world_->locals()[i]->rank;
            const Part &p = part(i, round);
            const auto pieces = expect(c_, rounds_[(size_t)round], rank, p.out_at);
            const std::vector<Piece> none;
            std::string wrong = compare(p.in, p.in_place ? pieces : none, elem);
            const char *which = p.in_place ? "buffer in place" : "sendbuf";

            if (wrong.empty() && !p.in_place) {
                wrong = compare(p.out, pieces, elem);
                which = "recvbuf";
            }
            if (wrong.empty() && p.scalar.bytes != 0) {
                wrong = compare(p.scalar, none, elem);
                which = "scalar";
            }
            if (!wrong.empty())
                return format("rank %d round %d: %s: %s", rank, round, which, wrong.c_str());
        }
    return "";
}

} // namespace gpu
