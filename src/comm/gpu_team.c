/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the ranks of one communicator, process and device: one kernel serves all of them, started
 * by whoever calls last, after what stands before it in every rank's stream and before what comes
 * behind.
 * Never knows: what calls are. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda.h"
#include "base/mem.h"
#include "comm/gpu_copy.h"

/* A launch that waits for the other ranks' parts. */
struct part {
    struct tw_gpu_launch launch; /* its pairs are those below */
    struct part *next;
    struct tw_gk_plan plan; /* where the launch has one */
    struct tw_gpu_copies copies;
    struct tw_gk_pair pairs[]; /* [size], or none */
};

struct member {
    struct tw_gpu *gpu;        /* NULL: not there yet, or gone */
    struct part *first, *last; /* owned: launches not started yet, in order */
    uint64_t submitted, started;
};

struct tw_gpu_team {
    struct tw_gpu_team *next;
    uint64_t id_hash; /* of the communicator */
    int device;
    int ranks, refs;
    /* staging of its ranks, taken for all at once: of each, and of all those who have not come */
    struct tw_gpu_parts parts;
    uint64_t staging_bytes;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* of the first launch that did not start; its calls count as started */
    enum twill_status failed;
    char failure[TW_ERROR_TEXT_BYTES];
    struct member members[TW_GK_JOINT_MAX];
    /* what the kernel that is being started is told: too much for a small stack. Of one rank: its
     * caller's, of whom there is one; else under lock */
    struct tw_gk_launch_plan wire;
};

static pthread_mutex_t teams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tw_gpu_team *teams; /* of this process; under teams_lock */

/* ---- coming and going --------------------------------------------------------------------------
 */

static struct tw_gpu_team *team_find(const struct tw_gpu *gpu)
{
    struct tw_gpu_team *team = teams;

    while (team != NULL && (team->id_hash != gpu->comm->id_hash || team->device != gpu->device))
        team = team->next;
    return team;
}

/* NULL: no memory, no staging (tw_fail called). */
static struct tw_gpu_team *team_create(const struct tw_gpu *gpu, int ranks,
                                       const struct tw_gpu_parts *parts)
{
    const struct twill_comm *comm = gpu->comm;
    struct tw_gpu_team *team = tw_alloc(sizeof(*team));

    if (team == NULL)
        return NULL;
    team->parts = *parts;
    if (tw_failed(tw_gpu_staging_take(gpu->shared, comm->proc->params->device_staging_bytes,
                                      comm->size, ranks, &team->parts))) {
        free(team);
        return NULL;
    }
    team->staging_bytes = (uint64_t)ranks * tw_gpu_rank_bytes(comm->size, &team->parts);
    team->id_hash = comm->id_hash;
    team->device = gpu->device;
    team->ranks = ranks;
    (void)pthread_mutex_init(&team->lock, NULL);
    tw_cond_init(&team->changed);
    return team;
}

enum twill_status tw_gpu_team_join(struct tw_gpu *gpu, int ranks, int place,
                                   struct tw_gpu_parts *parts)
{
    (void)pthread_mutex_lock(&teams_lock);
    struct tw_gpu_team *team = team_find(gpu);
    if (team == NULL && (team = team_create(gpu, ranks, parts)) != NULL) {
        team->next = teams;
        teams = team;
    }
    if (team != NULL) {
        team->refs++;
        gpu->staging_bytes = tw_gpu_rank_bytes(gpu->comm->size, &team->parts);
        team->staging_bytes -= gpu->staging_bytes;
        *parts = team->parts;
        (void)pthread_mutex_lock(&team->lock);
        team->members[place].gpu = gpu;
        (void)pthread_mutex_unlock(&team->lock);
        gpu->place = place;
        __atomic_store_n(&gpu->team, team, __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&teams_lock);
    return team != NULL ? TWILL_OK : TWILL_ERR_NOMEM;
}

static void parts_drop(struct member *member)
{
    while (member->first != NULL) {
        struct part *part = member->first;

        member->first = part->next;
        free(part);
    }
    member->last = NULL;
}

void tw_gpu_team_leave(struct tw_gpu *gpu)
{
    struct tw_gpu_team *team = gpu->team;

    if (team == NULL)
        return;
    (void)pthread_mutex_lock(&teams_lock);
    (void)pthread_mutex_lock(&team->lock);
    parts_drop(&team->members[gpu->place]);
    team->members[gpu->place].gpu = NULL;
    (void)pthread_mutex_unlock(&team->lock);
    if (--team->refs == 0) {
        struct tw_gpu_team **at = &teams;

        while (*at != team)
            at = &(*at)->next;
        *at = team->next;
        tw_gpu_staging_give(gpu->shared, team->staging_bytes);
        (void)pthread_cond_destroy(&team->changed);
        (void)pthread_mutex_destroy(&team->lock);
        free(team);
    }
    gpu->team = NULL;
    (void)pthread_mutex_unlock(&teams_lock);
}

/* ---- starting ----------------------------------------------------------------------------------
 */

/* What the kernel is told of one of its ranks. */
static void wire_set(struct tw_gk_launch_plan *wire, int place, const struct tw_gpu_launch *launch)
{
    const size_t size = (size_t)launch->call.size;

    wire->v.launch.call[place] = launch->call;
    if (launch->pairs != NULL)
        memcpy(&wire->v.pairs[(size_t)place * size], launch->pairs, size * sizeof(*launch->pairs));
    if (launch->plan != NULL)
        wire->plan[place] = *launch->plan;
}

static enum twill_status launch_one(struct tw_gpu *gpu, const struct tw_gpu_launch *launch)
{
    struct tw_gk_launch_plan *wire = &gpu->team->wire;

    struct tw_gpu_start start = {.ranks = &gpu,
                                 .count = 1,
                                 .blocks = tw_gpu_early_blocks(gpu, launch),
                                 .stream = launch->stream,
                                 .found = &launch->found};

    enum twill_status status = tw_gpu_stream_follow(gpu, launch);
    if (tw_failed(status))
        return status;
    wire->v.launch.ranks = 1;
    wire->v.launch.blocks = launch->shape.blocks;
    wire_set(wire, 0, launch);
    status = tw_gpu_blocks_begin(&start);
    if (!tw_failed(status))
        status = tw_gpu_early_start(&gpu, &launch, &wire->v.launch,
                                    launch->found.capturing ? NULL : gpu->done);
    if (!tw_failed(status))
        status = tw_gpu_stream_note(gpu, launch, launch->stream);
    return tw_gpu_blocks_end(&start, status);
}

static bool all_have(const struct tw_gpu_team *team)
{
    for (int i = 0; i < team->ranks; i++)
        if (team->members[i].first == NULL)
            return false;
    return true;
}

/* Different calls cannot be one kernel. */
static enum twill_status parts_compare(const struct tw_gpu_team *team)
{
    const struct tw_gk_call *first = &team->members[0].first->launch.call;
    char texts[2][TW_GPU_CALL_TEXT_BYTES];

    for (int i = 1; i < team->ranks; i++) {
        const struct tw_gk_call *other = &team->members[i].first->launch.call;

        if (memcmp(first->words, other->words, sizeof(first->words)) == 0)
            continue;
        tw_gpu_call_text(first->words, texts[0]);
        tw_gpu_call_text(other->words, texts[1]);
        return tw_fail(TWILL_ERR_MISMATCH,
                       "calls do not match: that of rank %d is %s, that of rank %d %s", first->rank,
                       texts[0], other->rank, texts[1]);
    }
    return TWILL_OK;
}

/* The kernel's stream comes after what stands in every member's. */
static enum twill_status streams_gather(struct tw_gpu_team *team)
{
    void *stream = team->members[0].first->launch.stream;
    enum twill_status status = TWILL_OK;

    for (int i = 0; i < team->ranks && !tw_failed(status); i++) {
        struct member *member = &team->members[i];

        status = tw_gpu_stream_follow(member->gpu, &member->first->launch);
        if (!tw_failed(status))
            status = tw_gpu_stream_join(member->gpu, member->first->launch.stream, stream);
    }
    return status;
}

/* Every member's stream goes on behind the kernel. */
static enum twill_status streams_part(struct tw_gpu_team *team)
{
    void *stream = team->members[0].first->launch.stream;
    enum twill_status status = TWILL_OK;

    for (int i = 0; i < team->ranks && !tw_failed(status); i++) {
        struct member *member = &team->members[i];

        status = tw_gpu_stream_join(member->gpu, stream, member->first->launch.stream);
        member->gpu->many_streams = true; /* the launch left its end with nobody */
        if (!tw_failed(status))
            status = tw_gpu_stream_note(member->gpu, &member->first->launch, stream);
    }
    return status;
}

/* All members have a part: they go as one kernel into the first one's stream. */
static enum twill_status launch_all(struct tw_gpu_team *team)
{
    struct tw_gk_launch_plan *wire = &team->wire;
    const struct tw_gpu_launch *first = &team->members[0].first->launch;
    const struct tw_gpu_launch *launches[TW_GK_JOINT_MAX] = {first};
    struct tw_gpu *ranks[TW_GK_JOINT_MAX];
    struct tw_gpu_start start = {.ranks = ranks,
                                 .count = (uint32_t)team->ranks,
                                 .blocks = tw_gpu_early_blocks(team->members[0].gpu, first),
                                 .stream = first->stream,
                                 .found = &first->found};

    enum twill_status status = parts_compare(team);
    if (!tw_failed(status))
        status = streams_gather(team);
    if (tw_failed(status))
        return status;
    wire->v.launch.ranks = (uint32_t)team->ranks;
    wire->v.launch.blocks = first->shape.blocks;
    for (int i = 0; i < team->ranks; i++) {
        ranks[i] = team->members[i].gpu;
        launches[i] = &team->members[i].first->launch;
        wire_set(wire, i, launches[i]);
    }
    status = tw_gpu_blocks_begin(&start);
    if (!tw_failed(status))
        status = tw_gpu_early_start(ranks, launches, &wire->v.launch, NULL);
    if (!tw_failed(status))
        status = streams_part(team);
    return tw_gpu_blocks_end(&start, status);
}

/* The team is locked: a failure is told by the caller, once it no longer is. */
static enum twill_status parts_start(struct tw_gpu_team *team)
{
    const enum twill_status status = launch_all(team);

    if (tw_failed(status) && !tw_failed(team->failed)) {
        team->failed = status;
        (void)snprintf(team->failure, sizeof(team->failure), "%s", tw_fail_text());
    }
    for (int i = 0; i < team->ranks; i++) {
        struct member *member = &team->members[i];
        struct part *part = member->first;

        member->first = part->next;
        if (member->first == NULL)
            member->last = NULL;
        free(part);
        member->started++;
    }
    return status;
}

/* free() frees. NULL: no memory */
static struct part *part_create(const struct tw_gpu_launch *launch)
{
    const size_t pairs_bytes =
        launch->pairs != NULL ? (size_t)launch->call.size * sizeof(*launch->pairs) : 0;
    struct part *part = malloc(sizeof(*part) + pairs_bytes);

    if (part == NULL) {
        (void)tw_fail(TWILL_ERR_NOMEM, "no memory to note a call");
        return NULL;
    }
    part->launch = *launch;
    part->next = NULL;
    if (launch->pairs != NULL) {
        memcpy(part->pairs, launch->pairs, pairs_bytes);
        part->launch.pairs = part->pairs;
    }
    if (launch->plan != NULL) {
        part->plan = *launch->plan;
        part->launch.plan = &part->plan;
    }
    if (launch->copies != NULL) {
        part->copies = *launch->copies;
        part->launch.copies = &part->copies;
    }
    return part;
}

enum twill_status tw_gpu_team_submit(struct tw_gpu *gpu, const struct tw_gpu_launch *launch,
                                     uint64_t *ticket)
{
    struct tw_gpu_team *team = gpu->team;
    struct member *member = &team->members[gpu->place];

    *ticket = 0;
    if (team->ranks == 1) {
        enum twill_status status = launch_one(gpu, launch);
        if (tw_failed(status) && gpu->half) /* the others are in a call that this rank is not */
            tw_comm_fail(gpu->comm, status, "%s", tw_fail_text());
        return status;
    }
    struct part *part = part_create(launch);
    if (part == NULL)
        return TWILL_ERR_NOMEM;
    (void)pthread_mutex_lock(&team->lock);
    if (member->last != NULL)
        member->last->next = part;
    else
        member->first = part;
    member->last = part;
    *ticket = ++member->submitted;
    enum twill_status status = TWILL_OK;
    while (!tw_failed(status) && all_have(team))
        status = parts_start(team);
    (void)pthread_cond_broadcast(&team->changed);
    (void)pthread_mutex_unlock(&team->lock);
    if (tw_failed(status)) /* the other ranks of the team have no other way to know */
        tw_comm_fail(gpu->comm, status, "%s", tw_fail_text());
    return status;
}

enum twill_status tw_gpu_team_wait(struct tw_gpu *gpu, uint64_t ticket)
{
    struct tw_gpu_team *team = gpu->team;
    const struct member *member = &team->members[gpu->place];

    if (ticket == 0)
        return TWILL_OK;
    (void)pthread_mutex_lock(&team->lock);
    while (member->started < ticket && tw_comm_status(gpu->comm) == TWILL_OK)
        (void)pthread_cond_wait(&team->changed, &team->lock);
    /* the communicator may hear of it only in a moment */
    const enum twill_status failed = team->failed;
    (void)pthread_mutex_unlock(&team->lock);
    enum twill_status status = tw_comm_status(gpu->comm);
    if (tw_failed(status))
        return tw_fail_again(status, gpu->comm->failure);
    return tw_failed(failed) ? tw_fail_again(failed, team->failure) : status;
}

void tw_gpu_team_lock(const struct tw_gpu *gpu) { (void)pthread_mutex_lock(&gpu->team->lock); }
void tw_gpu_team_unlock(const struct tw_gpu *gpu) { (void)pthread_mutex_unlock(&gpu->team->lock); }

void tw_gpu_team_wake(struct tw_gpu *gpu)
{
    (void)pthread_mutex_lock(&gpu->team->lock);
    (void)pthread_cond_broadcast(&gpu->team->changed);
    (void)pthread_mutex_unlock(&gpu->team->lock);
}
