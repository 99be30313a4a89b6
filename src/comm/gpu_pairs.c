/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which bytes of a call whose blocks differ go from rank to rank, and where they lie.
 * Never knows: kernels, what other ranks say of theirs. */
#include "config.h"

#include "comm/gpu.h"

/* The groups of elements in one of a rank's buffers. */
struct groups {
    const size_t *counts, *displs; /* [size]; displs NULL: packed; counts NULL: one group */
    size_t count;                  /* of that */
};

static struct groups groups_of(const struct tw_call *call, bool in)
{
    const struct tw_call_info *info = &call->info;
    const struct tw_coll_rule *rule = tw_coll_rule(info->coll);
    const bool many = in ? rule->in.many : rule->out.many;

    return (struct groups){
        .counts = in ? info->counts.in : info->counts.out,
        .displs = in ? info->counts.in_displs : info->counts.out_displs,
        .count = many ? 0 : info->count, /* of many without counts this rank has none */
    };
}

static size_t group_count(const struct groups *groups, int rank)
{
    return groups->counts != NULL ? groups->counts[rank] : groups->count;
}

bool tw_gpu_varies(enum tw_coll coll)
{
    const struct tw_coll_rule *rule = tw_coll_rule(coll);

    return rule->some || rule->in.kind == TW_PART_PER_RANK || rule->out.kind == TW_PART_PER_RANK;
}

bool tw_gpu_holds(const struct tw_call *call, bool in)
{
    const struct groups groups = groups_of(call, in);

    if (!tw_gpu_varies(call->info.coll))
        return call->info.count != 0;
    for (int r = 0; r < call->comm->size; r++)
        if (group_count(&groups, r) != 0)
            return true;
    return false;
}

uint64_t tw_gpu_out_bytes(const struct tw_call *call)
{
    const struct groups out = groups_of(call, false);
    uint64_t end = out.counts != NULL ? 0 : out.count;
    uint64_t first = 0; /* where packed */

    for (int r = 0; out.counts != NULL && r < call->comm->size; r++) {
        const uint64_t at = out.displs != NULL ? out.displs[r] : first;

        if (out.counts[r] != 0 && at + out.counts[r] > end)
            end = at + out.counts[r];
        first += out.counts[r];
    }
    return end * tw_type_bytes(call->info.type);
}

void tw_gpu_pairs_fill(const struct tw_call *call, uint64_t sends, uint64_t takes,
                       struct tw_gk_pair *pairs)
{
    const struct groups in = groups_of(call, true), out = groups_of(call, false);
    const uint64_t elem = tw_type_bytes(call->info.type);
    uint64_t in_at = 0, out_at = 0; /* of the next group, where packed */

    for (int r = 0; r < call->comm->size; r++) {
        const uint64_t in_bytes = group_count(&in, r) * elem;
        const uint64_t out_bytes = group_count(&out, r) * elem;
        struct tw_gk_pair *pair = &pairs[r];

        *pair = (struct tw_gk_pair){0};
        if ((sends >> r & 1) != 0 && in_bytes != 0) { /* else displs may be anything */
            pair->in_at = in.displs != NULL ? in.displs[r] * elem : in_at;
            pair->in_bytes = in_bytes;
        }
        if ((takes >> r & 1) != 0 && out_bytes != 0) {
            pair->out_at = out.displs != NULL ? out.displs[r] * elem : out_at;
            pair->out_bytes = out_bytes;
        }
        in_at += in.counts != NULL ? in_bytes : 0;
        out_at += out.counts != NULL ? out_bytes : 0;
    }
}
