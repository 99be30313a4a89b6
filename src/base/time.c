/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the monotonic clock, pauses. Never knows: what is waited for. */
#include "config.h"

#include "base/time.h"

#include <limits.h>
#include <sched.h>
#include <time.h>

/* twice what is promised: the CPU's clock may rise after the measurement */
#define SPIN_NS (2 * TW_SPIN_NS)
#define YIELDS 2000 /* a few ms when others run */
#define CROWDED_YIELDS 20000
#define SLEEP_NS 50000

#define PAUSE_SAMPLES 8
#define PAUSE_COUNT 64 /* of a sample: a few microseconds */
#define PAUSE_LEAST_PS 1000

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

/* The best of a few samples: interrupts make a sample longer, nothing makes it shorter. */
uint64_t tw_pause_ps(void)
{
    uint64_t least_ns = UINT64_MAX;

    for (int sample = 0; sample < PAUSE_SAMPLES; sample++) {
        uint64_t start_ns = tw_now_ns();
        for (int i = 0; i < PAUSE_COUNT; i++)
            tw_cpu_relax();
        uint64_t took_ns = tw_now_ns() - start_ns;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    uint64_t pause_ps = least_ns * 1000 / PAUSE_COUNT;
    return pause_ps > PAUSE_LEAST_PS ? pause_ps : PAUSE_LEAST_PS;
}

struct tw_patience tw_patience_for(uint64_t pause_ps, bool crowded)
{
    if (crowded)
        return (struct tw_patience){0, CROWDED_YIELDS};
    if (pause_ps < PAUSE_LEAST_PS)
        pause_ps = PAUSE_LEAST_PS;
    return (struct tw_patience){(uint32_t)(SPIN_NS * 1000 / pause_ps) + 1, YIELDS};
}

struct tw_patience tw_patience_both(struct tw_patience a, struct tw_patience b)
{
    uint64_t sum = (uint64_t)a.spins + b.spins;
    uint32_t yields = a.yields > b.yields ? a.yields : b.yields;

    if (a.spins == UINT32_MAX || b.spins == UINT32_MAX)
        return (struct tw_patience){a.spins < b.spins ? a.spins : b.spins, yields};
    return (struct tw_patience){(uint32_t)(sum > 0 ? (uint64_t)a.spins * b.spins / sum : 0),
                                yields};
}

bool tw_backoff_wait(struct tw_backoff *backoff)
{
    uint32_t spins = backoff->spins;

    if (spins < UINT32_MAX)
        backoff->spins = spins + 1;
    if (spins < backoff->patience.spins) {
        tw_cpu_relax();
        return false;
    }
    if (backoff->patience.yields == UINT32_MAX ||
        spins - backoff->patience.spins < backoff->patience.yields) {
        (void)sched_yield();
        return true;
    }
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = SLEEP_NS};
    (void)nanosleep(&pause, NULL);
    return true;
}
