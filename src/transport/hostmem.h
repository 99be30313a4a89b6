/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: host memory of this process that other processes can map: what twill_mem_alloc hands out.
 * Never knows: who maps it. */
#ifndef TW_TRANSPORT_HOSTMEM_H
#define TW_TRANSPORT_HOSTMEM_H

#include <stdbool.h>
#include <stddef.h>

#include "twill.h"

/**
 * Zeroed memory in a sealed memfd of its own, on whole pages. Pages are had at first touch.
 *
 * @param bytes  0 is legal: a pointer that can be freed
 * @return TWILL_OK; TWILL_ERR_NOMEM, ERR_SYSTEM: *ptr untouched
 */
enum twill_status tw_hostmem_alloc(size_t bytes, void **ptr);

/**
 * @param ptr  of tw_hostmem_alloc, or NULL. Peers' mappings and registrations stay valid: they
 * hold the memory themselves.
 * @return TWILL_ERR_INVALID ptr is no start of such memory
 */
enum twill_status tw_hostmem_free(void *ptr);

struct tw_hostmem {
    int fd;         /* a duplicate that the caller closes */
    size_t offset;  /* of ptr in it */
    size_t segment; /* bytes of the whole */
};
/** Is all of [ptr, ptr + bytes) inside one allocation? @return TWILL_OK and *found; ERR_INVALID no
 * (nothing is logged); ERR_SYSTEM out of descriptors. Thread-safe. */
enum twill_status tw_hostmem_find(const void *ptr, size_t bytes, struct tw_hostmem *found);

#endif
