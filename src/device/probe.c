/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what is written and looked for when devices are tried with each other's memory.
 * Never knows: who they are tried for. */
#include "config.h"

#include "device/probe.h"

#include <string.h>
#include <time.h>

#include "base/cuda.h"
#include "base/time.h"

#define POLLS_AWAKE 500 /* a step takes some tens of microseconds */
#define NAP_NS (50 * 1000L)

const char *tw_gap_text(enum tw_gap gap)
{
    static const char *const texts[TW_GAP_COUNT] = {
        "nothing is in the way",
        "TWILL_P2P=0",
        "there is no peer access",
        "memory of the other process does not open (CUDA IPC)",
        "the self-test's reads find nothing",
        "the self-test's reads find other bytes than are there",
        "the self-test's writes are lost",
        "the self-test's writes arrive as other bytes",
    };
    return gap < TW_GAP_COUNT ? texts[gap] : "unknown";
}

/* ---- what is tried -----------------------------------------------------------------------------
 */

/* Whose item it is. */
struct plan {
    struct tw_gk_probe probe;
    int16_t rank[TW_GK_PROBE_ITEMS]; /* -1: the own, where nothing can be in the way */
};

/* In two places of an owner's memory: the spot of `writer`. */
static void add(struct plan *plan, const struct tw_probe_memory *owner, int writer, int found_of,
                enum tw_gk_probe_verb verb)
{
    const size_t at = (size_t)writer * TW_PROBE_SPOT_BYTES;
    char *const spots[2] = {owner->head + at, owner->tail + at};

    for (uint32_t place = 0; place < 2; place++) {
        struct tw_gk_probe *probe = &plan->probe;
        plan->rank[probe->items] = (int16_t)found_of;
        probe->item[probe->items++] = (struct tw_gk_probe_item){
            .at = (uint32_t *)(void *)spots[place],
            .seed = owner->seed + 2 * (uint32_t)writer + place,
            .verb = verb,
        };
    }
}

static void plan_make(const struct tw_probe_side *side, enum tw_probe_step step, struct plan *plan)
{
    const struct tw_probe_memory *own = &side->of[side->rank];

    plan->probe.seen = side->seen;
    plan->probe.items = 0;
    plan->probe.unused = 0;
    if (step == TW_PROBE_OFFER)
        add(plan, own, side->rank, -1, TW_GK_PROBE_WRITE);
    if (step == TW_PROBE_LOOK)
        add(plan, own, side->rank, -1, TW_GK_PROBE_TAKE);
    for (int r = 0; r < side->ranks && step != TW_PROBE_OFFER; r++) {
        if (r == side->rank || !side->of[r].tried)
            continue;
        if (step == TW_PROBE_LOOK) {
            add(plan, own, r, r, TW_GK_PROBE_TAKE);
        } else {
            add(plan, &side->of[r], r, r, TW_GK_PROBE_READ);
            add(plan, &side->of[r], side->rank, r, TW_GK_PROBE_WRITE);
        }
    }
}

/* ---- and what comes of it ----------------------------------------------------------------------
 */

static enum twill_status over(const struct tw_probe_side *side)
{
    if (side->cancel != NULL && __atomic_load_n(side->cancel, __ATOMIC_ACQUIRE) != 0)
        return TWILL_ERR_ABORTED;
    if (side->deadline_ns != TW_NEVER && tw_now_ns() >= side->deadline_ns)
        return tw_fail(TWILL_ERR_TIMEOUT,
                       "the self-test of CUDA device %d does not end: the device is busy",
                       side->device);
    return TWILL_OK;
}

static enum twill_status await(const struct tw_probe_side *side, void *stream)
{
    const struct timespec nap = {0, NAP_NS};
    bool empty = false;
    enum twill_status status = TWILL_OK;

    for (uint64_t polls = 0; !tw_failed(status) && !empty; polls++) {
        status = tw_cuda_stream_query(side->device, stream, &empty);
        if (tw_failed(status) || empty)
            break;
        status = over(side);
        if (polls >= POLLS_AWAKE)
            (void)nanosleep(&nap, NULL);
        else
            tw_cpu_relax();
    }
    return status;
}

static enum tw_gap gap_of(uint32_t seen, bool looks)
{
    switch (seen) {
    case TW_GK_SEEN_RIGHT:
        return TW_GAP_NONE;
    case TW_GK_SEEN_NOTHING:
        return looks ? TW_GAP_WRITES_LOST : TW_GAP_READS_NOTHING;
    default:
        return looks ? TW_GAP_WRITES_OTHER : TW_GAP_READS_OTHER;
    }
}

/* Of two places that differ the one where something is wrong. */
static void gaps_find(const struct plan *plan, enum tw_probe_step step, enum tw_gap *gaps)
{
    const struct tw_gk_probe *probe = &plan->probe;

    for (uint32_t i = 0; i < probe->items; i++) {
        const int rank = plan->rank[i];
        const uint32_t seen = __atomic_load_n(&probe->seen[i], __ATOMIC_ACQUIRE);

        if (rank >= 0 && probe->item[i].verb != TW_GK_PROBE_WRITE && gaps[rank] == TW_GAP_NONE)
            gaps[rank] = gap_of(seen, step == TW_PROBE_LOOK);
    }
}

enum twill_status tw_probe_run(const struct tw_probe_side *side, enum tw_probe_step step,
                               enum tw_gap *gaps)
{
    struct plan plan;
    void *stream = NULL;

    for (int r = 0; r < side->ranks; r++)
        gaps[r] = TW_GAP_NONE;
    plan_make(side, step, &plan);
    if (plan.probe.items == 0)
        return TWILL_OK;
    memset(side->seen, 0, plan.probe.items * sizeof(*side->seen));
    enum twill_status status = tw_cuda_stream_create(side->device, &stream);
    if (tw_failed(status))
        return status;
    status = tw_gk_probe_start(side->device, &plan.probe, stream);
    if (!tw_failed(status))
        status = await(side, stream);
    tw_cuda_stream_destroy(side->device, stream);
    if (!tw_failed(status))
        gaps_find(&plan, step, gaps);
    return status;
}
