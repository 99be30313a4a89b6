/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: this host and process by name. Never knows: the others. */
#ifndef TW_BASE_HOST_H
#define TW_BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "twill.h"

#define TW_HOST_NAME_BYTES 48

struct tw_host {
    uint8_t id[16];                /* hash of TWILL_HOSTID, or of the boot id */
    char name[TW_HOST_NAME_BYTES]; /* for people; cut to fit, always terminated */
};
enum twill_status tw_host_get(const char *hostid_override, struct tw_host *host);

/** The user's folder for files of this boot (XDG_RUNTIME_DIR), an absolute path that still has to
 * be checked. @return false: not set, relative, longer than bytes, or of a program that runs with
 * more rights than its caller */
bool tw_host_runtime_dir(char *path, size_t bytes);

/** The folder for files of this run: TMPDIR, if that is an absolute path that fits and the program
 * has no more rights than its caller; else /tmp. @param bytes  at least 5 */
void tw_host_temp_dir(char *path, size_t bytes);

/** How many CPUs this process's cgroup lets it use, rounded up; 0: no limit. */
int tw_host_cpu_quota(void);

enum tw_here { TW_HERE_UNKNOWN, TW_HERE_YES, TW_HERE_NO };
/** Is it a name or an address of this host? A name that is not this host's own is looked up, which
 * may take as long as the resolver lets it; UNKNOWN when it is not found. (address.c) */
enum tw_here tw_host_here(const char *address);

/** CPUs that a cgroup and those above it may use together, rounded up; 0: no limit. mount: where
 * the hierarchy is mounted; group: "/a/b", or "/". */
int tw_host_cgroup_cpus(const char *mount, const char *group);

/** 64-bit hash of bytes (libsodium shorthash with a fixed key; not secret). */
uint64_t tw_hash64(const void *data, size_t bytes);

/** Random bytes from the kernel. */
void tw_random(void *data, size_t bytes);

#endif
