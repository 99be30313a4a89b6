/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where measurements are kept between processes of a user, and when they can be believed.
 * Never knows: how they are made. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "base/status.h"
#include "base/time.h"
#include "topo/probe.h"

#define FOLDER "twill"
#define AGE_NS_MOST (86400 * TW_NS_S)
#define MAGIC "twillprb"

/* Host byte order: a file never leaves its boot. */
struct record {
    char magic[8];
    uint64_t version, key, made_ns;
    uint8_t measured[TW_TOPO_MEASURED_BYTES];
    uint64_t hash; /* of all before it: a torn file is no measurement */
};

/* ---- whose it is ---------------------------------------------------------------------------- */

static bool own(int fd, mode_t kind)
{
    struct stat stat;
    return fstat(fd, &stat) == 0 && (stat.st_mode & S_IFMT) == kind && stat.st_uid == geteuid() &&
           (stat.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* The folder, made when it is not there. @return -1: none that can be believed */
static int folder_open(const char *directory)
{
    int outer = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (outer < 0)
        return -1;
    int inner = -1;
    if (own(outer, S_IFDIR) && (mkdirat(outer, FOLDER, 0700) == 0 || errno == EEXIST))
        inner = openat(outer, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)close(outer);
    if (inner >= 0 && !own(inner, S_IFDIR)) {
        (void)close(inner);
        return -1;
    }
    return inner;
}

static void file_name(uint64_t key, char name[40])
{
    (void)snprintf(name, 40, "probe-%016llx", (unsigned long long)key);
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool record_read(int folder, const char *name, struct record *record)
{
    struct stat stat;
    char more;
    /* not to hang on a pipe that somebody put there */
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = own(fd, S_IFREG) && fstat(fd, &stat) == 0 && stat.st_nlink == 1 &&
                read(fd, record, sizeof(*record)) == (ssize_t)sizeof(*record) &&
                read(fd, &more, 1) == 0;
    (void)close(fd);
    return good;
}

bool tw_topo_cache_read(const char *directory, uint64_t key, uint64_t now_ns,
                        struct tw_topo_measured *measured)
{
    char name[40];
    struct record record;
    int folder = folder_open(directory);
    if (folder < 0)
        return false;
    file_name(key, name);
    bool got = record_read(folder, name, &record);
    (void)close(folder);
    return got && memcmp(record.magic, MAGIC, sizeof(record.magic)) == 0 &&
           record.version == TWILL_VERSION && record.key == key &&
           record.hash == tw_hash64(&record, offsetof(struct record, hash)) &&
           record.made_ns <= now_ns && now_ns - record.made_ns < AGE_NS_MOST &&
           !tw_failed(tw_topo_measured_unpack(measured, record.measured));
}

/* ---- writing -------------------------------------------------------------------------------- */

bool tw_topo_cache_write(const char *directory, uint64_t key, uint64_t now_ns,
                         const struct tw_topo_measured *measured)
{
    char name[40], fresh[64];
    uint64_t random;
    struct record record = {
        .magic = MAGIC, .version = TWILL_VERSION, .key = key, .made_ns = now_ns};
    tw_topo_measured_pack(measured, record.measured);
    record.hash = tw_hash64(&record, offsetof(struct record, hash));
    int folder = folder_open(directory);
    if (folder < 0)
        return false;
    /* whole or not at all: written under a name of its own, then renamed */
    tw_random(&random, sizeof(random));
    file_name(key, name);
    (void)snprintf(fresh, sizeof(fresh), "new-%016llx", (unsigned long long)random);
    int fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool kept = fd >= 0 && write(fd, &record, sizeof(record)) == (ssize_t)sizeof(record);
    if (fd >= 0)
        kept = close(fd) == 0 && kept;
    kept = kept && renameat(folder, fresh, folder, name) == 0;
    if (!kept && fd >= 0)
        (void)unlinkat(folder, fresh, 0);
    (void)close(folder);
    return kept;
}

/* ---- both ----------------------------------------------------------------------------------- */

enum twill_status tw_topo_cache_key(const struct tw_topo_machine *machine, uint64_t *key)
{
    struct tw_host host;
    enum twill_status status = tw_host_get(NULL, &host);
    if (tw_failed(status))
        return status;
    uint64_t word[8] = {
        TWILL_VERSION, machine->l1d_bytes, machine->l2_bytes, machine->l3_bytes, 0, 0};
    memcpy(&word[4], host.id, sizeof(host.id));
    uint64_t all = tw_hash64(word, sizeof(word));
    for (uint32_t i = 0; i < machine->nnodes; i++) {
        if (machine->nodes[i].kind != TW_NODE_PU)
            continue;
        uint64_t chain[2] = {all, machine->nodes[i].os_index};
        all = tw_hash64(chain, sizeof(chain));
    }
    *key = all;
    return TWILL_OK;
}

static uint64_t boottime_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * TW_NS_S + (uint64_t)now.tv_nsec;
}

enum twill_status tw_topo_measure(const struct tw_topo_machine *machine, uint64_t budget_ns,
                                  struct tw_topo_measured *measured)
{
    char directory[PATH_MAX];
    uint64_t key = 0;
    bool complete = false;
    bool cached = tw_host_runtime_dir(directory, sizeof(directory)) &&
                  !tw_failed(tw_topo_cache_key(machine, &key));
    if (cached && tw_topo_cache_read(directory, key, boottime_ns(), measured)) {
        tw_debug(TW_SUB_TOPO, "measurements of this boot found in %s/" FOLDER, directory);
        return TWILL_OK;
    }
    enum twill_status status = tw_topo_probe(machine, budget_ns, measured, &complete);
    if (!tw_failed(status) && complete && cached &&
        !tw_topo_cache_write(directory, key, boottime_ns(), measured))
        tw_debug(TW_SUB_TOPO, "measurements were not kept in %s/" FOLDER, directory);
    return status;
}
