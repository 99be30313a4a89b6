/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a cache line handed to and fro by two sides. Never knows: on which CPUs they are. */
#include "config.h"

#include "topo/line.h"

#include "base/time.h"

#define RUNS 6 /* the best counts */
#define ROUND_TRIPS 32
#define LOOKS 256 /* at a line between looks at the clock */

void tw_topo_line_give_up(struct tw_topo_court *court)
{
    __atomic_store_n(&court->late, 1, __ATOMIC_RELAXED);
}

/* @return false: too late */
static bool await(struct tw_topo_court *court, const uint64_t *ball, uint64_t value,
                  uint64_t deadline_ns)
{
    for (;;) {
        for (int i = 0; i < LOOKS; i++)
            if (__atomic_load_n(ball, __ATOMIC_ACQUIRE) >= value)
                return true;
        if (tw_now_ns() > deadline_ns)
            tw_topo_line_give_up(court);
        if (__atomic_load_n(&court->late, __ATOMIC_RELAXED))
            return false;
    }
}

/* Balls only ever grow: turn is the newest. */
bool tw_topo_line_play(struct tw_topo_court *court, int side, uint64_t *turn, uint64_t deadline_ns,
                       uint64_t *line_ps)
{
    uint64_t *mine = &court->side[side].ball, *theirs = &court->side[1 - side].ball;
    uint64_t best_ns = UINT64_MAX;
    for (int run = 0; run <= RUNS; run++) {
        uint64_t start_ns = tw_now_ns();
        for (int i = 0; i < ROUND_TRIPS; i++) {
            uint64_t next = ++*turn;
            if (side == 0)
                __atomic_store_n(mine, next, __ATOMIC_RELEASE);
            if (!await(court, theirs, next, deadline_ns))
                return false;
            if (side == 1)
                __atomic_store_n(mine, next, __ATOMIC_RELEASE);
        }
        uint64_t took_ns = tw_now_ns() - start_ns;
        if (run > 0 && took_ns < best_ns)
            best_ns = took_ns;
    }
    *line_ps = best_ns * 1000 / ROUND_TRIPS / 2;
    return true;
}
