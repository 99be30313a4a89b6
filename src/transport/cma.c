/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: process_vm_readv and its limits. Never knows: who agreed to it. */
#include "config.h"

#include "transport/cma.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/time.h"

#define CALL_BYTES ((size_t)1 << 30) /* of one system call */

static enum twill_status failed(int pid, const char *verb, size_t bytes)
{
    if (errno == ESRCH) {
        return tw_fail(TWILL_ERR_PEER, "%s %zu bytes: process %d is gone", verb, bytes, pid);
    }
    return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "%s %zu bytes of process %d", verb, bytes, pid);
}

static enum twill_status transfer(int pid, void *local, uint64_t address, size_t bytes, bool write)
{
    unsigned char *at = local;
    while (bytes > 0) {
        size_t now = bytes < CALL_BYTES ? bytes : CALL_BYTES;
        struct iovec mine = {.iov_base = at, .iov_len = now};
        struct iovec theirs = {.iov_base = (void *)(uintptr_t)address, .iov_len = now};
        ssize_t moved = write ? process_vm_writev(pid, &mine, 1, &theirs, 1, 0)
                              : process_vm_readv(pid, &mine, 1, &theirs, 1, 0);
        if (moved < 0 && errno == EINTR) {
            continue;
        }
        if (moved <= 0) {
            return failed(pid, write ? "writing" : "reading", bytes);
        }
        at += moved;
        address += (uint64_t)moved;
        bytes -= (size_t)moved;
    }
    return TWILL_OK;
}

enum twill_status tw_cma_read(int pid, void *dst, uint64_t address, size_t bytes)
{
    return transfer(pid, dst, address, bytes, false);
}

enum twill_status tw_cma_write(int pid, const void *src, uint64_t address, size_t bytes)
{
    return transfer(pid, (void *)(uintptr_t)src, address, bytes, true);
}

#define PROBE_BYTES_MOST 64

bool tw_cma_probe(int pid, uint64_t address, const void *expected, size_t bytes)
{
    unsigned char got[PROBE_BYTES_MOST] = {0};
    struct iovec mine = {.iov_base = got, .iov_len = bytes};
    struct iovec theirs = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
    return pid > 0 && bytes <= sizeof(got) &&
           process_vm_readv(pid, &mine, 1, &theirs, 1, 0) == (ssize_t)bytes &&
           memcmp(got, expected, bytes) == 0;
}

bool tw_cma_here(void)
{
    static const char pattern[] = "twill reads its own memory";
    return tw_cma_probe(getpid(), (uint64_t)(uintptr_t)pattern, pattern, sizeof(pattern));
}

/* ---- measurement ---------------------------------------------------------------------------- */

static struct tw_cma_measure measure;
static pthread_once_t measure_once = PTHREAD_ONCE_INIT;

/* Best of a few, the first of which warms pages and caches. */
static uint64_t best_ns(unsigned char *dst, const unsigned char *src, size_t bytes, bool cma)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        uint64_t start = tw_now_ns();
        if (!cma) {
            memcpy(dst, src, bytes);
        } else if (tw_cma_read(getpid(), dst, (uint64_t)(uintptr_t)src, bytes) != TWILL_OK) {
            return UINT64_MAX;
        }
        __asm__ volatile("" : : "r"(dst) : "memory"); /* the copy is not to be left out */
        uint64_t took = tw_now_ns() - start;
        best = took < best ? took : best;
    }
    return best;
}

static void measure_run(void)
{
    static const size_t sizes[TW_CMA_SIZES] = {16384, 65536, 524288};
    const size_t most = sizes[TW_CMA_SIZES - 1];
    measure.faster_from = SIZE_MAX;
    measure.works = tw_cma_here();
    unsigned char *src = tw_alloc(most);
    unsigned char *dst = tw_alloc(most);
    for (int i = TW_CMA_SIZES - 1; i >= 0 && src != NULL && dst != NULL && measure.works; i--) {
        measure.bytes[i] = sizes[i];
        measure.copy_ns[i] = best_ns(dst, src, sizes[i], false);
        measure.cma_ns[i] = best_ns(dst, src, sizes[i], true);
    }
    for (int i = TW_CMA_SIZES - 1; i >= 0 && measure.cma_ns[i] < measure.copy_ns[i]; i--) {
        measure.faster_from = sizes[i];
    }
    free(src);
    free(dst);
}

const struct tw_cma_measure *tw_cma_measured(void)
{
    pthread_once(&measure_once, measure_run);
    return &measure;
}
