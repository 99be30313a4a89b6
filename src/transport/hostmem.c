/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the list of this process's mappable allocations. Never knows: who maps them. */
#include "config.h"

#include "transport/hostmem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"

/* The one list of the process: memory belongs to no communicator. */
struct allocation {
    struct tw_shm shm; /* owned */
    struct allocation *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations; /* under lock */

enum twill_status tw_hostmem_alloc(size_t bytes, void **ptr)
{
    struct allocation *made = tw_alloc(sizeof(*made));
    if (made == NULL) {
        return TWILL_ERR_NOMEM;
    }
    enum twill_status status = tw_shm_create(&made->shm, "twill-memory", bytes > 0 ? bytes : 1);
    if (status != TWILL_OK) {
        free(made);
        return status == TWILL_ERR_INVALID ? TWILL_ERR_NOMEM : status;
    }
    pthread_mutex_lock(&lock);
    made->next = allocations;
    allocations = made;
    pthread_mutex_unlock(&lock);
    *ptr = made->shm.base;
    return TWILL_OK;
}

enum twill_status tw_hostmem_free(void *ptr)
{
    if (ptr == NULL) {
        return TWILL_OK;
    }
    struct allocation *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct allocation **at = &allocations; *at != NULL; at = &(*at)->next) {
        if ((*at)->shm.base == ptr) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    if (found == NULL) {
        return tw_fail(TWILL_ERR_INVALID, "%p is no memory of twill_mem_alloc", ptr);
    }
    tw_shm_close(&found->shm);
    free(found);
    return TWILL_OK;
}

enum twill_status tw_hostmem_find(const void *ptr, size_t bytes, struct tw_hostmem *found)
{
    enum twill_status status = TWILL_ERR_INVALID;
    uintptr_t start = (uintptr_t)ptr;
    int error = 0;
    pthread_mutex_lock(&lock);
    for (const struct allocation *at = allocations; at != NULL; at = at->next) {
        uintptr_t base = (uintptr_t)at->shm.base;
        if (start < base || start - base > at->shm.bytes ||
            bytes > at->shm.bytes - (start - base)) {
            continue;
        }
        int fd = fcntl(at->shm.fd, F_DUPFD_CLOEXEC, 0);
        error = fd < 0 ? errno : 0;
        status = fd < 0 ? TWILL_ERR_SYSTEM : TWILL_OK;
        *found = (struct tw_hostmem){.fd = fd, .offset = start - base, .segment = at->shm.bytes};
        break;
    }
    pthread_mutex_unlock(&lock);
    if (error != 0) {
        return tw_fail_errno(status, error, "memory at %p: its descriptor cannot be kept", ptr);
    }
    return status;
}
