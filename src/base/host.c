/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: this host and process by name. Never knows: the others. */
#include "config.h"

#include "base/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

/* Reads a short text file, without its newline. @return false when it cannot be read */
static bool text_read(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = 0;

    if (fd < 0)
        return false;
    while (used < bytes - 1) {
        got = read(fd, text + used, bytes - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    (void)close(fd);
    text[used] = '\0';
    while (used > 0 && text[used - 1] == '\n')
        text[--used] = '\0';
    return got >= 0;
}

enum twill_status tw_host_get(const char *hostid_override, struct tw_host *host)
{
    char boot_id[64];
    const char *source = hostid_override;
    char name[HOST_NAME_MAX + 1] = "";

    if (source == NULL || source[0] == '\0') {
        if (!text_read(BOOT_ID_PATH, boot_id, sizeof(boot_id)) || boot_id[0] == '\0')
            return tw_fail(TWILL_ERR_SYSTEM, "this host's identity: " BOOT_ID_PATH
                                             " cannot be read; set TWILL_HOSTID");
        source = boot_id;
    }
    if (gethostname(name, sizeof(name)) != 0 || name[0] == '\0')
        (void)snprintf(name, sizeof(name), "unnamed");
    name[sizeof(name) - 1] = '\0';
    (void)crypto_generichash(host->id, sizeof(host->id), (const unsigned char *)source,
                             strlen(source), NULL, 0);
    size_t length = strnlen(name, sizeof(host->name) - 1);
    memcpy(host->name, name, length);
    host->name[length] = '\0';
    return TWILL_OK;
}

/* An absolute path that a variable names. */
static bool folder_of(const char *variable, char *path, size_t bytes)
{
    const char *directory = secure_getenv(variable);
    if (directory == NULL || directory[0] != '/' || strlen(directory) >= bytes)
        return false;
    memcpy(path, directory, strlen(directory) + 1);
    return true;
}

bool tw_host_runtime_dir(char *path, size_t bytes)
{
    return folder_of("XDG_RUNTIME_DIR", path, bytes);
}

void tw_host_temp_dir(char *path, size_t bytes)
{
    if (!folder_of("TMPDIR", path, bytes))
        (void)snprintf(path, bytes, "/tmp");
}

static int quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    long long cpus = quota / period + (quota % period != 0);
    return cpus > INT_MAX ? 0 : (int)cpus;
}

/* A version 2 group's limit from cpu.max, "max 100000" or "150000 100000"; a version 1 group's from
 * cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us. */
static int group_limit(const char *directory)
{
    char path[PATH_MAX + 32];
    char text[64];
    char period_text[64];
    char *rest = NULL;

    (void)snprintf(path, sizeof(path), "%s/cpu.max", directory);
    if (text_read(path, text, sizeof(text))) {
        long long quota = strtoll(text, &rest, 10);
        return rest == text ? 0 : quota_cpus(quota, strtoll(rest, NULL, 10));
    }
    (void)snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", directory);
    if (!text_read(path, text, sizeof(text)))
        return 0;
    (void)snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", directory);
    if (!text_read(path, period_text, sizeof(period_text)))
        return 0;
    return quota_cpus(strtoll(text, NULL, 10), strtoll(period_text, NULL, 10));
}

int tw_host_cgroup_cpus(const char *mount, const char *group)
{
    char directory[PATH_MAX];
    int least = 0;

    if (snprintf(directory, sizeof(directory) - 32, "%s%s", mount, group) >=
        (int)sizeof(directory) - 32)
        return 0;
    for (;;) {
        int limit = group_limit(directory);
        if (limit > 0 && (least == 0 || limit < least))
            least = limit;
        char *slash = strrchr(directory, '/');
        if (slash == NULL || (size_t)(slash - directory) < strlen(mount))
            return least;
        *slash = '\0';
    }
}

/* This process's group among the lines "id:controllers:group" of /proc/self/cgroup: the unified one
 * (no controllers), or version 1's with the controller cpu. */
int tw_host_cpu_quota(void)
{
    char text[4096];
    char *save = NULL;
    int least = 0;

    if (!text_read("/proc/self/cgroup", text, sizeof(text)))
        return 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        controllers++;
        int limit = 0;
        if (controllers[0] == '\0')
            limit = tw_host_cgroup_cpus("/sys/fs/cgroup", group);
        else if (strcmp(controllers, "cpu") == 0 || strstr(controllers, "cpu,") == controllers)
            limit = tw_host_cgroup_cpus("/sys/fs/cgroup/cpu", group);
        if (limit > 0 && (least == 0 || limit < least))
            least = limit;
    }
    return least;
}

uint64_t tw_hash64(const void *data, size_t bytes)
{
    static const unsigned char key[crypto_shorthash_KEYBYTES] = "twill hash64 k1";
    unsigned char out[crypto_shorthash_BYTES];
    uint64_t hash = 0;

    (void)crypto_shorthash(out, data, bytes, key);
    for (size_t i = sizeof(out); i-- > 0;)
        hash = hash << 8 | out[i];
    return hash;
}

void tw_random(void *data, size_t bytes)
{
    unsigned char *at = data;

    while (bytes > 0) {
        ssize_t got = getrandom(at, bytes, 0);
        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
        } else if (got < 0 && errno != EINTR) {
            /* keys and nonces come from here: going on without randomness is never right */
            tw_log_write(TW_SUB_BASE, TW_LOG_ERROR, "getrandom failed: %s", strerror(errno));
            abort();
        }
    }
}
