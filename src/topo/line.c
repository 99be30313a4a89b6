/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a cache line, or the one CPU that both sides run on, handed to and fro.
 * Never knows: which CPUs these are. */
#include "config.h"

#include "topo/line.h"

#include <sched.h>

#include "base/time.h"

#define RUNS 6 /* the best counts */
#define ROUND_TRIPS 32
#define LOOKS 256 /* at a line between looks at the clock */

void tw_topo_line_give_up(struct tw_topo_court *court)
{
    __atomic_store_n(&court->late, 1, __ATOMIC_RELAXED);
}

/* yields: between two looks at the ball. @return false: too late */
static bool await(struct tw_topo_court *court, const uint64_t *ball, uint64_t value,
                  uint64_t deadline_ns, bool yields)
{
    for (;;) {
        for (int i = 0; i < LOOKS; i++) {
            if (__atomic_load_n(ball, __ATOMIC_ACQUIRE) >= value)
                return true;
            if (yields) {
                (void)sched_yield();
                break; /* others may have had the CPU for long */
            }
        }
        if (tw_now_ns() > deadline_ns)
            tw_topo_line_give_up(court);
        if (__atomic_load_n(&court->late, __ATOMIC_RELAXED))
            return false;
    }
}

/* Balls only ever grow: turn is the newest. */
static bool play(struct tw_topo_court *court, int side, uint64_t *turn, uint64_t deadline_ns,
                 bool yields, uint64_t *way_ps)
{
    uint64_t *mine = &court->side[side].ball, *theirs = &court->side[1 - side].ball;
    uint64_t best_ns = UINT64_MAX;
    for (int run = 0; run <= RUNS; run++) {
        uint64_t start_ns = tw_now_ns();
        for (int i = 0; i < ROUND_TRIPS; i++) {
            uint64_t next = ++*turn;
            if (side == 0)
                __atomic_store_n(mine, next, __ATOMIC_RELEASE);
            if (!await(court, theirs, next, deadline_ns, yields))
                return false;
            if (side == 1)
                __atomic_store_n(mine, next, __ATOMIC_RELEASE);
        }
        uint64_t took_ns = tw_now_ns() - start_ns;
        if (run > 0 && took_ns < best_ns)
            best_ns = took_ns;
    }
    *way_ps = best_ns * 1000 / ROUND_TRIPS / 2;
    return true;
}

bool tw_topo_line_play(struct tw_topo_court *court, int side, uint64_t *turn, uint64_t deadline_ns,
                       uint64_t *line_ps)
{
    return play(court, side, turn, deadline_ns, false, line_ps);
}

bool tw_topo_switch_play(struct tw_topo_court *court, int side, uint64_t *turn,
                         uint64_t deadline_ns, uint64_t *switch_ps)
{
    return play(court, side, turn, deadline_ns, true, switch_ps);
}
