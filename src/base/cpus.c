/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sets of CPUs, and whether those who share them outnumber them. Never knows: who they are.
 */
#include "config.h"

#include "base/cpus.h"

#include <sched.h>
#include <string.h>

#define KERNEL_WORDS ((size_t)64 * TW_CPUS_WORDS) /* far more CPUs than any kernel knows */

void tw_cpus_get(struct tw_cpus *cpus)
{
    /* The kernel's own form on 64-bit machines: bit c of an array of words. */
    uint64_t mask[KERNEL_WORDS] = {0};

    memset(cpus, 0, sizeof(*cpus));
    if (sched_getaffinity(0, sizeof(mask), (cpu_set_t *)(void *)mask) == 0) {
        for (size_t i = 0; i < KERNEL_WORDS; i++)
            cpus->words[i % TW_CPUS_WORDS] |= mask[i];
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
