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
#else
    __asm__ volatile("" ::: "memory");
#endif
}

/** What one tw_cpu_relax takes here, in picoseconds: from less than 1 ns to 100 ns by CPU. Measures
 * for some tens of microseconds. At least 1000: a poll goes with each. */
uint64_t tw_pause_ps(void);

/* Waiting by degrees: pause, then sched_yield, then short sleeps. */
struct tw_patience {
    uint32_t spins;  /* pauses before yielding */
    uint32_t yields; /* before sleeping; UINT32_MAX: never sleep */
};

/* A wait shorter than this enters the kernel nowhere, unless it is crowded. */
#define TW_SPIN_NS 100000ull

/**
 * How long to spin where waiters have a CPU each: TW_SPIN_NS at least, so that whoever comes within
 * that finds the waiter awake. Crowded (there are more of them than CPUs): not at all, for the
 * awaited one may need this very CPU. (Of 4 ranks on 2 CPUs, 2 us of spinning make a small
 * all_reduce take three times as long.)
 *
 * @param pause_ps  of tw_pause_ps
 */
struct tw_patience tw_patience_for(uint64_t pause_ps, bool crowded);
/** Of one who waits for two things and polls both between pauses: as many spins as take as long,
 * the more yielding. */
struct tw_patience tw_patience_both(struct tw_patience a, struct tw_patience b);
/** Of one who waits for nothing: the neutral one of tw_patience_both. */
#define TW_PATIENCE_NONE ((struct tw_patience){UINT32_MAX, 0})

struct tw_backoff {
    uint32_t spins; /* so far */
    struct tw_patience patience;
};
static inline void tw_backoff_init(struct tw_backoff *backoff, struct tw_patience patience)
{
    backoff->spins = 0;
    backoff->patience = patience;
}
static inline void tw_backoff_reset(struct tw_backoff *backoff) { backoff->spins = 0; }
/** One wait. @return true when the caller has waited long enough that slow-path checks cost nothing
 *  beside it (it has left pure spinning) */
bool tw_backoff_wait(struct tw_backoff *backoff);

#endif
