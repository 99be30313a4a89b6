/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: bytes, alignment, anonymous and fd-backed pages. Never knows: what they hold. */
#include "config.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/status.h"

void *tw_alloc(size_t bytes)
{
    size_t rounded = (bytes + TW_LINE_BYTES - 1) / TW_LINE_BYTES * TW_LINE_BYTES;
    void *memory = NULL;

    if (bytes == 0)
        rounded = TW_LINE_BYTES;
    if (rounded >= bytes && rounded <= PTRDIFF_MAX)
        memory = aligned_alloc(TW_LINE_BYTES, rounded);
    if (memory == NULL) {
        (void)tw_fail(TWILL_ERR_NOMEM, "no memory for %zu bytes", bytes);
        return NULL;
    }
    memset(memory, 0, rounded);
    return memory;
}

static void shm_clear(struct tw_shm *shm)
{
    shm->fd = -1;
    shm->base = NULL;
    shm->bytes = 0;
}

static enum twill_status fd_map(int fd, size_t bytes, void **base)
{
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (mapped == MAP_FAILED)
        return tw_fail_errno(errno == ENOMEM ? TWILL_ERR_NOMEM : TWILL_ERR_SYSTEM, errno,
                             "shared segment of %zu bytes does not map", bytes);
    *base = mapped;
    return TWILL_OK;
}

/* Sizes and seals a fresh memfd. */
static enum twill_status fd_prepare(int fd, const char *name, size_t bytes)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    struct rlimit files;

    /* going beyond it would end the process by SIGXFSZ */
    if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY &&
        bytes > files.rlim_cur)
        return tw_fail(TWILL_ERR_NOMEM,
                       "shared segment \"%s\" of %zu bytes: files may have %llu (RLIMIT_FSIZE)",
                       name, bytes, (unsigned long long)files.rlim_cur);
    if (ftruncate(fd, (off_t)bytes) != 0)
        return tw_fail_errno(errno == EFBIG ? TWILL_ERR_NOMEM : TWILL_ERR_SYSTEM, errno,
                             "shared segment \"%s\" does not grow to %zu bytes", name, bytes);
    if (fcntl(fd, F_ADD_SEALS, seals) != 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "shared segment \"%s\" cannot be sealed",
                             name);
    return TWILL_OK;
}

/* The end of create and map: fd becomes shm's, or is closed when it failed before (status) or does
 * not map. */
static enum twill_status shm_take(struct tw_shm *shm, int fd, size_t bytes,
                                  enum twill_status status)
{
    void *base = NULL;

    if (status == TWILL_OK)
        status = fd_map(fd, bytes, &base);
    if (status != TWILL_OK) {
        (void)close(fd);
        return status;
    }
    shm->fd = fd;
    shm->base = base;
    shm->bytes = bytes;
    return TWILL_OK;
}

enum twill_status tw_shm_create(struct tw_shm *shm, const char *name, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    shm_clear(shm);
    if (bytes == 0 || bytes > (size_t)PTRDIFF_MAX - page)
        return tw_fail(TWILL_ERR_INVALID, "shared segment \"%s\": %zu is no size to map", name,
                       bytes);
    bytes = (bytes + page - 1) / page * page;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "shared segment \"%s\": memfd_create failed",
                             name);
    enum twill_status status = fd_prepare(fd, name, bytes);
    return shm_take(shm, fd, bytes, status);
}

/* Is fd a segment whose pages can be touched without fear of SIGBUS, and how long is it? Pages of a
 * huge-page file that its owner punches out may not be had again, so those are refused too. */
static enum twill_status fd_inspect(int fd, size_t least_bytes, size_t *bytes)
{
    struct statfs filesystem;
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0)
        return tw_fail_errno(TWILL_ERR_PEER, errno,
                             "peer's shared segment is no memory file with seals");
    if ((seals & F_SEAL_SHRINK) == 0)
        return tw_fail(TWILL_ERR_PEER, "peer's shared segment is not sealed against shrinking");
    if (fstat(fd, &info) != 0 || fstatfs(fd, &filesystem) != 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "peer's shared segment: fstat failed");
    if (filesystem.f_type == HUGETLBFS_MAGIC)
        return tw_fail(TWILL_ERR_PEER, "peer's shared segment is of huge pages");
    if (info.st_size <= 0 || (uint64_t)info.st_size < least_bytes)
        return tw_fail(TWILL_ERR_PEER, "peer's shared segment has %lld bytes, needed are %zu",
                       (long long)info.st_size, least_bytes);
    *bytes = (size_t)info.st_size;
    return TWILL_OK;
}

enum twill_status tw_shm_map(struct tw_shm *shm, int fd, size_t least_bytes)
{
    size_t bytes = 0;

    shm_clear(shm);
    if (fd < 0)
        return tw_fail(TWILL_ERR_INVALID, "shared segment: %d is no descriptor", fd);
    enum twill_status status = fd_inspect(fd, least_bytes, &bytes);
    return shm_take(shm, fd, bytes, status);
}

void tw_shm_close(struct tw_shm *shm)
{
    if (shm->base != NULL)
        (void)munmap(shm->base, shm->bytes);
    if (shm->fd >= 0)
        (void)close(shm->fd);
    shm_clear(shm);
}
