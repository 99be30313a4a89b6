/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how programs are found, started, and ended with this one. Never knows: which they are. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host.h"
#include "base/status.h"
#include "tune.h"

#define FOLDER_NAME "/twill-tune-XXXXXX"

void tune_program_find(const char *given, const char *name, char path[TUNE_PATH_BYTES])
{
    ssize_t length = readlink("/proc/self/exe", path, TUNE_PATH_BYTES - 1);
    if (given) {
        snprintf(path, TUNE_PATH_BYTES, "%s", given);
        return;
    }
    if (length > 0) {
        path[length] = '\0';
        char *base = strrchr(path, '/');
        size_t room = base ? TUNE_PATH_BYTES - (size_t)(base + 1 - path) : 0;
        if (base && strlen(name) < room) {
            snprintf(base + 1, room, "%s", name);
            if (access(path, X_OK) == 0)
                return;
        }
    }
    snprintf(path, TUNE_PATH_BYTES, "%s", name);
}

static volatile sig_atomic_t stopped; /* the signal that asked this program to end */
static volatile sig_atomic_t running; /* the child; 0: none */

static void on_signal(int signal)
{
    stopped = signal;
    if (running)
        kill(running, SIGTERM);
}

/* The child ends with this program; its figures come by file, so its table goes nowhere. */
static _Noreturn void child_exec(char *const argv[], char *const variables[], pid_t parent)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int i = 0; variables && variables[i]; i++)
        putenv(variables[i]);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (nowhere >= 0 && dup2(nowhere, 1) >= 0 && getppid() == parent)
        execvp(argv[0], argv);
    fprintf(stderr, "twill-tune: cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static enum twill_status program_wait(pid_t child, const char *name)
{
    int state = 0;
    running = child;
    if (stopped) /* before the handler could know of it */
        kill(child, SIGTERM);
    while (waitpid(child, &state, 0) < 0) {
        if (errno != EINTR)
            return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "cannot wait for %s", name);
    }
    running = 0;
    if (stopped)
        return tw_fail(TWILL_ERR_SYSTEM, "ended by signal %d", (int)stopped);
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_SYSTEM, "%s %s %d", name,
                   WIFEXITED(state) ? "ended with status" : "was ended by signal",
                   WIFEXITED(state) ? WEXITSTATUS(state) : WTERMSIG(state));
}

enum twill_status tune_program_run(char *const argv[], char *const variables[])
{
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "cannot start %s", argv[0]);
    if (child == 0)
        child_exec(argv, variables, parent);
    return program_wait(child, argv[0]);
}

enum twill_status tune_folder_make(char folder[TUNE_PATH_BYTES])
{
    const struct sigaction catch = {.sa_handler = on_signal};
    tw_host_temp_dir(folder, TUNE_PATH_BYTES - sizeof(FOLDER_NAME));
    memcpy(folder + strlen(folder), FOLDER_NAME, sizeof(FOLDER_NAME));
    if (!mkdtemp(folder))
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "cannot make a folder %s", folder);
    sigaction(SIGINT, &catch, NULL);
    sigaction(SIGTERM, &catch, NULL);
    sigaction(SIGHUP, &catch, NULL);
    return TWILL_OK;
}
