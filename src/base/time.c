/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the monotonic clock, pauses. Never knows: what is waited for. */
#include "config.h"

#include "base/time.h"

#include <limits.h>
#include <sched.h>
#include <time.h>

#define SPIN_LIMIT 4000  /* some 100 us of pauses */
#define YIELD_LIMIT 2000 /* then yields, a few ms when others run */
#define CROWDED_YIELD_LIMIT 20000
#define SLEEP_NS 50000

uint64_t tw_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * TW_NS_S + (uint64_t)now.tv_nsec;
}

uint64_t tw_deadline_ns(uint64_t ns)
{
    uint64_t now = tw_now_ns();

    if (ns == 0 || ns > TW_NEVER - now)
        return TW_NEVER;
    return now + ns;
}

int tw_deadline_poll_ms(uint64_t deadline_ns)
{
    if (deadline_ns == TW_NEVER)
        return -1;
    uint64_t now = tw_now_ns();
    if (now >= deadline_ns)
        return 0;
    uint64_t left_ns = deadline_ns - now;
    uint64_t left_ms = left_ns / TW_NS_MS + (left_ns % TW_NS_MS != 0);
    return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

void tw_backoff_init(struct tw_backoff *backoff, bool crowded)
{
    backoff->spins = 0;
    backoff->spin_limit = crowded ? 0 : SPIN_LIMIT;
    backoff->yield_limit = crowded ? CROWDED_YIELD_LIMIT : YIELD_LIMIT;
}

bool tw_backoff_wait(struct tw_backoff *backoff)
{
    uint32_t spins = backoff->spins;

    if (spins < UINT32_MAX)
        backoff->spins = spins + 1;
    if (spins < backoff->spin_limit) {
        tw_cpu_relax();
        return false;
    }
    if (backoff->yield_limit == UINT32_MAX || spins - backoff->spin_limit < backoff->yield_limit) {
        (void)sched_yield();
        return true;
    }
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = SLEEP_NS};
    (void)nanosleep(&pause, NULL);
    return true;
}
