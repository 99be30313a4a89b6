/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how one rank is started: descriptors, environment, binding, key.
 * Never knows: the other ranks. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "topo/topo.h"

/* What a child tells of a start that failed. */
struct failure {
    int error;
    int step;
};
enum { STEP_BIND, STEP_SET_UP, STEP_EXEC };
static const char *const step_names[] = {"bind", "set up", "run"};

/* The key in sealed memory: each rank has its own offset and may read it again. */
static int key_fd_create(const unsigned char key[32])
{
    int fd = memfd_create("twill-key", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (write(fd, key, 32) != 32 || lseek(fd, 0, SEEK_SET) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    return setenv(name, text, 1) == 0;
}

static bool set_environment(const struct run_job *job, int rank, int key_fd)
{
    const struct run_options *options = job->options;
    for (int i = 0; i < options->set_count; i++)
        if (putenv(options->sets[i]) != 0)
            return false;
    return set_number("TWILL_RANK", rank) && set_number("TWILL_SIZE", options->ranks) &&
           set_number("TWILL_LOCAL_RANK", rank) && set_number("TWILL_KEY_FD", key_fd) &&
           setenv("TWILL_RENDEZVOUS", job->rendezvous, 1) == 0;
}

static bool set_descriptors(const struct run_job *job, int rank, const int pipes[2], int key_fd)
{
    if (!(rank == 0 && job->stdin_rank) && dup2(job->null_fd, 0) < 0)
        return false;
    for (int stream = 1; stream <= 2; stream++)
        if (pipes[stream - 1] >= 0 && dup2(pipes[stream - 1], stream) < 0)
            return false;
    return fcntl(key_fd, F_SETFD, 0) == 0;
}

static bool bind_rank(const struct run_job *job, int rank)
{
    if (!job->topo)
        return true;
    enum tw_topo_unit unit = job->options->bind == RUN_BIND_NUMA ? TW_TOPO_NUMA : TW_TOPO_CORE;
    int count = tw_topo_count(job->topo, unit);
    int index =
        unit == TW_TOPO_CORE ? rank % count : (int)((long)rank * count / job->options->ranks);
    return tw_topo_bind(job->topo, unit, index) == TWILL_OK;
}

static void child(const struct run_job *job, int rank, const int pipes[2], pid_t keeper,
                  int report_fd)
{
    struct failure failure = {.step = STEP_SET_UP};
    int key_fd = -1;
    setpgid(0, 0);
    /* dies with the keeper, whatever ends that; the second line closes the race before the first */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(RUN_EXIT_SYSTEM);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGTTOU, SIG_DFL);
    key_fd = key_fd_create(job->key);
    if (key_fd >= 0 && set_descriptors(job, rank, pipes, key_fd) &&
        set_environment(job, rank, key_fd)) {
        failure.step = STEP_BIND;
        errno = EINVAL;
        if (bind_rank(job, rank)) {
            failure.step = STEP_EXEC;
            sigprocmask(SIG_SETMASK, job->mask, NULL);
            execvp(job->options->command[0], job->options->command);
        }
    }
    failure.error = errno;
    if (write(report_fd, &failure, sizeof(failure)) < 0)
        _exit(RUN_EXIT_SYSTEM);
    _exit(127);
}

int run_spawn(const struct run_job *job, int rank, const int pipes[2], pid_t *pid,
              const char **what)
{
    int report[2];
    *what = "start";
    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    pid_t keeper = getpid();
    pid_t started = fork();
    if (started == 0)
        child(job, rank, pipes, keeper, report[1]);
    int error = errno;
    close(report[1]);
    if (started < 0) {
        close(report[0]);
        return error;
    }
    setpgid(started, started); /* the child does the same: whoever comes first */
    struct failure failure = {0};
    ssize_t bytes;
    do
        bytes = read(report[0], &failure, sizeof(failure));
    while (bytes < 0 && errno == EINTR);
    close(report[0]);
    if (bytes != (ssize_t)sizeof(failure)) { /* closed by exec */
        *pid = started;
        return 0;
    }
    waitpid(started, NULL, 0);
    *what = step_names[failure.step];
    return failure.error ? failure.error : EINVAL;
}
