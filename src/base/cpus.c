/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sets of CPUs, and whether those who share them outnumber them. Never knows: who they are.
 */
#include "config.h"

#include "base/cpus.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define ROOM_MOST (TW_CPUS_MOST * 64)

static void cpus_fill(struct tw_cpus *cpus, const cpu_set_t *set, size_t room)
{
    for (size_t cpu = 0; cpu < room; cpu++) {
        if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(room), set))
            cpus->words[cpu / 64 % TW_CPUS_WORDS] |= UINT64_C(1) << cpu % 64;
    }
}

void tw_cpus_get(struct tw_cpus *cpus)
{
    bool again = true;

    memset(cpus, 0, sizeof(*cpus));
    /* EINVAL: the kernel knows more CPUs than there is room for */
    for (size_t room = TW_CPUS_MOST; again && room <= ROOM_MOST; room *= 2) {
        cpu_set_t *set = CPU_ALLOC(room);
        if (set == NULL)
            break;
        again = sched_getaffinity(0, CPU_ALLOC_SIZE(room), set) != 0 && errno == EINVAL;
        if (!again)
            cpus_fill(cpus, set, room);
        CPU_FREE(set);
    }
    if (tw_cpus_count(cpus) == 0)
        cpus->words[0] = 1;
}

int tw_cpus_count(const struct tw_cpus *cpus)
{
    int count = 0;

    for (size_t i = 0; i < TW_CPUS_WORDS; i++)
        count += __builtin_popcountll(cpus->words[i]);
    return count;
}

void tw_cpus_add(struct tw_cpus *cpus, const struct tw_cpus *more)
{
    for (size_t i = 0; i < TW_CPUS_WORDS; i++)
        cpus->words[i] |= more->words[i];
}

bool tw_cpus_within(const struct tw_cpus *part, const struct tw_cpus *whole)
{
    for (size_t i = 0; i < TW_CPUS_WORDS; i++) {
        if ((part->words[i] & ~whole->words[i]) != 0)
            return false;
    }
    return true;
}

bool tw_cpus_crowded(const struct tw_cpus *const *bound, int count, int quota)
{
    struct tw_cpus all = {{0}};
    int fellows = 0;

    for (int i = 0; i < count; i++) {
        tw_cpus_add(&all, bound[i]);
        fellows += tw_cpus_within(bound[i], bound[0]);
    }
    int cpus = tw_cpus_count(&all);
    if (quota > 0 && quota < cpus)
        cpus = quota;
    return count > cpus || (count > 0 && fellows > tw_cpus_count(bound[0]));
}
