/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which accesses to one cell happens-before does not order. Never knows: where order comes
 * from, values. */
#include <stdlib.h>
#include <string.h>

#include "plan/check.h"
#include "plan/validate.h"

void tw_check_access_reset(struct tw_check *ck)
{
    memset(ck->accesses, 0, ck->nmemory * sizeof(*ck->accesses));
    ck->nreads = 0;
    ck->reads_free = TW_CHECK_NONE;
    if (!ck->regions)
        return;
    memset(ck->passed, 0, (size_t)ck->nlanes * (size_t)ck->nranks * 2 * sizeof(*ck->passed));
    for (size_t i = 0; i < (size_t)ck->nranks * TW_CHECK_CALLS_MAX; i++) {
        struct tw_check_region *region = &ck->regions[i];
        if (region->version) {
            memset(region->reads, 0, ck->dims * sizeof(*region->reads));
            memset(region->writes, 0, ck->dims * sizeof(*region->writes));
            memset(region->puts, 0,
                   ck->ranks[i / TW_CHECK_CALLS_MAX].npairs * sizeof(*region->puts));
        }
        region->version = 0;
    }
}

/* ---- reads since the last write ----------------------------------------------------------------
 */

uint32_t tw_check_read_open(const struct tw_check *ck, uint32_t list, const uint32_t *clock)
{
    while (list != TW_CHECK_NONE && clock[ck->reads[list].dim] >= ck->reads[list].time)
        list = ck->reads[list].next;
    return list;
}

bool tw_check_read_add(struct tw_check *ck, uint32_t *list, const struct tw_check_lane *lane)
{
    for (uint32_t *link = list; *link != TW_CHECK_NONE;) {
        struct tw_check_read *read = &ck->reads[*link];
        if (lane->clock[read->dim] < read->time) {
            link = &read->next;
            continue;
        }
        uint32_t free = *link;
        *link = read->next;
        read->next = ck->reads_free;
        ck->reads_free = free;
    }
    uint32_t at = ck->reads_free;
    if (at != TW_CHECK_NONE) {
        ck->reads_free = ck->reads[at].next;
    } else {
        if (ck->nreads == ck->reads_room) {
            uint32_t room = ck->reads_room ? 2 * ck->reads_room : 256;
            struct tw_check_read *reads = realloc(ck->reads, room * sizeof(*reads));
            if (!reads)
                return tw_check_nomem(ck);
            ck->reads = reads;
            ck->reads_room = room;
        }
        at = ck->nreads++;
    }
    ck->reads[at] = (struct tw_check_read){lane->dim, lane->time, *list};
    *list = at;
    return true;
}

/* ---- hazards -----------------------------------------------------------------------------------
 */

static bool is_put(const struct tw_check_touch *touch)
{
    return touch->write && (touch->op->traits & TW_DO_PUT);
}

static bool hazard(struct tw_check *ck, const struct tw_check_touch *touch, const char *other,
                   uint32_t dim, uint32_t time)
{
    char when[96];
    tw_check_when(ck, dim, time, when, sizeof(when));
    return tw_check_fault(ck, touch->lane, "%s %s cell %u of rank %d, not ordered with %s by %s",
                          touch->write ? "writes" : "reads",
                          tw_buf_name((enum tw_plan_buf)touch->buf), touch->cell, touch->rank,
                          other, when);
}

/* Puts of one pair land in order. */
static bool put_before(const struct tw_check *ck, const struct tw_check_touch *touch, uint32_t pair,
                       uint32_t time)
{
    return (is_put(touch) && touch->op->pair == pair) ||
           tw_check_put_seen(ck, pair, time, touch->lane->clock);
}

/* A peer's IN or OUT is there only while its call runs. */
static bool user_touch(struct tw_check *ck, const struct tw_check_touch *touch)
{
    struct tw_check_rank *state = &ck->ranks[touch->rank];
    struct tw_check_lane *lane = touch->lane;
    if (state->call != lane->call || lane->clock[touch->rank] < lane->call + 1)
        return tw_check_fault(ck, lane, "%s %s cell %u of rank %d, whose call %s",
                              touch->write ? "writes" : "reads",
                              tw_buf_name((enum tw_plan_buf)touch->buf), touch->cell, touch->rank,
                              state->call > lane->call ? "may have ended" : "may not have begun");
    if (is_put(touch)) {
        ck->pairs[touch->op->pair].user_call = lane->call + 1;
        ck->pairs[touch->op->pair].user_at = lane->time;
    } else {
        state->touched[lane->dim] = lane->time;
    }
    return true;
}

/* ---- peers' scratch from call to call ----------------------------------------------------------
 */

/* Calls whose copies of peers' scratch are the same memory: copy k of p is that part of the whole.
 */
static bool copies_overlap(const struct tw_check *ck, uint32_t a, uint32_t b)
{
    uint64_t p = ck->progs[ck->calls[a].prog].plan->parity;
    uint64_t q = ck->progs[ck->calls[b].prog].plan->parity;
    uint64_t i = ck->calls[a].scratch_number % p, j = ck->calls[b].scratch_number % q;
    return i * q < (j + 1) * p && j * p < (i + 1) * q;
}

static bool region_covers(struct tw_check *ck, const struct tw_check_touch *touch,
                          const struct tw_check_region *region)
{
    const uint32_t *clock = touch->lane->clock;
    uint32_t dim = tw_check_clock_ahead(ck, region->writes, clock, 0);
    if (dim != ck->dims)
        return hazard(ck, touch, "a write to it in another call", dim, region->writes[dim]);
    const struct tw_check_rank *rank = &ck->ranks[touch->rank];
    for (uint32_t i = 0; i < rank->npairs; i++)
        if (region->puts[i] && !put_before(ck, touch, rank->pairs[i], region->puts[i]))
            return hazard(ck, touch, "a write to it in another call",
                          ck->lanes[ck->pairs[rank->pairs[i]].lane].dim, region->puts[i]);
    if (!touch->write)
        return true;
    dim = tw_check_clock_ahead(ck, region->reads, clock, 0);
    return dim == ck->dims
               ? true
               : hazard(ck, touch, "a read of it in another call", dim, region->reads[dim]);
}

/* Scratch cells of two calls may be the same memory whatever their numbers, as the calls' counts
 * differ: all of a call's accesses conflict with all of another's. A lane that has passed need not
 * look again before one of them changes. */
static bool scratch_touch(struct tw_check *ck, const struct tw_check_touch *touch)
{
    struct tw_check_region *regions = ck->regions + (size_t)touch->rank * TW_CHECK_CALLS_MAX;
    uint32_t call = touch->lane->call;
    uint64_t version = (uint64_t)(call + 1) << 32;
    for (uint32_t c = 0; c < ck->ncalls; c++)
        version += c == call ? 0 : regions[c].version;
    size_t lane = (size_t)(touch->lane - ck->lanes);
    uint64_t *passed =
        &ck->passed[(lane * (size_t)ck->nranks + (size_t)touch->rank) * 2 + touch->write];
    for (uint32_t c = 0; c < ck->ncalls && *passed != version; c++)
        if (c != call && regions[c].version && copies_overlap(ck, c, call) &&
            !region_covers(ck, touch, &regions[c]))
            return false;
    *passed = version;
    struct tw_check_region *own = &regions[call];
    own->version++;
    if (is_put(touch))
        own->puts[ck->pairs[touch->op->pair].nth] = touch->lane->time;
    else
        (touch->write ? own->writes : own->reads)[touch->lane->dim] = touch->lane->time;
    return true;
}

/* ---- one access --------------------------------------------------------------------------------
 */

static bool write_before(const struct tw_check *ck, const struct tw_check_touch *touch,
                         const struct tw_check_access *access)
{
    if (access->put)
        return put_before(ck, touch, access->write_dim, access->write_time);
    return touch->lane->clock[access->write_dim] >= access->write_time;
}

bool tw_check_touch(struct tw_check *ck, const struct tw_check_touch *touch)
{
    struct tw_check_lane *lane = touch->lane;
    bool user = touch->buf == TW_BUF_IN || touch->buf == TW_BUF_OUT;
    if (user && touch->rank != lane->rank && !user_touch(ck, touch))
        return false;
    if (!user && ck->progs[lane->prog].peer_scratch && !scratch_touch(ck, touch))
        return false;
    struct tw_check_access *access = &ck->accesses[touch->loc];
    if (access->call != lane->call + 1) /* between calls: by region, or by the rank's own order */
        *access = (struct tw_check_access){.call = lane->call + 1, .reads = TW_CHECK_NONE};
    if (access->write_time && !write_before(ck, touch, access)) {
        uint32_t dim =
            access->put ? ck->lanes[ck->pairs[access->write_dim].lane].dim : access->write_dim;
        return hazard(ck, touch, access->put ? "a put" : "a write", dim, access->write_time);
    }
    if (!touch->write)
        return tw_check_read_add(ck, &access->reads, lane);
    uint32_t read = tw_check_read_open(ck, access->reads, lane->clock);
    if (read != TW_CHECK_NONE)
        return hazard(ck, touch, "a read", ck->reads[read].dim, ck->reads[read].time);
    access->reads = TW_CHECK_NONE;
    access->put = is_put(touch);
    access->write_dim = access->put ? touch->op->pair : lane->dim;
    access->write_time = lane->time;
    return true;
}
