/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how twill-run and twill-perf are started so that they measure one algorithm.
 * Never knows: what is done with the figures. */
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

#define PATH_BYTES 4096
#define ALGO_BYTES 512
#define SHORT_BYTES ((uint64_t)64 << 10) /* sizes up to here are timed over more calls */
#define FACTOR "4"
#define FOLDER_NAME "/twill-tune-XXXXXX"

struct programs {
    char run[PATH_BYTES], perf[PATH_BYTES];
};
/* Calls of sizes in a range. */
struct part {
    uint64_t least, most;
    const char *calls;
};

/* ---- programs ------------------------------------------------------------------------------- */

/* Beside this program, else by name: PATH decides. */
static void program_find(const char *given, const char *name, char path[PATH_BYTES])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    if (given) {
        snprintf(path, PATH_BYTES, "%s", given);
        return;
    }
    if (length > 0) {
        path[length] = '\0';
        char *base = strrchr(path, '/');
        size_t room = base ? PATH_BYTES - (size_t)(base + 1 - path) : 0;
        if (base && strlen(name) < room) {
            snprintf(base + 1, room, "%s", name);
            if (access(path, X_OK) == 0)
                return;
        }
    }
    snprintf(path, PATH_BYTES, "%s", name);
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
static _Noreturn void child_exec(char *const argv[], pid_t parent)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
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

static enum twill_status program_run(char *const argv[])
{
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "cannot start %s", argv[0]);
    if (child == 0)
        child_exec(argv, parent);
    return program_wait(child, argv[0]);
}

/* ---- one sweep ------------------------------------------------------------------------------ */

/* TWILL_ALGO's value that forces an algorithm on all collectives that it serves, and their names.
 */
static int colls_of(const struct tw_algo *algo, char value[ALGO_BYTES], char *names[TW_COLL_COUNT])
{
    int count = 0;
    size_t used = (size_t)snprintf(value, ALGO_BYTES, "TWILL_ALGO=");
    for (int c = 0; c < TW_COLL_COUNT; c++) {
        const char *name = tw_coll_name((enum tw_coll)c);
        if (!(algo->colls >> c & 1))
            continue;
        used += (size_t)snprintf(value + used, ALGO_BYTES - used, "%s%s=%s", count ? "," : "", name,
                                 algo->name);
        names[count++] = (char *)(uintptr_t)name; /* argv is never written */
    }
    return count;
}

static enum twill_status sweep_run(const struct programs *programs, const struct tw_algo *algo,
                                   int nranks, const struct part *part, const char *csv)
{
    char value[ALGO_BYTES], ranks[16], least[24], most[24];
    char *names[TW_COLL_COUNT], *argv[TW_COLL_COUNT + 32];
    int count = colls_of(algo, value, names), n = 0;
    snprintf(ranks, sizeof(ranks), "%d", nranks);
    snprintf(least, sizeof(least), "%llu", (unsigned long long)part->least);
    snprintf(most, sizeof(most), "%llu", (unsigned long long)part->most);
    const char *const head[] = {programs->run, "-n",  ranks, "--bind", "core",
                                "--timeout",   "120", "-x",  value,    programs->perf};
    for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
        argv[n++] = (char *)(uintptr_t)head[i];
    for (int i = 0; i < count; i++)
        argv[n++] = names[i];
    const char *const tail[] = {"-b",        least, "-e", most, "-f", FACTOR,  "-n",
                                part->calls, "-w",  "5",  "-c", "0",  "--csv", csv};
    for (size_t i = 0; i < sizeof(tail) / sizeof(tail[0]); i++)
        argv[n++] = (char *)(uintptr_t)tail[i];
    argv[n] = NULL;
    return count ? program_run(argv) : TWILL_OK;
}

static enum twill_status algo_measure(const struct tune_options *options,
                                      const struct programs *programs, const struct tw_algo *algo,
                                      int nranks, const char *csv, struct sim_samples *samples)
{
    const struct part parts[] = {
        {8, options->max_bytes < SHORT_BYTES ? options->max_bytes : SHORT_BYTES, "300"},
        {4 * SHORT_BYTES, options->max_bytes, "10"},
    };
    enum twill_status status = TWILL_OK;
    size_t skipped = 0;
    for (int p = 0; p < 2 && !tw_failed(status); p++) {
        if (parts[p].least > parts[p].most)
            continue;
        status = sweep_run(programs, algo, nranks, &parts[p], csv);
        if (!tw_failed(status))
            status = sim_samples_read(samples, csv, nranks, options->column, &skipped);
    }
    return status;
}

static enum twill_status round_measure(const struct tune_options *options,
                                       const struct programs *programs, int round, const char *csv,
                                       struct sim_samples *samples)
{
    enum twill_status status = TWILL_OK;
    const struct tw_algo *algo;
    for (int r = 0; r < options->nnranks; r++) {
        for (size_t i = 0; !tw_failed(status) && (algo = tw_algo_at(i)) != NULL; i++) {
            if (options->algo && strcmp(options->algo, algo->name) != 0)
                continue;
            if (!options->quiet)
                fprintf(stderr, "twill-tune: round %d of %d, %d ranks, %s\n", round + 1,
                        options->rounds, options->nranks[r], algo->name);
            status = algo_measure(options, programs, algo, options->nranks[r], csv, samples);
        }
    }
    return status;
}

enum twill_status tune_measure(const struct tune_options *options, struct sim_samples *samples)
{
    struct programs programs;
    char folder[PATH_BYTES], csv[PATH_BYTES + 16];
    tw_host_temp_dir(folder, sizeof(folder) - sizeof(FOLDER_NAME));
    memcpy(folder + strlen(folder), FOLDER_NAME, sizeof(FOLDER_NAME));
    program_find(options->run, "twill-run", programs.run);
    program_find(options->perf, "twill-perf", programs.perf);
    if (!mkdtemp(folder))
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "cannot make a folder %s", folder);
    snprintf(csv, sizeof(csv), "%s/sweep.csv", folder);
    const struct sigaction catch = {.sa_handler = on_signal};
    sigaction(SIGINT, &catch, NULL);
    sigaction(SIGTERM, &catch, NULL);
    sigaction(SIGHUP, &catch, NULL);
    enum twill_status status = TWILL_OK;
    for (int round = 0; round < options->rounds && !tw_failed(status); round++)
        status = round_measure(options, &programs, round, csv, samples);
    unlink(csv);
    rmdir(folder);
    return status;
}
