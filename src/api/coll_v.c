/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments of the collectives with a count for each rank. Never knows: how they run. */
#include "config.h"

#include "api/coll.h"
#include "base/mem.h"

/* ---- one buffer -------------------------------------------------------------------------------
 */

/* Groups of elements in a buffer: one for each rank, or the rank's own. */
struct side {
    const char *buf_name, *counts_name;
    uintptr_t at;
    const size_t *counts, *displs; /* [groups]; displs NULL: packed */
    int groups;
    size_t width;     /* bytes of an element */
    size_t total;     /* elements in all groups */
    size_t low, high; /* bytes from at to the first and past the last of any group; high 0: empty */
    bool rising;      /* no group begins before the one before it ends */
};

struct piece {
    uintptr_t at;
    size_t bytes;
};

static bool overlap(struct piece a, struct piece b)
{
    return tw_overlap(a.at, a.bytes, b.at, b.bytes);
}

static struct piece whole(const struct side *side)
{
    return (struct piece){side->at + side->low, side->high - side->low};
}

/* Packed groups are one piece. */
static int pieces(const struct side *side) { return side->displs ? side->groups : 1; }

static struct piece piece(const struct side *side, int i)
{
    if (!side->displs)
        return whole(side);
    if (!side->counts[i]) /* its displacement may be anything */
        return (struct piece){side->at, 0};
    return (struct piece){side->at + side->displs[i] * side->width, side->counts[i] * side->width};
}

/* Where the group of a rank begins. */
static uintptr_t group_at(const struct side *side, int rank)
{
    size_t before = 0;
    if (side->displs)
        return side->at + side->displs[rank] * side->width;
    for (int r = 0; r < rank; r++)
        before += side->counts[r];
    return side->at + before * side->width;
}

static enum twill_status too_much(const char *name, const struct side *side, int group)
{
    return tw_fail(TWILL_ERR_INVALID,
                   "%s: %s up to number %d are more than memory (%zu elements there, "
                   "%zu before)",
                   name, side->counts_name, group, side->counts[group],
                   side->displs ? side->displs[group] : side->total);
}

/* Sums and bounds; anything that does not fit into memory is found here. */
static enum twill_status side_measure(const char *name, struct side *side)
{
    size_t end = 0;
    side->total = side->high = 0;
    side->low = SIZE_MAX;
    side->rising = true;
    for (int g = 0; g < side->groups; g++) {
        size_t count = side->counts[g], bytes, last;
        size_t first = side->displs ? side->displs[g] : side->total;
        if (!count)
            continue;
        if (__builtin_add_overflow(side->total, count, &side->total) ||
            __builtin_mul_overflow(side->total, side->width, &bytes) || bytes > PTRDIFF_MAX ||
            __builtin_add_overflow(first, count, &last) ||
            __builtin_mul_overflow(last, side->width, &bytes) || bytes > PTRDIFF_MAX)
            return too_much(name, side, g);
        side->rising &= first >= end;
        end = last;
        side->high = bytes > side->high ? bytes : side->high;
        side->low = first * side->width < side->low ? first * side->width : side->low;
    }
    if (!side->total)
        side->low = 0;
    if (side->total && !side->at)
        return tw_fail(TWILL_ERR_INVALID, "%s: %s is NULL with %zu elements", name, side->buf_name,
                       side->total);
    if (side->at + side->high < side->at)
        return tw_fail(TWILL_ERR_INVALID, "%s: %s of %zu bytes runs past the end of memory", name,
                       side->buf_name, side->high);
    return TWILL_OK;
}

static enum twill_status check_disjoint(const char *name, const struct side *out)
{
    if (out->rising)
        return TWILL_OK;
    for (int a = 1; a < out->groups; a++)
        for (int b = 0; b < a; b++)
            if (overlap(piece(out, a), piece(out, b)))
                return tw_fail(TWILL_ERR_INVALID, "%s: blocks %d and %d of %s overlap", name, b, a,
                               out->buf_name);
    return TWILL_OK;
}

/* ---- both buffers -----------------------------------------------------------------------------
 */

static bool same_layout(const struct side *in, const struct side *out)
{
    size_t in_at = 0, out_at = 0; /* of the next group, where packed */
    for (int g = 0; g < in->groups; g++) {
        size_t in_first = in->displs ? in->displs[g] : in_at;
        size_t out_first = out->displs ? out->displs[g] : out_at;
        if (in->counts[g] != out->counts[g] || (in->counts[g] && in_first != out_first))
            return false;
        in_at += in->counts[g];
        out_at += out->counts[g];
    }
    return in->at == out->at;
}

static bool is_in_place(const struct tw_coll_rule *rule, const struct side *in,
                        const struct side *out, int rank)
{
    if (rule->in.many && rule->out.many)
        return same_layout(in, out);
    return rule->in.many ? out->at == group_at(in, rank) : in->at == group_at(out, rank);
}

/* Interleaved groups whose gaps hold the other buffer's are legal. */
static bool any_overlap(const struct side *in, const struct side *out)
{
    if (!overlap(whole(in), whole(out)))
        return false;
    for (int a = 0; a < pieces(in); a++)
        for (int b = 0; b < pieces(out); b++)
            if (overlap(piece(in, a), piece(out, b)))
                return true;
    return false;
}

static enum twill_status check_apart(const char *name, const struct tw_coll_rule *rule,
                                     const struct tw_call *call, const struct side *in,
                                     const struct side *out)
{
    if (!overlap(whole(in), whole(out)) || is_in_place(rule, in, out, call->comm->rank) ||
        !any_overlap(in, out))
        return TWILL_OK;
    return tw_fail(TWILL_ERR_INVALID,
                   "%s: sendbuf %p of %zu elements and recvbuf %p of %zu elements overlap and are "
                   "not in place",
                   name, call->in, in->total, call->out, out->total);
}

/* ---- counts -----------------------------------------------------------------------------------
 */

/* What the call says of one of its buffers; names: of the counts of many groups, of one group. */
static enum twill_status side_read(const char *name, const struct tw_call *call,
                                   const struct tw_coll_buf *buf, bool sends, struct side *side)
{
    const struct tw_call_counts *counts = &call->info.counts;
    static const size_t none = 0;
    bool has = tw_coll_has(buf, call), pairs = call->info.coll == TW_COLL_ALL_TO_ALL_V;
    *side = (struct side){
        .buf_name = sends ? "sendbuf" : "recvbuf",
        .counts_name = pairs && sends ? "sendcounts"
                       : pairs        ? "recvcounts"
                                      : "counts",
        .at = (uintptr_t)(sends ? call->in : call->out),
        .counts = &call->info.count,
        .groups = 1,
        .width = tw_type_bytes(call->info.type),
    };
    if (!has) {
        side->counts = &none;
    } else if (buf->many) {
        side->counts = sends ? counts->in : counts->out;
        side->displs = sends ? counts->in_displs : counts->out_displs;
        side->groups = call->comm->size;
        if (!side->counts)
            return tw_fail(TWILL_ERR_INVALID, "%s: %s is NULL", name, side->counts_name);
    }
    return side_measure(name, side);
}

/* A rank's count for itself stands in two places, or none: info.count is found or compared. */
static enum twill_status own_count(const char *name, const struct tw_coll_rule *rule,
                                   struct tw_call *call)
{
    const struct tw_call_counts *counts = &call->info.counts;
    int rank = call->comm->rank;
    if (call->info.coll == TW_COLL_ALL_TO_ALL_V) {
        if (counts->in && counts->out && counts->in[rank] != counts->out[rank])
            return tw_fail(TWILL_ERR_INVALID,
                           "%s: rank %d sends %zu elements to itself and receives %zu", name, rank,
                           counts->in[rank], counts->out[rank]);
        return TWILL_OK;
    }
    const size_t *all = rule->in.many ? counts->in : counts->out;
    if (!all)
        return TWILL_OK; /* only the root has them; or side_read finds that they miss */
    if (rule->rooted && call->info.count != all[rank])
        return tw_fail(TWILL_ERR_INVALID, "%s: %s is %zu, counts[%d] of this rank is %zu", name,
                       rule->in.many ? "recvcount" : "sendcount", call->info.count, rank,
                       all[rank]);
    call->info.count = all[rank];
    return TWILL_OK;
}

static enum twill_status check_v(const char *name, const struct tw_coll_rule *rule,
                                 struct tw_call *call)
{
    struct tw_call_info *info = &call->info;
    struct side in, out;
    if (!tw_coll_has(&rule->in, call))
        info->counts.in = info->counts.in_displs = NULL;
    if (!tw_coll_has(&rule->out, call))
        info->counts.out = info->counts.out_displs = NULL;
    enum twill_status status = own_count(name, rule, call);
    if (!tw_failed(status))
        status = side_read(name, call, &rule->in, true, &in);
    if (!tw_failed(status))
        status = side_read(name, call, &rule->out, false, &out);
    if (!tw_failed(status))
        status = check_disjoint(name, &out);
    if (!tw_failed(status))
        status = check_apart(name, rule, call, &in, &out);
    if (tw_failed(status) || rule->some)
        return status;
    const struct side *all = rule->in.many ? &in : &out;
    info->total = all->total;
    info->spread = tw_record_spread(all->counts, all->groups);
    return TWILL_OK;
}

static enum twill_status collective(const struct tw_call_info *info, const void *sendbuf,
                                    void *recvbuf, twill_comm_t comm, twill_stream_t stream)
{
    struct tw_call call = {
        .info = *info, .in = sendbuf, .out = recvbuf, .comm = comm, .stream = stream};
    return tw_api_coll(&call, check_v);
}

/* ---- entry points -----------------------------------------------------------------------------
 */

enum twill_status twill_all_gather_v(const void *sendbuf, void *recvbuf, const size_t *counts,
                                     const size_t *displs, twill_type_t type, twill_comm_t comm,
                                     twill_stream_t stream)
{
    const struct tw_call_info info = {.coll = TW_COLL_ALL_GATHER_V,
                                      .type = type,
                                      .counts = {.out = counts, .out_displs = displs}};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

enum twill_status twill_reduce_scatter_v(const void *sendbuf, void *recvbuf, const size_t *counts,
                                         const size_t *displs, twill_type_t type, twill_redop_t op,
                                         twill_comm_t comm, twill_stream_t stream)
{
    const struct tw_call_info info = {.coll = TW_COLL_REDUCE_SCATTER_V,
                                      .type = type,
                                      .op = op,
                                      .counts = {.in = counts, .in_displs = displs}};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

/* NOLINTNEXTLINE(readability-function-size): both buffers with counts and displacements */
enum twill_status twill_all_to_all_v(const void *sendbuf, const size_t *sendcounts,
                                     const size_t *sdispls, void *recvbuf, const size_t *recvcounts,
                                     const size_t *rdispls, twill_type_t type, twill_comm_t comm,
                                     twill_stream_t stream)
{
    const struct tw_call_info info = {.coll = TW_COLL_ALL_TO_ALL_V,
                                      .type = type,
                                      .counts = {sendcounts, sdispls, recvcounts, rdispls}};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

/* NOLINTNEXTLINE(readability-function-size): both buffers with counts and displacements */
enum twill_status twill_gather_v(const void *sendbuf, size_t sendcount, void *recvbuf,
                                 const size_t *counts, const size_t *displs, twill_type_t type,
                                 int root, twill_comm_t comm, twill_stream_t stream)
{
    const struct tw_call_info info = {.coll = TW_COLL_GATHER_V,
                                      .root = root,
                                      .count = sendcount,
                                      .type = type,
                                      .counts = {.out = counts, .out_displs = displs}};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

/* NOLINTNEXTLINE(readability-function-size): both buffers with counts and displacements */
enum twill_status twill_scatter_v(const void *sendbuf, const size_t *counts, const size_t *displs,
                                  void *recvbuf, size_t recvcount, twill_type_t type, int root,
                                  twill_comm_t comm, twill_stream_t stream)
{
    const struct tw_call_info info = {.coll = TW_COLL_SCATTER_V,
                                      .root = root,
                                      .count = recvcount,
                                      .type = type,
                                      .counts = {.in = counts, .in_displs = displs}};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}
