/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: copying from and to another process's memory by the kernel (process_vm_readv, writev).
 * Never knows: who agreed to it. */
#ifndef TW_TRANSPORT_CMA_H
#define TW_TRANSPORT_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "twill.h"

/**
 * Copy all of it. @param pid a process of this host; this one is legal
 * @return TWILL_OK; TWILL_ERR_PEER no such process; TWILL_ERR_SYSTEM refused, or memory that is not
 * there (part may be copied)
 */
enum twill_status tw_cma_read(int pid, void *dst, uint64_t address, size_t bytes);
enum twill_status tw_cma_write(int pid, const void *src, uint64_t address, size_t bytes);

/** Does reading bytes at address of pid give exactly what `expected` has? Logs nothing. */
bool tw_cma_probe(int pid, uint64_t address, const void *expected, size_t bytes);
/** The same with this process itself: the kernel has the call and no filter forbids it. */
bool tw_cma_here(void);

/*
 * Is it faster than the copy through staging? A pipelined copy in and out moves a byte in the time
 * of one memcpy, as the two processes work at once.
 */
#define TW_CMA_SIZES 3
struct tw_cma_measure {
    size_t bytes[TW_CMA_SIZES];
    uint64_t copy_ns[TW_CMA_SIZES], cma_ns[TW_CMA_SIZES];
    bool works;
    size_t faster_from; /* CMA wins from so many bytes on; SIZE_MAX: at none of the sizes */
};
/** Measured at the first call, under 5 ms on an idle machine; the same answer ever after. */
const struct tw_cma_measure *tw_cma_measured(void);

#endif
