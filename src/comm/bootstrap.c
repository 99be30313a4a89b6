/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the order in which a rank gets connected: meeting point, tree, channels, barrier.
 * Never knows: who else is in this process, what the communicator is for. */
#include "config.h"

#include "comm/bootstrap.h"

#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "comm/ops.h"
#include "comm/split.h"

/* The meeting point names the missing ranks at its deadline; a rank's own comes a little later. */
#define DEADLINE_SLACK_NS TW_NS_S

/* ---- the meeting point -------------------------------------------------------------------------
 */

static void hello_fill(const struct tw_boot *boot, struct tw_hello *hello)
{
    const struct tw_proc *proc = boot->comm->proc;

    memset(hello, 0, sizeof(*hello));
    hello->head = (struct tw_hello_head){.magic = TW_HELLO_MAGIC,
                                         .protocol = TW_PROTOCOL,
                                         .version = TWILL_VERSION,
                                         .rank = boot->comm->rank};
    hello->size = boot->comm->size;
    hello->pid = getpid();
    hello->proc = proc->id;
    memcpy(hello->host_name, proc->host.name, sizeof(hello->host_name));
    memcpy(hello->door, boot->tree_name, sizeof(hello->door));
    tw_hello_options(&boot->comm->args, proc->params, hello->options);
}

/* An id's meeting point exists before the id does, so one that does not answer never will; one
 * named by the environment may still come. */
static enum twill_status meet_connect(const struct tw_boot *boot, const struct tw_id *id, int *fd)
{
    struct tw_sock_wait wait = boot->wait;
    char own[TW_SOCK_NAME_BYTES];

    if (!boot->comm->args.from_env || boot->comm->args.shrinks)
        wait.deadline_ns = 1;
    tw_meet_caller_name(boot->comm->rank, own);
    enum twill_status status = tw_sock_connect_as(fd, own, id->meet, &wait);
    if (status != TWILL_ERR_TIMEOUT)
        return status;
    if (!boot->comm->args.from_env || boot->comm->args.shrinks)
        return TWILL_ERR_PEER;
    return tw_fail(TWILL_ERR_TIMEOUT,
                   "init: rank %d found no meeting point on host %s: rank 0 has not come, or it is "
                   "on another host (this build connects ranks of one host)",
                   boot->comm->rank, boot->comm->proc->host.name);
}

static enum twill_status meet_gone(const struct tw_boot *boot)
{
    if (boot->comm->args.from_env)
        return tw_fail(TWILL_ERR_PEER,
                       "init: rank 0's meeting point closed before rank %d was "
                       "heard: the others have met without it, or have failed",
                       boot->comm->rank);
    return tw_fail(TWILL_ERR_PEER,
                   "init: the meeting point of the unique id is gone: the process "
                   "that made it has ended, the id was used already (it is good for "
                   "one communicator), or nobody came within TWILL_ID_TIMEOUT");
}

static enum twill_status server_check(const struct tw_boot *boot, int fd)
{
    pid_t pid = 0;
    uid_t uid = 0;

    if (!boot->comm->args.keyless)
        return TWILL_OK;
    enum twill_status status = tw_sock_peer(fd, &pid, &uid);
    if (status == TWILL_OK && uid != geteuid())
        status = tw_fail(TWILL_ERR_AUTH,
                         "init: the meeting point belongs to user %u (process %d), not to this "
                         "job's user %u",
                         (unsigned)uid, (int)pid, (unsigned)geteuid());
    return status;
}

static enum twill_status meet_greet(struct tw_boot *boot)
{
    struct tw_id id;
    struct tw_hello hello;
    int fd = -1;

    memcpy(&id, &boot->comm->args.id, sizeof(id));
    hello_fill(boot, &hello);
    tw_loop_lock(boot->ctl->loop);
    tw_meeting_expect(boot->ctl, id.meet);
    tw_loop_unlock(boot->ctl->loop);
    enum twill_status status = meet_connect(boot, &id, &fd);
    if (status == TWILL_OK)
        status = server_check(boot, fd);
    if (status == TWILL_OK)
        status = tw_sock_prove(fd, id.key, 0, TW_MEET_CONTEXT, &boot->wait);
    if (status == TWILL_OK)
        status = tw_sock_send_msg(fd, &hello, sizeof(hello), &boot->wait);
    sodium_memzero(&id, sizeof(id));
    if (status != TWILL_OK) {
        if (fd >= 0)
            (void)close(fd);
        if (status == TWILL_ERR_PEER && boot->comm->args.shrinks)
            return TWILL_ERR_AGAIN; /* the host is lost, or all have met just now */
        return status == TWILL_ERR_PEER ? meet_gone(boot) : status;
    }
    tw_loop_lock(boot->ctl->loop);
    boot->ctl->meet_again = false;
    status = tw_ctl_meet_open(boot->ctl, fd);
    tw_loop_unlock(boot->ctl->loop);
    return status;
}

/* Not the key itself: what comes of it tells nothing of this communicator's connections. */
static void secret_derive(struct tw_boot *boot)
{
    static const char domain[] = "twill secret of ranks 1";
    struct twill_comm *comm = boot->comm;

    (void)crypto_generichash(comm->secret, sizeof(comm->secret), (const uint8_t *)domain,
                             sizeof(domain), boot->welcome.key, sizeof(boot->welcome.key));
}

static enum twill_status welcome_wait(struct tw_boot *boot)
{
    struct tw_ctl *ctl = boot->ctl;
    struct twill_comm *comm = boot->comm;
    bool in_time = true;

    tw_loop_lock(ctl->loop);
    while (ctl->welcome == NULL && tw_comm_status(comm) == TWILL_OK && in_time && !ctl->meet_again)
        in_time = tw_cond_wait(&ctl->changed, &ctl->loop->lock, boot->wait.deadline_ns);
    bool whole = ctl->welcome != NULL && ctl->welcome_bytes == sizeof(boot->welcome);
    if (whole) {
        memcpy(&boot->welcome, ctl->welcome, sizeof(boot->welcome));
        sodium_memzero(ctl->welcome, ctl->welcome_bytes);
        ctl->meet_rank = boot->welcome.meet_rank;
        comm->id_hash = tw_hash64(boot->welcome.nonce, sizeof(boot->welcome.nonce));
        secret_derive(boot);
        if (comm->args.shrinks) {
            comm->rank = comm->args.rank = boot->welcome.rank;
            comm->size = comm->args.size = boot->welcome.size;
        }
    }
    bool again = ctl->meet_again && ctl->welcome == NULL;
    tw_loop_unlock(ctl->loop);
    if (tw_comm_status(comm) != TWILL_OK)
        return tw_comm_status(comm);
    if (again && in_time)
        return TWILL_ERR_AGAIN;
    if (!in_time)
        return tw_fail(TWILL_ERR_TIMEOUT,
                       "init: rank %d waits in vain for the meeting point's answer", comm->rank);
    if (!whole)
        return tw_fail(TWILL_ERR_PEER, "init: the meeting point's answer has %u bytes, not %zu",
                       ctl->welcome_bytes, sizeof(boot->welcome));
    boot->welcome.parent_door[sizeof(boot->welcome.parent_door) - 1] = '\0';
    comm->ranks_here = boot->welcome.ranks_here;
    comm->ranks_host = boot->welcome.ranks_host;
    return TWILL_OK;
}

/* Of a shrink: the host may be lost, and then there is another. */
static enum twill_status meet_again(struct tw_boot *boot)
{
    struct pollfd cancel = {.fd = boot->wait.cancel_fd, .events = POLLIN};
    enum twill_status status = TWILL_ERR_AGAIN;

    while (status == TWILL_ERR_AGAIN) {
        if (tw_comm_status(boot->comm) != TWILL_OK)
            return tw_comm_status(boot->comm);
        if (boot->wait.deadline_ns != TW_NEVER && tw_now_ns() >= boot->wait.deadline_ns)
            return tw_fail(TWILL_ERR_TIMEOUT, "init: rank %d finds no host that stays",
                           boot->comm->rank);
        status = tw_shrink_host(boot->comm);
        if (status == TWILL_OK)
            status = meet_greet(boot);
        if (status == TWILL_OK)
            status = welcome_wait(boot);
        if (status == TWILL_ERR_AGAIN)
            (void)poll(&cancel, 1, 1);
    }
    if (status == TWILL_OK)
        tw_shrink_over(boot->comm);
    return status;
}

static enum twill_status meet_all(struct tw_boot *boot)
{
    if (boot->comm->args.shrinks)
        return meet_again(boot);
    enum twill_status status = meet_greet(boot);
    return status == TWILL_OK ? welcome_wait(boot) : status;
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

/* Nobody leaves before everybody is ready, nor with other grounds to choose by. */
static enum twill_status barrier_last(struct tw_boot *boot)
{
    struct twill_comm *comm = boot->comm;
    const struct tw_tree_call call = {comm, boot->wait.deadline_ns, "in the last barrier"};
    struct tw_facts_stamp *stamps = tw_alloc((size_t)comm->size * sizeof(*stamps));

    if (stamps == NULL)
        return TWILL_ERR_NOMEM;
    tw_plans_stamp(comm->ops->plans, &stamps[comm->rank]);
    enum twill_status status = tw_tree_gather(&call, stamps, sizeof(*stamps));
    if (status == TWILL_OK)
        status = tw_facts_compare(stamps, comm->size);
    free(stamps);
    return status;
}

static enum twill_status boot_steps(struct tw_boot *boot)
{
    struct twill_comm *comm = boot->comm;
    enum twill_status status = tw_sock_listen(&boot->tree_fd, "", boot->tree_name);

    if (status == TWILL_OK)
        status = meet_all(boot);
    if (status == TWILL_OK)
        status = tw_boot_links(boot);
    if (status == TWILL_OK)
        status = tw_boot_chan(boot);
    if (status == TWILL_OK)
        status = tw_record_create(comm);
    if (status == TWILL_OK)
        status = tw_ops_create(comm);
    if (status == TWILL_OK)
        status = tw_boot_gpu(boot);
    if (status == TWILL_OK)
        status = barrier_last(boot);
    return status;
}

/* What only init needs goes. */
static void boot_tidy(struct tw_boot *boot, bool ready)
{
    struct tw_ctl *ctl = boot->ctl;

    tw_loop_lock(ctl->loop);
    tw_ctl_door_close(ctl);
    tw_meeting_expect(ctl, "");
    if (ready) { /* else its own failure is about to be told, and what still comes is nobody's fault
                  */
        ctl->gathering = false;
        tw_link_send(&ctl->meet, TW_FRAME_BYE, NULL, 0);
        tw_link_close(&ctl->meet);
        for (int i = 0; i < TW_TREE_LINKS; i++)
            ctl->tree[i].max_bytes = TW_FRAME_SMALL_BYTES;
    }
    tw_loop_unlock(ctl->loop);
    if (boot->listener != NULL)
        tw_transport_find("shm")->net->unlisten(boot->listener);
    if (boot->tree_fd >= 0)
        (void)close(boot->tree_fd);
    sodium_memzero(&boot->welcome, sizeof(boot->welcome));
}

enum twill_status tw_boot_run(struct twill_comm *comm)
{
    struct tw_boot boot = {.comm = comm, .ctl = comm->ctl, .tree_fd = -1};
    uint64_t timeout_ns = comm->proc->params->init_timeout_ns;

    boot.wait.deadline_ns =
        timeout_ns > 0 ? tw_deadline_ns(timeout_ns + DEADLINE_SLACK_NS) : TW_NEVER;
    boot.wait.cancel_fd = comm->cancel_fd;
    enum twill_status status = boot_steps(&boot);
    boot_tidy(&boot, status == TWILL_OK);
    return status;
}
