/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the monotonic clock, pauses. Never knows: what is waited for. */
#ifndef TW_BASE_TIME_H
#define TW_BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#define TW_NS_MS 1000000ull
#define TW_NS_S 1000000000ull
#define TW_NEVER UINT64_MAX

/** CLOCK_MONOTONIC in ns (vDSO: no system call). */
uint64_t tw_now_ns(void);

/** now + ns without overflow; ns 0 means never. */
uint64_t tw_deadline_ns(uint64_t ns);

/** Milliseconds left for poll(2): 0 passed, -1 never; rounded up. */
int tw_deadline_poll_ms(uint64_t deadline_ns);

static inline void tw_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Waiting by degrees: pause, then sched_yield, then short sleeps. */
struct tw_backoff {
    uint32_t spins;       /* so far */
    uint32_t spin_limit;  /* pauses before yielding */
    uint32_t yield_limit; /* yields before sleeping; UINT32_MAX: never sleep */
};
/** crowded: more runnable ranks than CPUs: yields at once. */
void tw_backoff_init(struct tw_backoff *backoff, bool crowded);
static inline void tw_backoff_reset(struct tw_backoff *backoff) { backoff->spins = 0; }
/** One wait. @return true when the caller has waited long enough that slow-path checks cost nothing
 *  beside it (it has left pure spinning) */
bool tw_backoff_wait(struct tw_backoff *backoff);

#endif
