/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: when the process's shared state comes and goes. Never knows: communicators. */
#include "config.h"

#include "comm/proc.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "comm/choose.h"
#include "comm/control.h"
#include "comm/meeting.h"

/* The one process-wide state. `pid` is set while it is open: another pid there means that a fork
 * has copied it, whose threads and locks are of no use to the child. */
static struct {
    pthread_mutex_t lock; /* guards coming and going */
    int refs;             /* atomic */
    pid_t pid;            /* atomic; 0: closed */
    bool hooked;          /* fork is watched */
    bool forked;          /* atomic; in a child of a fork that copied an open state */
    struct tw_proc_state state;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool forked(void)
{
    pid_t pid = __atomic_load_n(&process.pid, __ATOMIC_ACQUIRE);

    return pid != 0 && pid != getpid();
}

/* Runs in the child, which has one thread. */
static void forked_mark(void)
{
    if (forked())
        __atomic_store_n(&process.forked, true, __ATOMIC_RELAXED);
}

bool tw_proc_forked(void) { return __atomic_load_n(&process.forked, __ATOMIC_RELAXED); }

static enum twill_status fork_watch(void)
{
    int error = process.hooked ? 0 : pthread_atfork(NULL, NULL, forked_mark);

    if (error != 0)
        return tw_fail_errno(TWILL_ERR_NOMEM, error, "fork cannot be watched");
    process.hooked = true;
    return TWILL_OK;
}

static enum twill_status net_open(const char *name, const struct tw_net_config *config,
                                  struct tw_net **net)
{
    const struct tw_transport *transport = tw_transport_find(name);

    if (transport == NULL)
        return tw_fail(TWILL_ERR_INTERNAL, "transport \"%s\" is not in this build", name);
    return transport->net->open(config, net);
}

/* In the reverse order of opening: self may live in shm's staging. */
static void nets_close(struct tw_nets *nets)
{
    if (nets->self != NULL)
        tw_transport_find("self")->net->close(nets->self);
    if (nets->shm != NULL)
        tw_transport_find("shm")->net->close(nets->shm);
    *nets = (struct tw_nets){NULL, NULL};
}

/* One staging for both: TWILL_STAGING bounds the process. */
static enum twill_status nets_open(struct tw_proc_state *state)
{
    struct tw_proc *proc = &state->proc;
    struct tw_net_config config = {
        .self = proc->id,
        .staging_bytes = proc->params->staging_bytes,
        .allow_cma = proc->params->cma,
        .on_peer_lost = tw_ctl_peer_lost,
        .context = state,
    };
    enum twill_status status = TWILL_OK;

    if (proc->params->shm)
        status = net_open("shm", &config, &proc->nets.shm);
    config.staging_of = proc->nets.shm;
    if (status == TWILL_OK)
        status = net_open("self", &config, &proc->nets.self);
    if (status != TWILL_OK)
        nets_close(&proc->nets);
    return status;
}

static enum twill_status identity_fill(struct tw_proc *proc)
{
    enum twill_status status = tw_params_get(&proc->params);

    if (status == TWILL_OK)
        status = tw_log_configure(proc->params->log, proc->params->log_file);
    if (status == TWILL_OK)
        status = tw_host_get(proc->params->hostid, &proc->host);
    if (status == TWILL_OK)
        status = tw_isa_select(proc->params->isa[0] != '\0' ? proc->params->isa : NULL, &proc->isa);
    if (status != TWILL_OK)
        return status;
    proc->cpu_quota = tw_host_cpu_quota();
    proc->pause_ps = tw_pause_ps();
    memcpy(proc->id.host, proc->host.id, sizeof(proc->id.host));
    tw_random(proc->id.nonce, sizeof(proc->id.nonce));
    return TWILL_OK;
}

static enum twill_status state_open(struct tw_proc_state *state)
{
    memset(state, 0, sizeof(*state));
    if (sodium_init() < 0)
        return tw_fail(TWILL_ERR_SYSTEM, "libsodium does not initialise");
    enum twill_status status = identity_fill(&state->proc);
    if (status == TWILL_OK)
        status = tw_loop_create(&state->loop);
    if (status != TWILL_OK)
        return status;
    status = tw_progress_create(&state->proc.progress);
    if (status == TWILL_OK)
        status = tw_chooses_create(&state->proc.chooses);
    tw_gpu_devices_init(&state->proc.gpus);
    if (status == TWILL_OK)
        status = nets_open(state);
    if (status != TWILL_OK) {
        tw_gpu_devices_fini(&state->proc.gpus);
        tw_chooses_destroy(state->proc.chooses);
        tw_progress_destroy(state->proc.progress);
        tw_loop_destroy(state->loop);
    }
    return status;
}

static void state_close(struct tw_proc_state *state)
{
    tw_progress_destroy(state->proc.progress);
    tw_meetings_close(state);
    /* the nets' threads may call tw_ctl_peer_lost until the nets are closed */
    nets_close(&state->proc.nets);
    tw_loop_destroy(state->loop);
    tw_chooses_destroy(state->proc.chooses);
    tw_gpu_devices_fini(&state->proc.gpus);
    free(state->gone);
    memset(state, 0, sizeof(*state));
}

enum twill_status tw_proc_get(struct tw_proc **proc)
{
    enum twill_status status = TWILL_OK;

    if (forked())
        return tw_fail(TWILL_ERR_USAGE,
                       "process %d is a fork of one that used twill (%d): start it afresh instead",
                       (int)getpid(), (int)__atomic_load_n(&process.pid, __ATOMIC_ACQUIRE));
    (void)pthread_mutex_lock(&process.lock);
    if (__atomic_load_n(&process.refs, __ATOMIC_ACQUIRE) == 0) {
        status = fork_watch();
        if (status == TWILL_OK)
            status = state_open(&process.state);
        if (status == TWILL_OK)
            __atomic_store_n(&process.pid, getpid(), __ATOMIC_RELEASE);
    }
    if (status == TWILL_OK) {
        (void)__atomic_add_fetch(&process.refs, 1, __ATOMIC_ACQ_REL);
        *proc = &process.state.proc;
    }
    (void)pthread_mutex_unlock(&process.lock);
    return status;
}

void tw_proc_put(void)
{
    if (forked())
        return;
    (void)pthread_mutex_lock(&process.lock);
    if (__atomic_sub_fetch(&process.refs, 1, __ATOMIC_ACQ_REL) == 0) {
        state_close(&process.state);
        __atomic_store_n(&process.pid, 0, __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&process.lock);
}

static void *put_main(void *arg)
{
    (void)arg;
    tw_proc_put();
    return NULL;
}

void tw_proc_put_soon(void)
{
    int refs = __atomic_load_n(&process.refs, __ATOMIC_ACQUIRE);
    pthread_t thread;

    while (refs > 1) {
        if (__atomic_compare_exchange_n(&process.refs, &refs, refs - 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return;
    }
    /* The last reference: closing joins the control thread, which may be the caller. Where no
     * thread can be had the state stays open until the process ends. */
    if (tw_thread_start(&thread, "twill-close", put_main, NULL) == TWILL_OK)
        (void)pthread_detach(thread);
}

struct tw_proc_state *tw_proc_state(void) { return &process.state; }
