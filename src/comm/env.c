/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what launchers put into the environment, and where a job's ranks meet by it.
 * Never knows: what happens at the meeting point. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/time.h"
#include "comm/meeting.h"

/* The environment of a process, read for one init. */
struct env {
    int rank, size, local_size; /* local_size -1: not told */
    bool found;
    char place[1024]; /* names the job: equal on all its ranks */
    const char *launcher;
    const char *leader; /* the host of rank 0, as the launcher says; NULL: it does not */
};

/* The job's key can be read from an inherited descriptor only once, and every init of a process
 * needs it; and inits are told apart by counting them. */
static struct {
    pthread_mutex_t lock;
    bool read;
    uint8_t key[TW_KEY_BYTES];
    uint64_t inits;
} job = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the key -----------------------------------------------------------------------------------
 */

/* 32 bytes as they are, or as 64 hexadecimal digits with or without a newline. */
static bool key_parse(const char *text, size_t bytes, uint8_t key[TW_KEY_BYTES])
{
    size_t got = 0;

    if (bytes == TW_KEY_BYTES) {
        memcpy(key, text, TW_KEY_BYTES);
        return true;
    }
    while (bytes > 2 * (size_t)TW_KEY_BYTES && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r'))
        bytes--;
    return bytes == 2 * (size_t)TW_KEY_BYTES &&
           sodium_hex2bin(key, TW_KEY_BYTES, text, bytes, NULL, &got, NULL) == 0 &&
           got == TW_KEY_BYTES;
}

/* A descriptor that several processes have inherited shares its offset where it is a file. */
static ssize_t fd_read(int fd, char *text, size_t bytes)
{
    size_t used = 0;
    bool seekable = lseek(fd, 0, SEEK_CUR) >= 0;

    while (used < bytes) {
        ssize_t got = seekable ? pread(fd, text + used, bytes - used, (off_t)used)
                               : read(fd, text + used, bytes - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    return (ssize_t)used;
}

static enum twill_status key_read(int fd, const char *where, uint8_t key[TW_KEY_BYTES])
{
    char text[2 * TW_KEY_BYTES + 3];
    ssize_t bytes = fd_read(fd, text, sizeof(text));
    enum twill_status status = TWILL_OK;

    if (bytes < 0)
        status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "%s: the job's key cannot be read", where);
    else if (!key_parse(text, (size_t)bytes, key))
        status = tw_fail(TWILL_ERR_INVALID,
                         "%s: expected 32 bytes or 64 hexadecimal digits as the job's key, found "
                         "%s%zd bytes",
                         where, (size_t)bytes == sizeof(text) ? "more than " : "", bytes);
    sodium_memzero(text, sizeof(text));
    return status;
}

static enum twill_status key_from_fd(int fd, uint8_t key[TW_KEY_BYTES])
{
    char where[32];

    if (job.read) {
        memcpy(key, job.key, sizeof(job.key));
        return TWILL_OK;
    }
    (void)snprintf(where, sizeof(where), "TWILL_KEY_FD=%d", fd);
    enum twill_status status = key_read(fd, where, key);
    if (status != TWILL_OK)
        return status;
    job.read = true;
    memcpy(job.key, key, sizeof(job.key));
    (void)close(fd); /* programs that this one starts do not get it */
    return TWILL_OK;
}

/* A key that others may read proves nothing. The group of a file that somebody else has made for
 * this user (root, for a container's secrets) is its owner's affair. */
static enum twill_status key_file_check(int fd, const char *where)
{
    struct stat stat;

    if (fstat(fd, &stat) != 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "%s: fstat failed", where);
    mode_t others = stat.st_uid == geteuid() ? S_IRWXG | S_IRWXO : S_IRWXO;
    if ((stat.st_mode & others) == 0)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_AUTH,
                   "%s: other users may open the job's key (mode %03o): chmod 600 it", where,
                   (unsigned)stat.st_mode & 0777u);
}

static enum twill_status key_from_file(const char *path, uint8_t key[TW_KEY_BYTES])
{
    char where[TW_PARAM_STRING_BYTES + 32];
    int fd = tw_file_open(path);

    if (fd < 0)
        return tw_fail_errno(TWILL_ERR_INVALID, errno, "TWILL_KEY_FILE=\"%s\" does not open", path);
    (void)snprintf(where, sizeof(where), "TWILL_KEY_FILE=\"%s\"", path);
    enum twill_status status = key_file_check(fd, where);
    if (status == TWILL_OK)
        status = key_read(fd, where, key);
    (void)close(fd);
    return status;
}

/* @param keyless  out: there is no key */
static enum twill_status key_get(const struct tw_params *params, uint8_t key[TW_KEY_BYTES],
                                 bool *keyless)
{
    *keyless = false;
    if (params->key_fd < -1 || params->key_fd > INT32_MAX)
        return tw_fail(TWILL_ERR_INVALID, "TWILL_KEY_FD=%lld is no descriptor",
                       (long long)params->key_fd);
    if (params->key_fd >= 0)
        return key_from_fd((int)params->key_fd, key);
    if (params->key_file[0] != '\0')
        return key_from_file(params->key_file, key);
    *keyless = true;
    return TWILL_OK;
}

/* ---- launchers ---------------------------------------------------------------------------------
 */

static enum twill_status one_missing(const char *have, const char *lack)
{
    return tw_fail(TWILL_ERR_INVALID, "%s is set, but %s is not: the launcher must set both", have,
                   lack);
}

static enum twill_status env_twill(const struct tw_params *params, struct env *env)
{
    if (params->rank < -1 || params->size < -1)
        return tw_fail(TWILL_ERR_INVALID, "TWILL_RANK=%lld of TWILL_SIZE=%lld does not exist",
                       (long long)params->rank, (long long)params->size);
    if (params->rank < 0 && params->size < 0)
        return TWILL_OK;
    if (params->rank < 0)
        return one_missing("TWILL_SIZE", "TWILL_RANK");
    if (params->size < 0)
        return one_missing("TWILL_RANK", "TWILL_SIZE");
    if (params->size > INT32_MAX || params->rank > INT32_MAX)
        return tw_fail(TWILL_ERR_INVALID, "TWILL_RANK=%lld of TWILL_SIZE=%lld is beyond all ranks",
                       (long long)params->rank, (long long)params->size);
    env->found = true;
    env->launcher = "TWILL_RANK and TWILL_SIZE";
    env->rank = (int)params->rank;
    env->size = (int)params->size;
    if (env->size > 1 && strncmp(params->rendezvous, "unix:", 5) != 0)
        return tw_fail(TWILL_ERR_INVALID,
                       "TWILL_RENDEZVOUS=\"%s\": expected unix:NAME or unix:NAME@HOST, where "
                       "the ranks meet",
                       params->rendezvous);
    (void)snprintf(env->place, sizeof(env->place), "twill|%s", params->rendezvous);
    const char *host = strrchr(params->rendezvous, '@');
    if (host != NULL && host[1] != '\0')
        env->leader = host + 1;
    return TWILL_OK;
}

/* A launcher's variables, by what they mean. */
struct names {
    const char *launcher;
    enum tw_launcher_var rank, size, local_size;
    enum tw_launcher_var place[4]; /* name the job; TW_LAUNCHER_COUNT: no more */
    int places_least;              /* of these must be set */
};

static const struct names launchers[] = {
    {.launcher = "torchrun",
     .rank = TW_LAUNCHER_TORCH_RANK,
     .size = TW_LAUNCHER_TORCH_SIZE,
     .local_size = TW_LAUNCHER_TORCH_LOCAL_SIZE,
     .place = {TW_LAUNCHER_TORCH_ADDR, TW_LAUNCHER_TORCH_PORT, TW_LAUNCHER_TORCH_RUN_ID,
               TW_LAUNCHER_TORCH_RESTART},
     .places_least = 2},
    {.launcher = "Open MPI",
     .rank = TW_LAUNCHER_OMPI_RANK,
     .size = TW_LAUNCHER_OMPI_SIZE,
     .local_size = TW_LAUNCHER_OMPI_LOCAL_SIZE,
     .place = {TW_LAUNCHER_OMPI_JOB, TW_LAUNCHER_PMIX_JOB, TW_LAUNCHER_COUNT, TW_LAUNCHER_COUNT}},
    {.launcher = "PMI",
     .rank = TW_LAUNCHER_PMI_RANK,
     .size = TW_LAUNCHER_PMI_SIZE,
     .local_size = TW_LAUNCHER_PMI_LOCAL_SIZE,
     .place = {TW_LAUNCHER_PMI_JOB, TW_LAUNCHER_COUNT, TW_LAUNCHER_COUNT, TW_LAUNCHER_COUNT}},
};

static enum twill_status place_fill(const struct names *names, struct env *env)
{
    int used = snprintf(env->place, sizeof(env->place), "%s", names->launcher);
    int have = 0;

    for (int i = 0; i < 4 && names->place[i] != TW_LAUNCHER_COUNT; i++) {
        const char *text = tw_launcher_text(names->place[i]);
        if (text == NULL && i < names->places_least)
            return one_missing(tw_launcher_name(names->rank), tw_launcher_name(names->place[i]));
        have += text != NULL;
        used += snprintf(env->place + used, sizeof(env->place) - (size_t)used, "|%.200s",
                         text != NULL ? text : "");
    }
    /* Ranks whose launcher names no job are children of one daemon of it. */
    if (have == 0)
        (void)snprintf(env->place + used, sizeof(env->place) - (size_t)used, "|parent %d",
                       (int)getppid());
    return TWILL_OK;
}

static enum twill_status env_launcher(const struct names *names, struct env *env)
{
    const char *rank = tw_launcher_text(names->rank);
    const char *size = tw_launcher_text(names->size);

    if (rank == NULL || size == NULL) {
        /* RANK alone may be anybody's variable */
        return TWILL_OK;
    }
    env->found = true;
    env->launcher = names->launcher;
    enum twill_status status = tw_launcher_int(names->rank, &env->rank);
    if (status == TWILL_OK)
        status = tw_launcher_int(names->size, &env->size);
    if (status == TWILL_OK)
        status = tw_launcher_int(names->local_size, &env->local_size);
    if (status == TWILL_OK && env->size > 1)
        status = place_fill(names, env);
    if (names->rank == TW_LAUNCHER_TORCH_RANK)
        env->leader = tw_launcher_text(TW_LAUNCHER_TORCH_ADDR);
    return status;
}

/* Ranks on several hosts would wait for each other in vain. How many are here says it for sure; if
 * the launcher does not say that, those who are not where rank 0 is know it. */
static enum twill_status hosts_check(const struct tw_host *host, const struct env *env)
{
    if (env->size == 1 || env->local_size == env->size)
        return TWILL_OK;
    if (env->local_size >= 0) {
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "%s: %d of the job's %d ranks are on this host, %s%s%.80s: this build "
                       "connects ranks of one host",
                       env->launcher, env->local_size, env->size, host->name,
                       env->leader != NULL ? "; rank 0 is on " : "",
                       env->leader != NULL ? env->leader : "");
    }
    if (env->leader == NULL || tw_host_here(env->leader) != TW_HERE_NO)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_UNSUPPORTED,
                   "%s: rank 0 is on host %.80s, rank %d on host %s: this build connects ranks of "
                   "one host",
                   env->launcher, env->leader, env->rank, host->name);
}

static enum twill_status env_read(const struct tw_proc *proc, struct env *env)
{
    const struct tw_params *params = proc->params;
    enum twill_status status = env_twill(params, env);

    for (size_t i = 0;
         status == TWILL_OK && !env->found && i < sizeof(launchers) / sizeof(*launchers); i++)
        status = env_launcher(&launchers[i], env);
    if (status != TWILL_OK || !env->found)
        return status;
    if (env->size < 1 || env->size > TW_PLAN_RANKS_MAX || env->rank < 0 || env->rank >= env->size)
        return tw_fail(TWILL_ERR_INVALID, "%s: rank %d of %d ranks does not exist", env->launcher,
                       env->rank, env->size);
    return hosts_check(&proc->host, env);
}

/* ---- the meeting point -------------------------------------------------------------------------
 */

/* Name of the abstract socket of this process's n-th init in the job: nothing of it is secret, and
 * nothing of it is the launcher's. */
static void meet_name(const struct env *env, uint64_t n, char name[TW_ID_MEET_BYTES])
{
    char text[1200];

    (void)snprintf(text, sizeof(text), "%s|user %u|size %d|init %llu", env->place,
                   (unsigned)geteuid(), env->size, (unsigned long long)n);
    (void)snprintf(name, TW_ID_MEET_BYTES, "twill-%016llx",
                   (unsigned long long)tw_hash64(text, strlen(text)));
}

static enum twill_status keyless_check(const struct tw_params *params, const struct env *env)
{
    if (params->require_key)
        return tw_fail(TWILL_ERR_AUTH,
                       "%s gave no key and TWILL_REQUIRE_KEY=1: start by twill-run or set "
                       "TWILL_KEY_FILE",
                       env->launcher);
    if (job.inits == 0)
        tw_warn(TW_SUB_COMM,
                "unauthenticated first contact: %s gave no key (TWILL_KEY_FILE), so any process of "
                "user %u on this host could pose as a rank",
                env->launcher, (unsigned)geteuid());
    return TWILL_OK;
}

static enum twill_status args_fill(const struct tw_proc *proc, struct tw_comm_args *args)
{
    struct env env = {.local_size = -1, .size = 1, .launcher = "this process"};
    uint8_t key[TW_KEY_BYTES] = {0};
    char meet[TW_SOCK_NAME_BYTES] = "";
    bool keyless = false;
    enum twill_status status = env_read(proc, &env);

    if (status == TWILL_OK && env.size > 1)
        status = key_get(proc->params, key, &keyless);
    if (status == TWILL_OK && keyless)
        status = keyless_check(proc->params, &env);
    if (status != TWILL_OK)
        return status;
    if (env.size == 1)
        tw_random(key, sizeof(key));
    else
        meet_name(&env, job.inits, meet);
    job.inits++;
    args->rank = env.rank;
    args->size = env.size;
    args->keyless = keyless;
    args->from_env = true;
    args->own_id = env.rank == 0;
    if (env.rank == 0)
        status = tw_meeting_open(meet, key, keyless, proc->params->init_timeout_ns, meet);
    if (status == TWILL_OK)
        status = tw_id_fill(&proc->host, key, meet, &args->id);
    sodium_memzero(key, sizeof(key));
    return status;
}

enum twill_status tw_env_args(struct tw_comm_args *args)
{
    struct tw_proc *proc = NULL;
    enum twill_status status = tw_proc_get(&proc);

    if (status != TWILL_OK)
        return status;
    (void)pthread_mutex_lock(&job.lock);
    status = args_fill(proc, args);
    (void)pthread_mutex_unlock(&job.lock);
    tw_proc_put();
    return status;
}
