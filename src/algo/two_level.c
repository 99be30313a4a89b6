/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: collectives in two levels, made of one-level plans. Never knows: bytes, transports, where
 * ranks are.
 *
 * Source: the hierarchical collectives of Karonis et al., "Exploiting hierarchy in parallel
 * computer networks to optimize collective operation performance" (IPDPS 2000), and, with all ranks
 * of a group at work on the far links, Jain and Sabharwal, "Optimal bucket algorithms for large MPI
 * collectives on torus interconnects" (ICS 2010), section 4, in two dimensions.
 *
 * Ranks h * g + i are host h, place i. Inside a host ranks exchange directly, between hosts those
 * of one place run the circulant schedule, each for its share: all_reduce      reduce_scatter in
 * the host, all_reduce of the place's share, all_gather reduce_scatter  in the host, of the groups
 * of all ranks of one place; then among these all_gather      among the ranks of one place; then in
 * the host, of what these have broadcast       from the root to its place on every host; then in
 * the host As much moves as in one level, but only 1/g of it between hosts, in about 2 + ceil(log2
 * n/g) rounds each way. The plans are nested by tw_build_embed; a level waits for the one before it
 * slice by slice of the call's loops, except that reduce_scatter's two share a lane, since the
 * second reads scratch that the first one's next loop fills.
 *
 * The parameter is g. A count that does not divide the ranks is taken down to the next divisor, so
 * that all hosts are alike; the default is the largest divisor that is not above the root of n.
 * Deadlock: the levels are free of it, and a lane waits for an earlier level only.
 */
#include <stdlib.h>

#include "algo/form.h"
#include "base/status.h"

/* Whom a level connects: the ranks of one host, or of one place. */
enum reach { HOST, PLACE };

struct level {
    enum reach reach;
    enum tw_coll coll;
    enum twill_status (*generate)(const struct tw_algo_args *args, struct tw_plan **plan);
    bool ends;   /* the reduction: FINAL stays */
    bool behind; /* in the lane of the level before */
};

struct job {
    struct tw_build build;
    enum tw_coll coll;
    int nranks, root, hosts, places;
    int only_rank;
    uint8_t in_part, out_part;
    /* borrowed */
    struct tw_step_ref *after; /* [nranks] the last step of the level before */
    int *ranks;                /* [most ranks of a level] */
    uint16_t *lanes;           /* the same */
};

static int divisor_below(int nranks, uint32_t bound)
{
    int divisor = 1;
    for (int d = 1; (uint64_t)d * (uint64_t)d <= (uint64_t)nranks; d++) {
        if (nranks % d != 0)
            continue;
        if ((uint32_t)d <= bound && d > divisor)
            divisor = d;
        if ((uint32_t)(nranks / d) <= bound && nranks / d > divisor)
            divisor = nranks / d;
    }
    return divisor;
}

static int places_of(const struct tw_algo_args *args)
{
    uint32_t bound = args->param;
    if (bound == 0)
        for (bound = 1; (uint64_t)(bound + 1) * (bound + 1) <= (uint64_t)args->nranks;)
            bound++;
    return divisor_below(args->nranks, bound);
}

/* ---- where the cells of a level lie ---------------------------------------------------------- */

/* All cells are those of the one group, or of scratch, from `first` on. */
static struct tw_cell_map cells_at(const struct job *job, enum tw_plan_buf buf, uint32_t first)
{
    return (struct tw_cell_map){
        .buf = (uint8_t)buf,
        .part = buf == TW_BUF_OUT ? job->out_part : job->in_part,
        .first = first,
        .stride = 1,
    };
}

/* A level's share of one rank or place is `run` cells; that of the next one follows. */
static struct tw_cell_map shares_at(const struct job *job, enum tw_plan_buf buf, uint32_t run)
{
    struct tw_cell_map map = cells_at(job, buf, 0);
    map.stride = run;
    map.run = run;
    map.run_stride = 1;
    return map;
}

/* The groups of all ranks of a place, one on every host. */
static struct tw_cell_map place_groups(const struct job *job, enum tw_plan_buf buf)
{
    struct tw_cell_map map = cells_at(job, buf, 0);
    map.run = (uint32_t)job->hosts;
    map.run_stride = (uint32_t)job->places;
    return map;
}

static void all_reduce_maps(const struct job *job, const struct level *level, uint32_t which,
                            struct tw_cell_map *in, struct tw_cell_map *out)
{
    uint32_t share = (uint32_t)job->hosts; /* cells, one for each host */
    bool gathers = level->coll == TW_COLL_ALL_GATHER;
    *in = *out = cells_at(job, TW_BUF_OUT, which * share);
    if (level->reach == PLACE)
        return;
    *in = shares_at(job, gathers ? TW_BUF_OUT : TW_BUF_IN, share);
    *out = shares_at(job, TW_BUF_OUT, share);
    (gathers ? in : out)->by_rank = share; /* a rank's one group is its own share */
}

static void reduce_scatter_maps(const struct job *job, const struct level *level,
                                struct tw_cell_map *in, struct tw_cell_map *out)
{
    bool first = level->reach == HOST;
    *in = first ? place_groups(job, TW_BUF_IN) : cells_at(job, TW_BUF_SCRATCH, 0);
    *out =
        first ? shares_at(job, TW_BUF_SCRATCH, (uint32_t)job->hosts) : cells_at(job, TW_BUF_OUT, 0);
}

static void all_gather_maps(const struct job *job, const struct level *level, uint32_t which,
                            struct tw_cell_map *in, struct tw_cell_map *out)
{
    if (level->reach == PLACE) {
        *in = cells_at(job, TW_BUF_IN, 0);
        *out = cells_at(job, TW_BUF_OUT, which);
        out->stride = (uint32_t)job->places;
        return;
    }
    *in = *out = place_groups(job, TW_BUF_OUT);
    in->by_rank = 1;
}

/* which: the host or place */
static void level_maps(const struct job *job, const struct level *level, uint32_t which,
                       struct tw_cell_map maps[TW_BUF_COUNT])
{
    struct tw_cell_map *in = &maps[TW_BUF_IN], *out = &maps[TW_BUF_OUT];
    bool scatters = job->coll == TW_COLL_REDUCE_SCATTER;
    maps[TW_BUF_SCRATCH] = cells_at(job, TW_BUF_SCRATCH, scatters ? (uint32_t)job->hosts : 0);
    maps[TW_BUF_WIDE] = cells_at(job, TW_BUF_WIDE, 0);
    *in = cells_at(job, level->reach == PLACE ? TW_BUF_IN : TW_BUF_OUT, 0);
    *out = cells_at(job, TW_BUF_OUT, 0);
    if (job->coll == TW_COLL_ALL_REDUCE)
        all_reduce_maps(job, level, which, in, out);
    else if (scatters)
        reduce_scatter_maps(job, level, in, out);
    else if (job->coll == TW_COLL_ALL_GATHER)
        all_gather_maps(job, level, which, in, out);
}

/* ---- levels ---------------------------------------------------------------------------------- */

static void final_strip(const struct tw_plan *plan)
{
    for (int r = 0; r < plan->nranks; r++)
        for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++)
            for (uint32_t i = 0; i < plan->ranks[r].lanes[l].nsteps; i++)
                plan->ranks[r].lanes[l].steps[i].flags &= (uint8_t)~TW_STEP_FINAL;
}

static int rank_at(const struct job *job, int host, int place)
{
    return host * job->places + place;
}

/* One host's, or place's, part of a level. fifos: ids that the levels before use; parts of a level
 * have no ranks in common and share theirs. */
static void part_embed(struct job *job, const struct level *level, const struct tw_plan *sub,
                       int which, uint32_t fifos)
{
    for (int r = 0; r < sub->nranks; r++)
        job->ranks[r] = level->reach == HOST ? rank_at(job, which, r) : rank_at(job, r, which);
    struct tw_cell_map maps[TW_BUF_COUNT];
    level_maps(job, level, (uint32_t)which, maps);
    if (job->build.plan)
        job->build.plan->nfifos = fifos;
    if (tw_failed(tw_build_embed(&job->build, sub, job->ranks, maps, job->after, job->lanes)))
        return;
    for (int r = 0; r < sub->nranks; r++) {
        if (job->lanes[r] == TW_NO_LANE)
            continue;
        const struct tw_plan_lane *lane =
            &job->build.plan->ranks[job->ranks[r]].lanes[job->lanes[r]];
        job->after[job->ranks[r]] = (struct tw_step_ref){job->lanes[r], lane->nsteps - 1};
    }
}

/* The part of a level that has the rank, or 0 where none has: all parts are alike to those outside.
 */
static void parts_of(const struct job *job, const struct level *level, int *first, int *last)
{
    *first = 0;
    *last = (level->reach == HOST ? job->hosts : job->places) - 1;
    if (level->reach == PLACE && job->coll == TW_COLL_BROADCAST)
        *first = *last = job->root % job->places;
    else if (job->only_rank >= 0)
        *first = *last =
            level->reach == HOST ? job->only_rank / job->places : job->only_rank % job->places;
}

static enum twill_status level_embed(struct job *job, const struct level *level)
{
    bool host = level->reach == HOST, rooted = level->coll == TW_COLL_BROADCAST;
    struct tw_algo_args args = {.coll = level->coll,
                                .nranks = host ? job->places : job->hosts,
                                .root = !rooted ? 0
                                        : host  ? job->root % job->places
                                                : job->root / job->places,
                                .only_rank = job->only_rank,
                                .channels = 1};
    if (job->only_rank >= 0)
        args.only_rank = host ? job->only_rank % job->places : job->only_rank / job->places;
    struct tw_plan *sub = NULL;
    enum twill_status status = level->generate(&args, &sub);
    if (tw_failed(status))
        return status;
    if (!level->ends)
        final_strip(sub);
    for (int r = 0; level->behind && r < job->nranks; r++)
        job->after[r].step = TW_STEP_BEHIND;
    int first, last;
    parts_of(job, level, &first, &last);
    uint32_t fifos = job->build.plan->nfifos;
    for (int which = first; which <= last && !tw_failed(job->build.status); which++)
        part_embed(job, level, sub, which, fifos);
    tw_plan_destroy(sub);
    return job->build.status;
}

static void levels_embed(struct job *job, const struct level *levels, int nlevels)
{
    for (int r = 0; r < job->nranks; r++)
        job->after[r] = (struct tw_step_ref){TW_NO_LANE, 0};
    for (int l = 0; l < nlevels && !tw_failed(job->build.status); l++) {
        enum twill_status status = level_embed(job, &levels[l]);
        if (tw_failed(status) && !tw_failed(job->build.status))
            job->build.status = status;
    }
}

#define LEVELS_MOST 3

/* Returns how many; 0: the collective is not served. */
static int levels_of(enum tw_coll coll, struct level levels[LEVELS_MOST])
{
    const struct level scatter = {HOST, TW_COLL_REDUCE_SCATTER, tw_algo_direct, false, false};
    const struct level gather = {HOST, TW_COLL_ALL_GATHER, tw_algo_direct, true, false};
    levels[0] = scatter;
    levels[1] = (struct level){PLACE, coll, tw_algo_circulant, true, false};
    levels[2] = gather;
    switch (coll) {
    case TW_COLL_ALL_REDUCE:
        return 3;
    case TW_COLL_REDUCE_SCATTER:
        levels[1].behind = true;
        return 2;
    case TW_COLL_ALL_GATHER:
        levels[0] = levels[1];
        levels[1] = gather;
        return 2;
    case TW_COLL_BROADCAST:
        levels[0] = (struct level){PLACE, coll, tw_algo_binomial, true, false};
        levels[1] = (struct level){HOST, coll, tw_algo_binomial, true, false};
        return 2;
    default:
        return 0;
    }
}

static void job_init(struct job *job, const struct tw_algo_args *args)
{
    const struct tw_coll_rule *rule = tw_coll_rule(args->coll);
    uint32_t nranks = (uint32_t)args->nranks;
    uint32_t per = args->coll == TW_COLL_ALL_REDUCE ? nranks : 1;
    tw_build_init(&job->build, "two_level", args->coll, args->nranks, args->root, args->only_rank);
    if (tw_failed(job->build.status))
        return;
    job->in_part = tw_build_part(&job->build, TW_PART_EQUAL, rule->in.many ? nranks : 1, per);
    job->out_part =
        rule->in.many == rule->out.many
            ? job->in_part
            : tw_build_part(&job->build, TW_PART_EQUAL, rule->out.many ? nranks : 1, per);
    job->build.plan->slices = 2;
    if (args->coll == TW_COLL_REDUCE_SCATTER)
        job->build.plan->scratch_cells = (uint32_t)job->hosts;
}

/* One rank alone gets a copy and no program. */
static void nothing(struct tw_algo_job *job, int rank, uint16_t channel)
{
    (void)job, (void)rank, (void)channel;
}

enum twill_status tw_algo_two_level(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form alone = {.name = "two_level", .chunks = 1};
    struct level levels[LEVELS_MOST];
    int nlevels = levels_of(args->coll, levels);
    if (nlevels == 0 || args->nranks < 2) {
        alone.program = nlevels ? nothing : NULL;
        return tw_algo_form_plan(&alone, args, plan);
    }
    struct job job = {.coll = args->coll,
                      .nranks = args->nranks,
                      .root = args->root,
                      .only_rank = args->only_rank};
    job.places = places_of(args);
    job.hosts = args->nranks / job.places;
    job_init(&job, args);
    if (tw_failed(job.build.status))
        return job.build.status;
    size_t most = (size_t)(job.hosts > job.places ? job.hosts : job.places);
    struct tw_step_ref *after = calloc((size_t)args->nranks, sizeof(*after));
    int *ranks = calloc(most, sizeof(*ranks));
    uint16_t *lanes = calloc(most, sizeof(*lanes));
    if (!after || !ranks || !lanes) {
        job.build.status =
            tw_fail(TWILL_ERR_NOMEM, "algorithm two_level: no memory for %d ranks", args->nranks);
    } else {
        job.after = after;
        job.ranks = ranks;
        job.lanes = lanes;
        levels_embed(&job, levels, nlevels);
    }
    free(after);
    free(ranks);
    free(lanes);
    return tw_build_finish(&job.build, plan);
}
