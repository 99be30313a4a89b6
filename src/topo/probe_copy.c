/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: copies by memcpy and by the kernel, timed. Never knows: pairs of CPUs. */
#include "config.h"

#include "topo/probe_copy.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define RUN_BYTES (256 * KIB) /* copied between two looks at the clock */
#define RUNS 4
#define CMA_SHORT_BYTES 64
#define CMA_CALLS 16
#define CMA_LONG_BYTES (256 * KIB)
#define HALF_MOST (2 * MIB)
#define COLD_BYTES (512 * KIB)
#define COLD_RUNS 2
#define TOUCH_BYTES (64 * KIB) /* divides HALF_MOST */

struct copier {
    unsigned char *from, *to; /* HALF_MOST each */
    uint64_t deadline_ns;
    bool complete;
};

static bool late(struct copier *copier)
{
    if (tw_now_ns() <= copier->deadline_ns)
        return false;
    copier->complete = false;
    return true;
}

/* The compiler must not leave a copy out. */
static void seen(const unsigned char *bytes) { __asm__ volatile("" : : "r"(bytes) : "memory"); }

static uint64_t rate_of(uint64_t bytes, uint64_t ns)
{
    uint64_t rate = bytes * 1000000000ull / (ns ? ns : 1);
    return rate < TW_TOPO_RATE_MOST ? rate : TW_TOPO_RATE_MOST;
}

/* ---- what caches hold ----------------------------------------------------------------------- */

/* @return bytes a second; 0: too late */
static uint64_t warm_rate(struct copier *copier, size_t half_bytes)
{
    size_t copies = half_bytes < RUN_BYTES ? RUN_BYTES / half_bytes : 1;
    uint64_t best_ns = UINT64_MAX;
    for (int run = 0; run <= RUNS; run++) { /* the first brings pages and caches */
        if (late(copier))
            break;
        uint64_t start_ns = tw_now_ns();
        for (size_t i = 0; i < copies; i++) {
            memcpy(copier->to, copier->from, half_bytes);
            seen(copier->to);
        }
        uint64_t took_ns = tw_now_ns() - start_ns;
        if (run > 0 && took_ns < best_ns)
            best_ns = took_ns;
    }
    return best_ns == UINT64_MAX ? 0 : rate_of((uint64_t)copies * half_bytes, best_ns);
}

/* ---- what lies in memory -------------------------------------------------------------------- */

#if defined(__x86_64__)
static void line_flush(unsigned char *line) { __builtin_ia32_clflush(line); }
static void flush_end(void) { __builtin_ia32_mfence(); }
#define FLUSHES 1
#elif defined(__aarch64__)
static void line_flush(unsigned char *line)
{
    __asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
}
static void flush_end(void) { __asm__ volatile("dsb ish" : : : "memory"); }
#define FLUSHES 1
#else
static void line_flush(unsigned char *line) { (void)line; }
static void flush_end(void) {}
#define FLUSHES 0
#endif

/* Source and target are flushed out of all caches first: a buffer larger than these takes longer
 * than there is time. What the copy writes may stay in a cache, so this is the rate of reading. */
static uint64_t cold_rate(struct copier *copier)
{
    uint64_t best_ns = UINT64_MAX;
    for (int run = 0; run < COLD_RUNS && FLUSHES; run++) {
        for (size_t at = 0; at < COLD_BYTES; at += TW_LINE_BYTES) {
            line_flush(copier->from + at);
            line_flush(copier->to + at);
        }
        flush_end();
        if (late(copier))
            break;
        uint64_t start_ns = tw_now_ns();
        memcpy(copier->to, copier->from, COLD_BYTES);
        seen(copier->to);
        uint64_t took_ns = tw_now_ns() - start_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    return best_ns == UINT64_MAX ? 0 : rate_of(COLD_BYTES, best_ns);
}

/* ---- by the kernel -------------------------------------------------------------------------- */

/* @return ns; UINT64_MAX: refused */
static uint64_t cma_ns(struct copier *copier, size_t bytes)
{
    struct iovec mine = {.iov_base = copier->to, .iov_len = bytes};
    struct iovec theirs = {.iov_base = copier->from, .iov_len = bytes};
    uint64_t start_ns = tw_now_ns();
    if (process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) != (ssize_t)bytes)
        return UINT64_MAX;
    return tw_now_ns() - start_ns;
}

static uint64_t cma_best_ns(struct copier *copier, size_t bytes, int calls)
{
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < calls && !late(copier); i++) {
        uint64_t took_ns = cma_ns(copier, bytes);
        if (took_ns == UINT64_MAX)
            return UINT64_MAX;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    return best_ns;
}

static void cma_measure(struct copier *copier, struct tw_topo_measured *measured)
{
    uint64_t call_ns = cma_best_ns(copier, CMA_SHORT_BYTES, CMA_CALLS);
    if (call_ns == UINT64_MAX)
        return;
    measured->cma_call_ps = (call_ns ? call_ns : 1) * 1000;
    uint64_t long_ns = cma_best_ns(copier, CMA_LONG_BYTES, RUNS);
    if (long_ns == UINT64_MAX)
        return;
    measured->cma_bytes_per_s = rate_of(CMA_LONG_BYTES, long_ns > call_ns ? long_ns - call_ns : 1);
}

/* ---- all ------------------------------------------------------------------------------------ */

/* Faults pages in up to so many bytes of both halves. @return false: too late */
static bool pages_touch(struct copier *copier, size_t *touched, size_t bytes)
{
    for (; *touched < bytes; *touched += TOUCH_BYTES) {
        if (late(copier))
            return false;
        memset(copier->from + *touched, 1, TOUCH_BYTES);
        memset(copier->to + *touched, 2, TOUCH_BYTES);
    }
    return true;
}

/* Halves that fill half of each cache, and are well beyond the one before it; 0: none does. */
static void sizes_choose(const struct tw_topo_machine *machine, size_t half[TW_TOPO_COPY_COUNT])
{
    uint64_t l1 = machine->l1d_bytes ? machine->l1d_bytes : 32 * KIB;
    uint64_t l2 = machine->l2_bytes;
    uint64_t l3 = machine->l3_bytes;
    half[TW_TOPO_COPY_L1] = (size_t)(l1 / 4 < HALF_MOST ? l1 / 4 : HALF_MOST);
    half[TW_TOPO_COPY_L2] = l2 >= 4 * l1 && l2 / 4 <= HALF_MOST ? (size_t)(l2 / 4) : 0;
    half[TW_TOPO_COPY_L3] =
        l2 && l3 >= 4 * l2 && l2 <= HALF_MOST ? (size_t)(l2 > MIB / 2 ? l2 : MIB / 2) : 0;
    half[TW_TOPO_COPY_MEMORY] = COLD_BYTES;
}

bool tw_topo_copies_measure(const struct tw_topo_machine *machine, uint64_t deadline_ns,
                            struct tw_topo_measured *measured)
{
    size_t half[TW_TOPO_COPY_COUNT];
    struct copier copier = {.deadline_ns = deadline_ns, .complete = true};
    void *pages =
        mmap(NULL, 2 * HALF_MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return false;
    copier.from = pages;
    copier.to = copier.from + HALF_MOST;
    sizes_choose(machine, half);
    /* L3 needs the most pages, so it comes last */
    static const enum tw_topo_copy order[] = {TW_TOPO_COPY_L1, TW_TOPO_COPY_L2, TW_TOPO_COPY_MEMORY,
                                              TW_TOPO_COPY_L3};
    size_t touched = 0;
    if (pages_touch(&copier, &touched, CMA_LONG_BYTES))
        cma_measure(&copier, measured);
    for (int i = 0; i < TW_TOPO_COPY_COUNT; i++) {
        enum tw_topo_copy level = order[i];
        if (half[level] == 0 || !pages_touch(&copier, &touched, half[level]))
            continue;
        uint64_t rate =
            level == TW_TOPO_COPY_MEMORY ? cold_rate(&copier) : warm_rate(&copier, half[level]);
        measured->copy_bytes_per_s[level] = rate;
        measured->copy_bytes[level] = rate ? 2 * (uint64_t)half[level] : 0;
    }
    (void)munmap(pages, 2 * HALF_MOST);
    return copier.complete;
}
