/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the threads of a run come together: alone, from a launcher, as threads.
 * Never knows: what they measure. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "team.h"

/* What the threads of a process share; read only once they run. */
struct job {
    struct perf_options options;
    int first, members, processes; /* threads of the job: this process's first, and all */
    twill_unique_id id;
};

struct worker {
    struct job *job;
    int thread;
    int status; /* to exit with */
    pthread_t handle;
};

/* ---- threads ----------------------------------------------------------------------------------
 */

/* One thread a process: the launcher's communicator. Otherwise: that of the id. */
static bool connect_rank(const struct job *job, int thread, twill_comm_t *comm)
{
    bool by_launcher = job->options.threads == 1;
    enum twill_status status =
        by_launcher ? twill_comm_init_env(comm, NULL)
                    : twill_comm_init(comm, job->members, &job->id, job->first + thread, NULL);
    if (status == TWILL_OK)
        return true;
    fprintf(stderr, "twill-perf: rank %d: cannot connect: %s: %s\n", job->first + thread,
            twill_status_string(status), twill_last_error(NULL));
    return false;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    twill_comm_t comm = NULL;
    if (!connect_rank(worker->job, worker->thread, &comm)) {
        fflush(NULL);
        _exit(PERF_EXIT_FAILED); /* the other threads would wait for this one */
    }
    worker->status = perf_team_run(&worker->job->options, comm, worker->job->processes);
    enum twill_status status = twill_comm_destroy(comm);
    if (worker->status < CLI_EXIT_USAGE && status != TWILL_OK) {
        fprintf(stderr, "twill-perf: cannot end the communicator: %s: %s\n",
                twill_status_string(status), twill_last_error(NULL));
        worker->status = PERF_EXIT_FAILED;
    }
    return NULL;
}

/* Threads in several processes: rank 0 of the launcher's communicator hands the id round. */
static bool share_id(struct job *job)
{
    twill_comm_t comm = NULL;
    struct job only = *job;
    int rank = 0;
    only.options.threads = 1;
    if (!connect_rank(&only, 0, &comm))
        return false;
    twill_comm_rank(comm, &rank);
    twill_comm_size(comm, &job->processes);
    enum twill_status status = rank == 0 ? twill_get_unique_id(&job->id) : TWILL_OK;
    if (status == TWILL_OK)
        status = twill_broadcast(&job->id, &job->id, sizeof(job->id), TWILL_UINT8, 0, comm, NULL);
    if (status != TWILL_OK)
        fprintf(stderr, "twill-perf: cannot share an id: %s: %s\n", twill_status_string(status),
                twill_last_error(comm));
    job->first = rank * job->options.threads;
    job->members = job->processes * job->options.threads;
    twill_comm_destroy(comm);
    return status == TWILL_OK;
}

static int run(struct job *job)
{
    int threads = job->options.threads, started = 1;
    /* the library knows the launchers; without one a process is alone */
    if (threads > 1 && !share_id(job))
        return PERF_EXIT_FAILED;
    struct worker *workers = calloc((size_t)threads, sizeof(*workers));
    if (!workers) {
        fputs("twill-perf: out of memory\n", stderr);
        return PERF_EXIT_FAILED;
    }
    workers[0] = (struct worker){.job = job};
    for (int i = 1; i < threads; i++)
        workers[i] = (struct worker){.job = job, .thread = i};
    for (; started < threads; started++)
        if (pthread_create(&workers[started].handle, NULL, work, &workers[started]) != 0) {
            fprintf(stderr, "twill-perf: cannot start thread %d\n", started);
            _exit(PERF_EXIT_FAILED); /* those that run wait for it */
        }
    work(&workers[0]);
    int status = workers[0].status;
    for (int i = 1; i < threads; i++) {
        pthread_join(workers[i].handle, NULL);
        status = workers[i].status > status ? workers[i].status : status;
    }
    free(workers);
    return status;
}

int main(int argc, char **argv)
{
    struct job job = {0};
    cli_streams_hold();
    int status = perf_options_parse(&job.options, argc, argv);
    if (status == CLI_GO_ON)
        status = perf_place_check(&job.options);
    if (status == CLI_GO_ON && job.options.nccl)
        status = perf_nccl_open(&job.options);
    if (status == CLI_GO_ON)
        status = run(&job);
    return cli_output_close(status, PERF_EXIT_FAILED);
}
