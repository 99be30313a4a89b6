/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where a case's buffers lie and what its calls are given. Never knows: in which order. */
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

    return {has_in(c_.kind, root) ? c_.in_count() * elem : IGNORED,
            has_out(c_.kind, root) ? c_.out_count() * elem : IGNORED};
}

static bool is_in_place(const Case &c, int rank)
{
    const bool root = rank == c.root;
    return c.ranks[(size_t)rank].in_place && has_in(c.kind, root) && has_out(c.kind, root);
}

void Prepared::reserve(size_t local)
{
    const Local &at = *world_->locals()[local];
    const RankCase &rank = c_.ranks[(size_t)at.rank];
    const size_t elem = reference::bytes(c_.type), scalar = region_bytes(elem, SCALAR_SHIFT);
    const auto bytes = shape(at.rank);
    const size_t each = region_bytes(bytes.first, rank.in_shift * elem) +
                        region_bytes(bytes.second, rank.out_shift * elem) + scalar;

    world_->locals()[local]->arena.reset((c_.how == PLAIN ? (size_t)c_.rounds : 1) * each,
                                         (size_t)c_.rounds * 2 * each);
}

static void put(const Region &region, size_t at, const Bytes &from)
{
    if (!from.empty())
        memcpy(region.up + region.at + at, from.data(), from.size());
}

/* In place, the block of a call with several lies behind those of the ranks before. */
static size_t block_at(const Case &c, int rank)
{
    return many_in(c.kind) != many_out(c.kind) ? (size_t)rank * c.block_bytes() : 0;
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
    part.in = region(part.in_place ? std::max(bytes.first, bytes.second) : bytes.first,
                     rank.in_shift * elem, &Part::in);
    if (!part.in_place)
        part.out = region(bytes.second, rank.out_shift * elem, &Part::out);
    const size_t own_block = part.in_place ? block_at(c_, at.rank) : 0;
    const size_t in_at = many_out(c_.kind) ? own_block : 0;
    part.out_at = many_in(c_.kind) ? own_block : 0;
    put(part.in, in_at, data.inputs[(size_t)at.rank]);
    if (c_.op == PREMUL_POINTER && reduces(c_.kind)) {
        part.scalar = region(elem, SCALAR_SHIFT, &Part::scalar);
        put(part.scalar, 0, data.scalars[(size_t)at.rank]);
    }
    part.sendbuf = part.in.pointer() + in_at;
    part.recvbuf = (part.in_place ? part.in : part.out).pointer() + part.out_at;
    if (rank.null_ignored && (!has_in(c_.kind, root) || c_.count == 0))
        part.sendbuf = nullptr;
    if (rank.null_ignored && (!has_out(c_.kind, root) || c_.count == 0))
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

static enum twill_status call_now(const Case &c, const Part &p, twill_redop_t op, twill_comm_t comm,
                                  cudaStream_t stream)
{
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
    TWILL(call_now(c_, p, op, at.comm, stream), at.comm);
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
