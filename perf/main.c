/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the ranks of a run come together: alone, from a launcher, as threads.
 * Never knows: what they measure. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"
#include "perf.h"

#define GUARD_BYTES 4096 /* around each buffer; keeps the data aligned to a page */

/* What the threads of a process share; read only once they run. */
struct job {
    struct perf_options options;
    int first_rank, size, processes;
    twill_unique_id id;
};

struct worker {
    struct job *job;
    int thread;
    int status; /* to exit with */
    pthread_t handle;
};

/* ---- memory
 * -------------------------------------------------------------------------------------- */

static bool buffer_create(const struct perf_rank *rank, char **data, void **base, twill_reg_t *reg)
{
    size_t bytes = rank->buffer_bytes;
    if (rank->options->registered) {
        if (!perf_ok(rank, twill_mem_alloc(base, bytes, TWILL_DEVICE_HOST), "twill_mem_alloc") ||
            !perf_ok(rank, twill_register(rank->comm, *base, bytes, reg), "twill_register"))
            return false;
    } else {
        *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (*base == MAP_FAILED) {
            *base = NULL;
            fprintf(stderr, "twill-perf: rank %d: no memory for a buffer of %zu bytes\n",
                    rank->rank, bytes);
            return false;
        }
    }
    *data = (char *)*base + GUARD_BYTES;
    return true;
}

static bool buffer_destroy(const struct perf_rank *rank, void *base, twill_reg_t reg)
{
    if (!base)
        return true;
    if (!rank->options->registered)
        return munmap(base, rank->buffer_bytes) == 0;
    bool good = !reg || perf_ok(rank, twill_deregister(rank->comm, reg), "twill_deregister");
    return perf_ok(rank, twill_mem_free(base), "twill_mem_free") && good;
}

static bool rank_create(struct perf_rank *rank)
{
    size_t page = GUARD_BYTES, most = rank->options->max_bytes;
    rank->buffer_bytes = (most + page - 1) / page * page + 2 * page;
    rank->gather = calloc(1, perf_gather_bytes(rank->size));
    rank->times = calloc((size_t)rank->options->iterations, sizeof(*rank->times));
    rank->counts = calloc(2 * (size_t)rank->size, sizeof(*rank->counts));
    if (!rank->gather || !rank->times || !rank->counts) {
        fprintf(stderr, "twill-perf: rank %d: out of memory\n", rank->rank);
        return false;
    }
    return buffer_create(rank, &rank->send, &rank->send_base, &rank->send_reg) &&
           buffer_create(rank, &rank->recv, &rank->recv_base, &rank->recv_reg);
}

static bool rank_destroy(struct perf_rank *rank)
{
    bool good = buffer_destroy(rank, rank->send_base, rank->send_reg);
    good &= buffer_destroy(rank, rank->recv_base, rank->recv_reg);
    free(rank->gather);
    free(rank->times);
    free(rank->counts);
    return good;
}

/* ---- ranks
 * --------------------------------------------------------------------------------------- */

/* One thread a process: the launcher's communicator. Otherwise: that of the id. */
static bool connect_rank(const struct job *job, int thread, twill_comm_t *comm)
{
    bool by_launcher = job->options.threads == 1;
    enum twill_status status =
        by_launcher ? twill_comm_init_env(comm, NULL)
                    : twill_comm_init(comm, job->size, &job->id, job->first_rank + thread, NULL);
    if (status == TWILL_OK)
        return true;
    fprintf(stderr, "twill-perf: rank %d: cannot connect: %s: %s\n", job->first_rank + thread,
            twill_status_string(status), twill_last_error(NULL));
    return false;
}

/* The files are for rank 0 to write, the options for rank 0 to complain of. */
static int run_sweep(struct perf_rank *rank)
{
    const struct perf_options *options = rank->options;
    struct perf_rows rows = {0};
    if (options->root >= rank->size) {
        if (rank->rank == 0)
            fprintf(stderr, "twill-perf: -r %d: there are %d ranks\n", options->root, rank->size);
        return CLI_EXIT_USAGE;
    }
    bool good = (rank->rank != 0 || perf_files_try(options)) && rank_create(rank) &&
                perf_sweep(rank, &rows);
    if (good && rank->rank == 0 && !options->list)
        good = perf_files_write(rank, &rows);
    if (!good)
        twill_comm_abort(rank->comm); /* the others shall not wait */
    good &= rank_destroy(rank);
    free(rows.rows);
    return !good ? PERF_EXIT_FAILED : rows.wrong ? PERF_EXIT_WRONG : 0;
}

static int run_rank(const struct job *job, twill_comm_t comm)
{
    struct perf_rank rank = {.options = &job->options, .comm = comm, .processes = job->processes};
    if (!perf_ok(&rank, twill_comm_rank(comm, &rank.rank), "twill_comm_rank") ||
        !perf_ok(&rank, twill_comm_size(comm, &rank.size), "twill_comm_size"))
        return PERF_EXIT_FAILED;
    if (job->options.threads == 1)
        rank.processes = rank.size;
    return run_sweep(&rank);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    twill_comm_t comm = NULL;
    if (!connect_rank(worker->job, worker->thread, &comm)) {
        fflush(NULL);
        _exit(PERF_EXIT_FAILED); /* the other threads would wait for this one */
    }
    worker->status = run_rank(worker->job, comm);
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
    job->first_rank = rank * job->options.threads;
    job->size = job->processes * job->options.threads;
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
        status = run(&job);
    return cli_output_close(status, PERF_EXIT_FAILED);
}
