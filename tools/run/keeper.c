/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the ranks from start to end: who failed, who still runs, what to do about it.
 * Never knows: how a rank is started or its output tagged. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "run.h"
#include "topo/topo.h"

#define NEVER UINT64_MAX

/* How far the end of the job has come. */
enum stage { RUNNING, FAILED, TERMINATING, KILLED };

struct keeper {
    const struct run_options *options;
    struct run_output *output; /* owned */
    struct pollfd *poll_set;   /* owned */
    pid_t *pids;               /* owned; a rank's process and process group */
    bool *alive;               /* owned */
    int alive_count;
    int *end_status; /* owned; of those that ended */
    int *ended;      /* owned; ranks of the newest batch of ends, in order */
    int ended_count;
    int control_fd, child_fd; /* control borrowed, -1 after its end; child owned */
    enum stage stage;
    uint64_t stage_end_ns; /* when the next stage is due */
    uint64_t timeout_ns;   /* absolute */
    int status;            /* what to exit with; 0 so far */
    uint64_t forwarded;    /* bit a signal */
    int signals;           /* handed on or not */
    bool front_gone;
};

static void signal_all(struct keeper *keeper, int number)
{
    for (int i = 0; i < keeper->options->ranks; i++)
        if (keeper->alive[i])
            kill(-keeper->pids[i], number);
}

static const char *signal_name(int number, char text[24])
{
    const char *name = sigabbrev_np(number);
    snprintf(text, 24, name ? "SIG%s" : "signal %s%d", name ? name : "", number);
    return text;
}

static void set_stage(struct keeper *keeper, enum stage stage, uint64_t now_ns)
{
    if (stage <= keeper->stage)
        return;
    keeper->stage = stage;
    keeper->stage_end_ns = stage == KILLED ? NEVER : now_ns + keeper->options->grace_ns;
    if (stage < TERMINATING)
        return;
    int number = stage == KILLED ? SIGKILL : SIGTERM;
    char list[512], name[24];
    run_family_list(keeper->alive, keeper->options->ranks, list, sizeof(list));
    if (keeper->alive_count > 0 && !keeper->front_gone)
        run_output_say(keeper->output, "sent %s to rank%s %s", signal_name(number, name),
                       keeper->alive_count > 1 ? "s" : "", list);
    signal_all(keeper, number);
    if (stage == TERMINATING)
        signal_all(keeper, SIGCONT); /* a stopped process would not see it */
}

/* ---- ranks that end -------------------------------------------------------------------------- */

static void rank_ended(struct keeper *keeper, int rank)
{
    char name[24];
    int status = keeper->end_status[rank];
    bool exited = WIFEXITED(status);
    int number = exited ? 0 : WTERMSIG(status);
    if (exited && WEXITSTATUS(status) == 0)
        return;
    if (!keeper->status)
        keeper->status = exited ? WEXITSTATUS(status) : 128 + number;
    /* what we did to it is no finding */
    bool ours = keeper->stage >= TERMINATING;
    bool handed_on = !exited && (keeper->forwarded >> number & 1);
    if (exited && !ours)
        run_output_say(keeper->output, "rank %d exited with status %d", rank, WEXITSTATUS(status));
    if (!exited && !ours && !handed_on)
        run_output_say(keeper->output, "rank %d was ended by %s (%s)%s", rank,
                       signal_name(number, name), sigdescr_np(number),
                       WCOREDUMP(status) ? ", core dumped" : "");
    set_stage(keeper, FAILED, run_now_ns());
}

/* @return whether it was a rank, and has failed */
static bool note_end(struct keeper *keeper, pid_t pid, int status)
{
    for (int i = 0; i < keeper->options->ranks; i++) {
        if (!keeper->alive[i] || keeper->pids[i] != pid)
            continue;
        keeper->alive[i] = false;
        keeper->alive_count--;
        keeper->end_status[i] = status;
        keeper->ended[keeper->ended_count++] = i;
        return status != 0;
    }
    return false;
}

/* A rank that sees a peer's connections close may be gone before that peer can be waited for: those
 * that are exiting are part of the same news. */
static void note_exiting(struct keeper *keeper)
{
    for (int i = 0; i < keeper->options->ranks; i++) {
        int status;
        if (keeper->alive[i] && run_family_exiting(keeper->pids[i]) &&
            waitpid(keeper->pids[i], &status, 0) == keeper->pids[i])
            note_end(keeper, keeper->pids[i], status);
    }
}

static void reap(struct keeper *keeper)
{
    struct signalfd_siginfo drained;
    while (read(keeper->child_fd, &drained, sizeof(drained)) > 0)
        ;
    int status;
    pid_t pid;
    bool failed = false;
    keeper->ended_count = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        failed |= note_end(keeper, pid, status);
    if (failed && !keeper->status)
        note_exiting(keeper);
    /* of ranks that end together, one that a signal ended is the cause, not a follower */
    for (int signaled = 1; signaled >= 0; signaled--)
        for (int i = 0; i < keeper->ended_count; i++)
            if (WIFSIGNALED(keeper->end_status[keeper->ended[i]]) == signaled)
                rank_ended(keeper, keeper->ended[i]);
}

/* ---- the front ------------------------------------------------------------------------------- */

static void hand_on(struct keeper *keeper, int number)
{
    char name[24];
    if (number == SIGTSTP || number == SIGCONT) {
        signal_all(keeper, number == SIGTSTP ? SIGSTOP : SIGCONT);
        return;
    }
    keeper->signals++;
    if (keeper->forwarded) {
        run_output_say(keeper->output, "second signal, %s", signal_name(number, name));
        set_stage(keeper, KILLED, run_now_ns());
        return;
    }
    keeper->forwarded |= 1ull << number;
    run_output_say(keeper->output, "handing %s on to the ranks; once more kills them",
                   signal_name(number, name));
    signal_all(keeper, number);
}

static void hear_front(struct keeper *keeper)
{
    unsigned char number;
    ssize_t bytes = read(keeper->control_fd, &number, 1);
    if (bytes == 1)
        hand_on(keeper, number);
    else if (bytes == 0 || (errno != EINTR && errno != EAGAIN)) {
        keeper->front_gone = true;
        keeper->control_fd = -1;
        set_stage(keeper, KILLED, run_now_ns());
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

static void look_at_clock(struct keeper *keeper)
{
    uint64_t now_ns = run_now_ns();
    if (now_ns >= keeper->timeout_ns && keeper->stage == RUNNING) {
        char list[512];
        run_family_list(keeper->alive, keeper->options->ranks, list, sizeof(list));
        run_output_say(keeper->output, "timeout of %g s: still running: rank%s %s",
                       (double)keeper->options->timeout_ns * 1e-9,
                       keeper->alive_count > 1 ? "s" : "", list);
        keeper->status = RUN_EXIT_TIMEOUT;
        set_stage(keeper, TERMINATING, now_ns);
    } else if (keeper->stage != RUNNING && now_ns >= keeper->stage_end_ns) {
        set_stage(keeper, keeper->stage + 1, now_ns);
    }
}

static int poll_ms(const struct keeper *keeper)
{
    uint64_t next_ns = keeper->stage == RUNNING ? keeper->timeout_ns : keeper->stage_end_ns;
    if (next_ns == NEVER)
        return -1;
    uint64_t now_ns = run_now_ns();
    uint64_t left_ms = next_ns > now_ns ? (next_ns - now_ns + 999999) / 1000000 : 0;
    return left_ms > 1000000 ? 1000000 : (int)left_ms;
}

/* ---- the job --------------------------------------------------------------------------------- */

static void wait_once(struct keeper *keeper)
{
    struct pollfd *set = keeper->poll_set;
    set[0] = (struct pollfd){.fd = keeper->control_fd, .events = POLLIN};
    set[1] = (struct pollfd){.fd = keeper->child_fd, .events = POLLIN};
    int n = 2 + run_output_poll_set(keeper->output, set + 2);
    if (poll(set, (nfds_t)n, poll_ms(keeper)) < 0)
        return;
    run_output_progress(keeper->output); /* before the news of a rank's end: its last words */
    if (set[0].revents)
        hear_front(keeper);
    if (set[1].revents)
        reap(keeper);
}

/* Nothing that was started stays, and nothing that was written is lost (unless the reader of our
 * output stalls and the user insists). */
static void clean_up(struct keeper *keeper)
{
    int left = run_family_kill();
    if (left > 0 && keeper->stage < TERMINATING)
        run_output_say(keeper->output, "ended %d process%s that the ranks left behind", left,
                       left > 1 ? "es" : "");
    int signals = keeper->signals;
    while (!keeper->front_gone && keeper->signals == signals) {
        bool closed = run_output_close(keeper->output);
        if (closed && run_output_flushed(keeper->output))
            return;
        if (!run_output_progress(keeper->output))
            wait_once(keeper);
    }
}

static bool start_rank(struct keeper *keeper, const struct run_job *job, int rank)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    const char *what = "open pipes for";
    int error = 0;
    if (keeper->options->tag && (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0))
        error = errno;
    int pipes[2] = {out[1], err[1]};
    if (!error)
        error = run_spawn(job, rank, pipes, &keeper->pids[rank], &what);
    for (int i = 0; i < 2; i++)
        if (pipes[i] >= 0)
            close(pipes[i]);
    if (out[0] >= 0)
        run_output_add(keeper->output, rank, 1, out[0]);
    if (err[0] >= 0)
        run_output_add(keeper->output, rank, 2, err[0]);
    if (!error) {
        keeper->alive[rank] = true;
        keeper->alive_count++;
        return true;
    }
    run_output_say(keeper->output, "cannot %s '%s' as rank %d: %s", what,
                   keeper->options->command[0], rank, strerror(error));
    keeper->status = strcmp(what, "run") != 0 ? RUN_EXIT_SYSTEM : error == ENOENT ? 127 : 126;
    return false;
}

static void run_job(struct keeper *keeper, const struct run_job *job)
{
    if (keeper->options->timeout_ns)
        keeper->timeout_ns = run_now_ns() + keeper->options->timeout_ns;
    for (int rank = 0; rank < keeper->options->ranks; rank++)
        if (!start_rank(keeper, job, rank)) {
            set_stage(keeper, KILLED, run_now_ns());
            break;
        }
    while (keeper->alive_count > 0) {
        wait_once(keeper);
        look_at_clock(keeper);
    }
    clean_up(keeper);
}

static bool prepare_job(struct run_job *job)
{
    unsigned char name[16];
    if (getrandom(job->key, sizeof(job->key), 0) != (ssize_t)sizeof(job->key) ||
        getrandom(name, sizeof(name), 0) != (ssize_t)sizeof(name)) {
        fprintf(stderr, "twill-run: no random bytes for a key: %s\n", strerror(errno));
        return false;
    }
    int used = snprintf(job->rendezvous, sizeof(job->rendezvous), "unix:twill-run-");
    for (int i = 0; i < 16; i++)
        used += snprintf(job->rendezvous + used, sizeof(job->rendezvous) - (size_t)used, "%02x",
                         name[i]);
    /* its ranks are here: one that something starts elsewhere is told */
    char host[64] = "";
    if (gethostname(host, sizeof(host) - 1) == 0 && host[0] != '\0')
        snprintf(job->rendezvous + used, sizeof(job->rendezvous) - (size_t)used, "@%s", host);
    struct stat input;
    job->stdin_rank = fstat(0, &input) == 0 && !isatty(0);
    job->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (job->null_fd < 0) {
        fprintf(stderr, "twill-run: cannot open /dev/null: %s\n", strerror(errno));
        return false;
    }
    if (job->options->bind != RUN_BIND_NONE && tw_failed(tw_topo_load(&job->topo, NULL))) {
        fprintf(stderr, "twill-run: --bind: %s\n", tw_fail_text());
        return false;
    }
    return true;
}

static bool keeper_init(struct keeper *keeper, const struct run_options *options, int control_fd)
{
    sigset_t child;
    size_t ranks = (size_t)options->ranks;
    *keeper = (struct keeper){.options = options, .control_fd = control_fd, .timeout_ns = NEVER};
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    keeper->child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    keeper->output = run_output_create(options->ranks, options->tag);
    keeper->poll_set = calloc(2 * ranks + 4, sizeof(*keeper->poll_set));
    keeper->pids = calloc(ranks, sizeof(*keeper->pids));
    keeper->alive = calloc(ranks, sizeof(*keeper->alive));
    keeper->end_status = calloc(ranks, sizeof(*keeper->end_status));
    keeper->ended = calloc(ranks, sizeof(*keeper->ended));
    if (keeper->child_fd >= 0 && keeper->output && keeper->poll_set && keeper->pids &&
        keeper->alive && keeper->end_status && keeper->ended)
        return true;
    fputs("twill-run: out of memory or descriptors\n", stderr);
    return false;
}

/* A job whose output is lost has failed, though no rank has. */
static int output_lost(const struct keeper *keeper)
{
    int error = run_output_error(keeper->output);
    if (!error)
        return 0;
    fprintf(stderr, "twill-run: cannot write what the ranks have written: %s\n", strerror(error));
    return RUN_EXIT_SYSTEM;
}

static void keeper_fini(struct keeper *keeper)
{
    run_output_destroy(keeper->output);
    free(keeper->poll_set);
    free(keeper->pids);
    free(keeper->alive);
    free(keeper->end_status);
    free(keeper->ended);
    if (keeper->child_fd >= 0)
        close(keeper->child_fd);
}

int run_keeper(const struct run_options *options, int control_fd, sigset_t *rank_mask)
{
    struct keeper keeper;
    struct run_job job = {.options = options, .mask = rank_mask, .null_fd = -1};
    prctl(PR_SET_NAME, "twill-keeper"); /* killall twill-run is meant for the front */
    setpgid(0, 0);                      /* the terminal's signals are for the front, too */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    fcntl(control_fd, F_SETFL, O_NONBLOCK);
    int status = RUN_EXIT_SYSTEM;
    if (keeper_init(&keeper, options, control_fd) && prepare_job(&job)) {
        run_job(&keeper, &job);
        explicit_bzero(job.key, sizeof(job.key));
        int lost = output_lost(&keeper);
        status = keeper.status ? keeper.status : lost;
    }
    tw_topo_free(job.topo);
    if (job.null_fd >= 0)
        close(job.null_fd);
    keeper_fini(&keeper);
    return status;
}
