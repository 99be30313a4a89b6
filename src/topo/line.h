/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a cache line, or the one CPU that both sides run on, handed to and fro.
 * Never knows: which CPUs these are. */
#ifndef TW_TOPO_LINE_H
#define TW_TOPO_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

#define TW_TOPO_COURT_ALIGN ((size_t)2 * TW_LINE_BYTES)
/* Memory that both sides share: two threads, or two processes with a mapping of it. Zeroed before
 * either plays, at a multiple of TW_TOPO_COURT_ALIGN. A line each for what one writes and the other
 * reads; pairs of lines may be fetched at once, hence two. */
struct tw_topo_court {
    struct {
        uint64_t ball; /* these by __atomic builtins alone */
        char gap[2 * TW_LINE_BYTES - sizeof(uint64_t)];
    } side[2];
    uint64_t late; /* one side has given up */
    char gap[2 * TW_LINE_BYTES - sizeof(uint64_t)];
};

/**
 * Play with the other side, which calls it at about the same time: several runs of 32 round trips,
 * the first of which is for meeting. Spins; takes some 50 us where both have a CPU.
 *
 * @param side         0 or 1; the other plays the other
 * @param turn         the side's own, 0 before the first game on a court; keep it from game to game
 * @param deadline_ns  of tw_now_ns, at which it gives up
 * @param line_ps      out: from writing a line until the other sees it, one way; the best run's;
 *                     untouched when given up
 * @return false: too late, here or there; no more games on this court
 *
 * What the other side writes is compared, never believed: it can spoil the result alone.
 */
bool tw_topo_line_play(struct tw_topo_court *court, int side, uint64_t *turn, uint64_t deadline_ns,
                       uint64_t *line_ps);

/**
 * The same game by two sides that run on one CPU: who waits yields it. The CPU is passed as often
 * as the line.
 *
 * @param switch_ps  out: from yielding the CPU until the other side runs; the best run's; untouched
 *                   when given up
 */
bool tw_topo_switch_play(struct tw_topo_court *court, int side, uint64_t *turn,
                         uint64_t deadline_ns, uint64_t *switch_ps);

/** No more games on this court; who waits there stops. */
void tw_topo_line_give_up(struct tw_topo_court *court);

#endif
