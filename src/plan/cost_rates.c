/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a call of a given size pays for a byte and a step. Never knows: the order of steps.
 */
#include "config.h"

#include <stdlib.h>

#include "base/status.h"
#include "plan/cost_sim.h"

#define BYTES_OF_MB 1000000u
#define WIDE_BYTES 4 /* of an unrounded partial of a narrow float */

/* Rate per KiB of a buffer of which the first bytes are near, the next mid, the rest far. */
static uint64_t blend(uint64_t bytes, const uint64_t kib[3], const uint64_t bounds[2])
{
    uint64_t near = bytes < bounds[0] ? bytes : bounds[0];
    uint64_t upto = bytes < bounds[1] ? bytes : bounds[1];
    uint64_t mid = upto > near ? upto - near : 0;
    uint64_t far = bytes - near - mid;
    while (bytes >> 32) { /* shares are all that counts: the products fit */
        bytes >>= 1;
        near >>= 1;
        mid >>= 1;
        far >>= 1;
    }
    return bytes ? (near * kib[0] + mid * kib[1] + far * kib[2]) / (near + mid + far) : kib[0];
}

static uint64_t kib(uint64_t mbs) { return tw_cost_kib(mbs * BYTES_OF_MB); }

static void exec_rates(struct tw_cost_exec_rate *rate, const struct tw_cost_table *table,
                       enum tw_cost_exec exec, uint64_t footprint)
{
    const uint64_t *v = &table->value[tw_cost_exec_index(exec, (enum tw_cost_exec_field)0)];
    const uint64_t copy[3] = {kib(v[TW_COST_COPY_NEAR]), kib(v[TW_COST_COPY_MID]),
                              kib(v[TW_COST_COPY_FAR])};
    const uint64_t reduce[3] = {kib(v[TW_COST_REDUCE_NEAR]), kib(v[TW_COST_REDUCE_MID]),
                                kib(v[TW_COST_REDUCE_FAR])};
    const uint64_t share[3] = {0, 1024, 1024};
    const uint64_t bounds[2] = {v[TW_COST_NEAR], v[TW_COST_MID]};
    *rate = (struct tw_cost_exec_rate){
        .call = v[TW_COST_CALL],
        .step = v[TW_COST_STEP],
        .send = v[TW_COST_SEND],
        .recv = v[TW_COST_RECV],
        .signal = v[TW_COST_SIGNAL],
        .change = v[TW_COST_SWITCH],
        .copy_kib = blend(footprint, copy, bounds),
        .reduce_kib = blend(footprint, reduce, bounds),
        .warm_kib = copy[0],
        .memory_share = blend(footprint, share, bounds),
    };
}

static void link_rates(struct tw_cost_link_rate *rate, const struct tw_cost_table *table,
                       enum tw_cost_link_kind kind)
{
    *rate = (struct tw_cost_link_rate){
        .latency = table->value[tw_cost_link_index(kind, TW_COST_LATENCY)],
        .post = table->value[tw_cost_link_index(kind, TW_COST_POST)],
        .kib = kib(table->value[tw_cost_link_index(kind, TW_COST_RATE)]),
        .wire = tw_cost_link_carrier(kind) == TW_COST_WIRE,
    };
}

/* Elements of a cell that a slice covers. */
static uint64_t covered(uint64_t cell_elems, uint64_t slice_elems, uint64_t slice)
{
    uint64_t first = slice * slice_elems;
    uint64_t left = cell_elems > first ? cell_elems - first : 0;
    return left < slice_elems ? left : slice_elems;
}

static enum twill_status shares(struct tw_cost_rates *rates, const struct tw_cost_prog *prog,
                                const struct tw_cost_call *call)
{
    uint32_t units = rates->loops * rates->slices;
    rates->units = units;
    rates->share = calloc((size_t)prog->facts.nparts * units + 1, sizeof(uint64_t));
    if (!rates->share)
        return tw_fail(TWILL_ERR_NOMEM, "no memory to price plan %s", prog->facts.name);
    for (uint32_t p = 0; p < prog->facts.nparts; p++) {
        bool shard = prog->facts.parts[p].kind == TW_PART_SHARD;
        uint64_t per = prog->facts.parts[p].per * (shard ? (uint64_t)prog->facts.nranks : 1);
        uint64_t cell_elems = (call->count + per - 1) / per;
        uint64_t slice_elems = call->shape.slice_elems ? call->shape.slice_elems : cell_elems;
        /* cells differ by an element: all count as the mean one */
        uint64_t mean = cell_elems ? call->count * call->type_bytes * 1024 / per / cell_elems : 0;
        for (uint32_t u = 0; u < units; u++)
            rates->share[p * units + u] = mean * covered(cell_elems, slice_elems, u);
    }
    return TWILL_OK;
}

static enum twill_status call_check(const struct tw_cost_prog *prog,
                                    const struct tw_cost_call *call)
{
    const struct tw_cost_shape *shape = &call->shape;
    uint64_t groups = prog->user_groups ? prog->user_groups : 1;
    if (call->type_bytes < 1 || call->type_bytes > 64)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: elements of %u bytes cannot be priced",
                       prog->facts.name, call->type_bytes);
    if (call->count > TW_COST_BYTES_MAX / groups / call->type_bytes)
        return tw_fail(TWILL_ERR_INVALID,
                       "plan %s: a count of %llu is too large to be priced: buffers of a rank are "
                       "above %llu bytes",
                       prog->facts.name, (unsigned long long)call->count,
                       (unsigned long long)TW_COST_BYTES_MAX);
    if (shape->slice_elems &&
        (shape->loops < 1 || shape->slices < 1 || shape->slices > TW_PLAN_SLICES_MAX ||
         shape->slice_elems > TW_COST_BYTES_MAX || shape->loops > call->count + 1))
        return tw_fail(TWILL_ERR_INVALID,
                       "plan %s: %llu loops of %u slices of %llu elements make no sense",
                       prog->facts.name, (unsigned long long)shape->loops, shape->slices,
                       (unsigned long long)shape->slice_elems);
    return TWILL_OK;
}

enum twill_status tw_cost_rates_init(struct tw_cost_rates *rates, const struct tw_cost_prog *prog,
                                     const struct tw_cost_table *table,
                                     const struct tw_cost_call *call)
{
    enum twill_status status = call_check(prog, call);
    if (tw_failed(status))
        return status;
    bool whole = call->shape.slice_elems == 0;
    uint64_t loops = whole ? 1 : call->shape.loops;
    uint64_t groups = call->in_place ? prog->most_groups : prog->user_groups;
    uint64_t footprint = call->count * call->type_bytes * groups;
    *rates = (struct tw_cost_rates){
        .slices = whole ? 1 : call->shape.slices,
        .loops = loops < TW_COST_LOOPS ? (uint32_t)loops : TW_COST_LOOPS,
        .type_bytes = call->type_bytes,
        .in_place = call->in_place,
        .wide_num = call->type_bytes > WIDE_BYTES ? call->type_bytes : WIDE_BYTES,
    };
    rates->more_loops = loops - rates->loops;
    for (uint32_t e = 0; e < TW_COST_EXEC_COUNT; e++)
        exec_rates(&rates->exec[e], table, (enum tw_cost_exec)e, footprint);
    for (uint32_t k = 0; k < TW_COST_LINK_COUNT; k++)
        link_rates(&rates->link[k], table, (enum tw_cost_link_kind)k);
    return shares(rates, prog, call);
}

void tw_cost_rates_fini(struct tw_cost_rates *rates) { free(rates->share); }
