/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the front of twill-run: signals in, exit status out. Never knows: the ranks.
 *
 * Linked with src/topo and src/base, statically, for --bind (the public API has no topology);
 * otherwise it needs nothing of the library. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT};
#define HANDED_ON_COUNT (sizeof(handed_on) / sizeof(handed_on[0]))

/* Those that were ignored when we started (nohup) stay ignored. */
static void block_signals(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < HANDED_ON_COUNT; i++) {
        struct sigaction action;
        if (sigaction(handed_on[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, handed_on[i]);
    }
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit statuses away */
    sigprocmask(SIG_BLOCK, &set, before);
}

/* The keeper was killed: what it started is ours now. */
static int keeper_lost(int status)
{
    int left = run_family_kill();
    fprintf(stderr, "twill-run: the keeper of the ranks was ended by %s; ended %d process%s\n",
            sigdescr_np(WTERMSIG(status)), left, left == 1 ? "" : "es");
    return 128 + WTERMSIG(status);
}

static int attend(pid_t keeper, int control_fd)
{
    sigset_t all;
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    for (size_t i = 0; i < HANDED_ON_COUNT; i++)
        sigaddset(&all, handed_on[i]);
    for (;;) {
        siginfo_t info;
        int number = sigwaitinfo(&all, &info);
        if (number < 0)
            continue;
        if (number != SIGCHLD) {
            unsigned char byte = (unsigned char)number;
            /* a keeper that is gone is told of by SIGCHLD */
            if (send(control_fd, &byte, 1, MSG_NOSIGNAL) == 1 && number == SIGTSTP)
                raise(SIGSTOP);
            continue;
        }
        int status;
        if (waitpid(keeper, &status, WNOHANG) == keeper)
            return WIFEXITED(status) ? WEXITSTATUS(status) : keeper_lost(status);
    }
}

static int run(const struct run_options *options)
{
    int control[2];
    sigset_t before;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) {
        fprintf(stderr, "twill-run: cannot make a socket pair: %s\n", strerror(errno));
        return RUN_EXIT_SYSTEM;
    }
    block_signals(&before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t keeper = fork();
    if (keeper < 0) {
        fprintf(stderr, "twill-run: cannot fork: %s\n", strerror(errno));
        return RUN_EXIT_SYSTEM;
    }
    if (keeper == 0) {
        close(control[0]);
        return run_keeper(options, control[1], &before);
    }
    close(control[1]);
    return attend(keeper, control[0]);
}

int main(int argc, char **argv)
{
    cli_streams_hold();
    struct run_options options;
    int status = run_options_parse(&options, argc, argv);
    if (status == CLI_GO_ON)
        status = run(&options);
    run_options_free(&options);
    return cli_output_close(status, RUN_EXIT_SYSTEM);
}
