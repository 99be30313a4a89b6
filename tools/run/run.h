/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the parts of twill-run and what they promise each other.
 * Never knows: what the ranks compute or how they talk.
 *
 * Three generations of processes: the front, which the user sees, hands signals on and returns the
 * status; the keeper, its child, which starts the ranks and outlives the front by as long as it
 * takes to kill them; the ranks, each leader of a process group of its own. Front and keeper are
 * both subreapers: whichever is killed, the other inherits what was started and ends it. */
#ifndef TW_TOOLS_RUN_RUN_H
#define TW_TOOLS_RUN_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RUN_EXIT_SYSTEM 1
#define RUN_EXIT_TIMEOUT 124
#define RUN_MAX_RANKS 4096

enum run_bind { RUN_BIND_NONE, RUN_BIND_CORE, RUN_BIND_NUMA };

/* ---- the command line (options.c) ---------------------------------------------------------- */

struct run_options {
    int ranks;
    enum run_bind bind;
    bool tag;
    uint64_t timeout_ns; /* 0: none */
    uint64_t grace_ns;   /* between a failure and SIGTERM, and between SIGTERM and SIGKILL */
    char **sets;         /* VAR=V, borrowed from argv; the array is owned */
    int set_count;
    char **command; /* borrowed from argv, NULL-terminated */
};

/** @return CLI_GO_ON; otherwise the status to exit with (everything has been said). */
int run_options_parse(struct run_options *options, int argc, char **argv);
void run_options_free(struct run_options *options);

/* ---- output (output.c): whole lines, bounded memory, never blocks ---------------------------- */

struct run_output;

/** @return NULL when there is no memory */
struct run_output *run_output_create(int ranks, bool tag);
void run_output_destroy(struct run_output *output);
/** Take over the reading end of a rank's stream (1 or 2). */
void run_output_add(struct run_output *output, int rank, int stream, int fd);
/** One line of twill-run's own to stderr, behind "twill-run: ". */
void run_output_say(struct run_output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct pollfd;
/** Fill what there is to wait for; at most run_output_poll_max() entries. */
int run_output_poll_set(struct run_output *output, struct pollfd *set);
int run_output_poll_max(const struct run_output *output);
/** Do what is possible now, without blocking. @return true when something moved */
bool run_output_progress(struct run_output *output);
/** All that is written has gone out. */
bool run_output_flushed(const struct run_output *output);
/** The errno for which lines of the ranks could not be written, a reader that left excepted; or 0.
 */
int run_output_error(const struct run_output *output);
/** The writers are dead: take what their pipes still hold, partial last lines included.
 *  @return false when the output must drain first: call progress, then this again */
bool run_output_close(struct run_output *output);

/* ---- starting ranks (spawn.c) ---------------------------------------------------------------- */

struct tw_topo;

struct run_job {
    const struct run_options *options;
    struct tw_topo *topo; /* NULL: no binding */
    unsigned char key[32];
    char rendezvous[128];
    sigset_t *mask;  /* signal mask the ranks get; borrowed */
    int null_fd;     /* stdin of ranks other than 0, and of 0 at a terminal */
    bool stdin_rank; /* rank 0 gets twill-run's own stdin */
};

/**
 * Start one rank and wait until its program runs.
 *
 * @param pipes  writing ends for its stdout and stderr; -1: inherit ours
 * @param pid    out; untouched on error
 * @return 0, or an errno; *what then says which step failed
 */
int run_spawn(const struct run_job *job, int rank, const int pipes[2], pid_t *pid,
              const char **what);

/* ---- keeping them (keeper.c) ----------------------------------------------------------------- */

/**
 * Run the job to its end.
 *
 * @param control_fd  one byte a signal to hand on; end of file: the front is gone
 * @return exit status
 */
int run_keeper(const struct run_options *options, int control_fd, sigset_t *rank_mask);

/* ---- the family (family.c) ------------------------------------------------------------------- */

/** Kill every descendant of this subreaper and reap them. @return how many were still running */
int run_family_kill(void);
/** The process has begun to exit, though nobody can wait for it yet: its descriptors may be closed.
 */
bool run_family_exiting(pid_t pid);
/** "0-2, 5" from flags; cut to fit. */
void run_family_list(const bool *member, int count, char *text, size_t bytes);

uint64_t run_now_ns(void);

#endif
