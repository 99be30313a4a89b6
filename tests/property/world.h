/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: processes of a case, the memory they share, how long they may take.
 * Never knows: what the ranks do. */
#ifndef TESTS_PROPERTY_WORLD_H
#define TESTS_PROPERTY_WORLD_H

#include "property/case.h"

namespace property
{

/* Of the processes of one case and the driver. */
struct Shared {
    twill_unique_id id;
    int id_ready;         /* atomic */
    int step[RANKS_MOST]; /* atomic: the batch that the rank is in */
    int at_end;           /* atomic: ranks whose calls that come right are over */
    double lost_s;        /* atomic: when a process was killed, or a rank aborted */
    uint64_t choices[64]; /* atomic: hashes of what was chosen, by a hash of the call; 0: not yet */
    int failed;           /* atomic: text is taken */
    char text[2000];      /* what went wrong first */
};
Shared *shared();

/* The first failure is kept, others are not. */
void fail(const std::string &text);

double now_s();

/* One process of a case, already forked: returns when its ranks are done. (ranks.cc) */
void run_process(const Case &c, int process);

/* Forks the processes and waits; limit_s: then they are killed. "", or what went wrong. */
std::string run(const Case &c, double limit_s);

} // namespace property

#endif
