/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a checked call, and how to tell what came from what was to come. Never knows: what was to
 * come (expect.c), where the buffers are. */
#include "config.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "team.h"

#define POISON 0xa5
#define BARRIER_LATE_NS 200000

/* ---- the comparison
 * ------------------------------------------------------------------------------ */

static bool element_right(const struct perf_case *c, const struct perf_expected *expected, size_t i,
                          uint64_t bits)
{
    if (!expected->is_number)
        return bits == expected->bits[i];
    double got = perf_bits_decode(c->type, bits); /* a NaN fails both comparisons */
    return got == expected->number[i] || fabs(got - expected->number[i]) <= expected->tolerance[i];
}

static void tell_first(const struct perf_rank *rank, const struct perf_case *c,
                       const struct perf_expected *expected, size_t i, size_t index, uint64_t bits)
{
    const char *name = perf_op_info(c->op)->name;
    if (expected->is_number)
        fprintf(stderr, "twill-perf: rank %d: %s of %zu bytes: element %zu is %.9g, not %.9g\n",
                rank->rank, name, c->size_bytes, index, perf_bits_decode(c->type, bits),
                expected->number[i]);
    else
        fprintf(stderr, "twill-perf: rank %d: %s of %zu bytes: element %zu is 0x%llx, not 0x%llx\n",
                rank->rank, name, c->size_bytes, index, (unsigned long long)bits,
                (unsigned long long)expected->bits[i]);
}

static uint64_t compare_output(const struct perf_rank *rank, const struct perf_case *c,
                               const struct perf_values *values)
{
    struct perf_expected expected = {.is_number = false};
    const char *recv = perf_case_recv_view(rank, c);
    uint64_t wrong = 0;
    for (size_t first = 0; first < c->recv_count; first += PERF_BLOCK) {
        size_t n = c->recv_count - first < PERF_BLOCK ? c->recv_count - first : PERF_BLOCK;
        perf_expect(rank, c, values, first, n, &expected);
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = perf_bits_load(c->type, recv, first + i);
            if (!element_right(c, &expected, i, bits) && wrong++ == 0)
                tell_first(rank, c, &expected, i, first + i, bits);
        }
    }
    return wrong;
}

/* Elements of this rank's own input that are no longer what they were. */
static uint64_t compare_input(const struct perf_rank *rank, const struct perf_case *c,
                              const struct perf_values *values, const void *data)
{
    uint64_t bits[PERF_BLOCK], wrong = 0;
    for (size_t first = 0; first < c->send_count; first += PERF_BLOCK) {
        size_t n = c->send_count - first < PERF_BLOCK ? c->send_count - first : PERF_BLOCK;
        perf_values_bits(values, rank->rank, first, n, bits);
        for (size_t i = 0; i < n; i++)
            wrong += perf_bits_load(c->type, data, first + i) != bits[i];
    }
    if (wrong)
        fprintf(stderr, "twill-perf: rank %d: %s of %zu bytes wrote into its input\n", rank->rank,
                perf_op_info(c->op)->name, c->size_bytes);
    return wrong;
}

static uint64_t poison_gone(const struct perf_rank *rank, const struct perf_case *c,
                            const char *data, size_t bytes, const char *where)
{
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)data[i] != POISON) {
            fprintf(stderr, "twill-perf: rank %d: %s of %zu bytes wrote %s\n", rank->rank,
                    perf_op_info(c->op)->name, c->size_bytes, where);
            return 1;
        }
    return 0;
}

static uint64_t compare(const struct perf_rank *rank, const struct perf_case *c,
                        const struct perf_values *values)
{
    size_t width = perf_type_bytes(c->type);
    uint64_t wrong = 0;
    if (perf_case_has_output(rank, c))
        wrong += compare_output(rank, c, values);
    else if (!c->in_place)
        wrong += poison_gone(rank, c, rank->recv.view, c->recv_count * width,
                             "into the receive buffer of a rank that is not the root");
    else
        wrong += compare_input(rank, c, values, perf_case_send_view(rank, c));
    if (!c->in_place)
        wrong += compare_input(rank, c, values, rank->send.view);
    size_t end = c->in_place ? c->size_bytes : c->recv_count * width;
    wrong += poison_gone(rank, c, rank->recv.view - PERF_POISON_BYTES, PERF_POISON_BYTES,
                         "before its output");
    return wrong +
           poison_gone(rank, c, rank->recv.view + end, PERF_POISON_BYTES, "behind its output");
}

/* ---- the call
 * ------------------------------------------------------------------------------------ */

/* Flip the top byte of elements spread over the output, on the rank that surely has one. */
static void spoil_output(const struct perf_rank *rank, const struct perf_case *c, size_t spoil)
{
    bool rooted = c->op == PERF_REDUCE || c->op == PERF_GATHER || c->op == PERF_GATHER_V;
    int victim = rooted ? c->root : 0;
    size_t width = perf_type_bytes(c->type);
    if (spoil > c->recv_count)
        spoil = c->recv_count;
    if (rank->rank != victim)
        return;
    char *recv = perf_case_recv_view(rank, c);
    for (size_t i = 0; i < spoil; i++)
        recv[(c->recv_count / spoil * i + 1) * width - 1] ^= (char)0xff;
}

void perf_check_prepare(const struct perf_rank *rank, const struct perf_case *c)
{
    struct perf_values values = perf_values_of(rank, c);
    size_t bytes = c->size_bytes + PERF_POISON_BYTES;
    memset(rank->recv.view - PERF_POISON_BYTES, POISON, PERF_POISON_BYTES + bytes);
    perf_values_store(&values, rank->rank, 0, c->send_count, perf_case_send_view(rank, c));
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One member in turn comes late; nobody may leave before it has come. The host's clock is the same
 * for all, so their times compare; they are exchanged by an all_gather. */
static bool check_barrier(const struct perf_team *team, const struct perf_case *c, size_t spoil,
                          uint64_t *wrong)
{
    uint64_t mine[2], *all = (uint64_t *)(void *)team->gather;
    int late = (int)(team->ranks[0].iteration % (uint64_t)team->members);
    if (!perf_team_ok(team, twill_barrier(team->talk, NULL), "barrier"))
        return false;
    uint64_t from_ns = now_ns();
    while (team->member == late && now_ns() - from_ns < BARRIER_LATE_NS)
        ;
    mine[0] = now_ns();
    if (!team->place->once(team, c))
        return false;
    mine[1] = now_ns();
    if (!perf_team_ok(team,
                      twill_all_gather(mine, all, sizeof(mine), TWILL_UINT8, team->talk, NULL),
                      "all_gather"))
        return false;
    uint64_t last_in_ns = 0;
    for (int m = 0; m < team->members; m++)
        last_in_ns = all[2 * (size_t)m] > last_in_ns ? all[2 * (size_t)m] : last_in_ns;
    *wrong = mine[1] < last_in_ns || (spoil && team->member == 0);
    return true;
}

bool perf_check_call(struct perf_team *team, const struct perf_case *c, size_t spoil,
                     uint64_t *wrong)
{
    *wrong = 0;
    for (int i = 0; i < team->count; i++)
        team->ranks[i].iteration++;
    if (c->op == PERF_BARRIER)
        return check_barrier(team, c, spoil, wrong);
    for (int i = 0; i < team->count; i++) {
        struct perf_case own = perf_case_for(&team->ranks[i], c);
        perf_check_prepare(&team->ranks[i], &own);
        if (!team->place->put(&team->ranks[i], &own))
            return false;
    }
    if (!team->place->once(team, c))
        return false;
    for (int i = 0; i < team->count; i++) {
        const struct perf_rank *rank = &team->ranks[i];
        struct perf_case own = perf_case_for(rank, c);
        struct perf_values values = perf_values_of(rank, &own);
        if (!team->place->get(rank, &own))
            return false;
        spoil_output(rank, &own, spoil);
        *wrong += compare(rank, &own, &values);
    }
    return true;
}
