/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what kernels say of trouble and of long waits, and what the communicator makes of it.
 * Never knows: how kernels find out. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "comm/gpu.h"

#define LOOK_NS (10 * 1000L * 1000L)

/* ---- words -------------------------------------------------------------------------------------
 */

static bool is_call(const uint32_t words[TW_GK_WORDS])
{
    return tw_coll_rule((enum tw_coll)(words[TW_GK_WORD_CALL] >> 24)) != NULL &&
           tw_type_name((twill_type_t)(words[TW_GK_WORD_CALL] >> 16 & 0xff)) != NULL;
}

/* Of a call, a number of bytes among its words. */
static uint64_t elements(const uint32_t words[TW_GK_WORDS], enum tw_gk_word at)
{
    const twill_type_t type = (twill_type_t)(words[TW_GK_WORD_CALL] >> 16 & 0xff);

    return (words[at] | (uint64_t)words[at + 1] << 32) / tw_type_bytes(type);
}

static bool is_p2p(const uint32_t words[TW_GK_WORDS])
{
    return words[TW_GK_WORD_CALL] >> 24 == TW_COLL_P2P;
}

static const char *name_of(const uint32_t words[TW_GK_WORDS])
{
    if (is_p2p(words))
        return words[TW_GK_WORD_CALL] >> 8 & 1 ? "send" : "recv";
    return tw_coll_name((enum tw_coll)(words[TW_GK_WORD_CALL] >> 24));
}

/* Calls, and what goes from one rank to another, are numbered apart. */
static const char *numbered(const uint32_t words[TW_GK_WORDS])
{
    return is_p2p(words) ? "number" : "call";
}

void tw_gpu_call_text(const uint32_t words[TW_GK_WORDS], char text[TW_GPU_CALL_TEXT_BYTES])
{
    const enum tw_coll coll = (enum tw_coll)(words[TW_GK_WORD_CALL] >> 24);
    const twill_type_t type = (twill_type_t)(words[TW_GK_WORD_CALL] >> 16 & 0xff);
    const twill_redop_t op = (twill_redop_t)(words[TW_GK_WORD_CALL] >> 8 & 0xff);
    const struct tw_coll_rule *rule = tw_coll_rule(coll);
    char count[32] = "", root[24] = "";

    if (!is_call(words)) {
        (void)snprintf(text, TW_GPU_CALL_TEXT_BYTES, "something that is no call");
        return;
    }
    if (!tw_gpu_varies(coll))
        (void)snprintf(count, sizeof(count), " count %llu",
                       (unsigned long long)elements(words, TW_GK_WORD_COUNT));
    if (rule->rooted)
        (void)snprintf(root, sizeof(root), " root %u", words[TW_GK_WORD_PATH] >> 16);
    if (is_p2p(words))
        (void)snprintf(root, sizeof(root), " %s rank %u",
                       words[TW_GK_WORD_CALL] >> 8 & 1 ? "to" : "from",
                       words[TW_GK_WORD_PATH] >> 16);
    (void)snprintf(text, TW_GPU_CALL_TEXT_BYTES, "%s%s %s%s%s%s", name_of(words), count,
                   tw_type_name(type), rule->reduces ? " " : "",
                   rule->reduces && tw_redop_name(op) != NULL ? tw_redop_name(op) : "", root);
}

/* The same, with what a call whose blocks differ says of the pair: the words of both numbers. */
static void toward_text(const uint32_t words[TW_GK_WORDS], enum tw_gk_word gives,
                        enum tw_gk_word takes, int peer, char text[TW_GPU_CALL_TEXT_BYTES])
{
    tw_gpu_call_text(words, text);
    const size_t used = strlen(text);

    if (!is_call(words) || !tw_gpu_varies((enum tw_coll)(words[TW_GK_WORD_CALL] >> 24)))
        return;
    (void)snprintf(text + used, TW_GPU_CALL_TEXT_BYTES - used,
                   " with %llu elements to rank %d and %llu from it",
                   (unsigned long long)elements(words, gives), peer,
                   (unsigned long long)elements(words, takes));
}

static uint32_t word(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }

static void words_read(const uint32_t *from, uint32_t words[TW_GK_WORDS])
{
    for (int i = 0; i < TW_GK_WORDS; i++)
        words[i] = word(&from[i]);
}

/* ---- what is found -----------------------------------------------------------------------------
 */

static void fail(struct tw_gpu *gpu, enum twill_status status, const char *text)
{
    (void)tw_fail(status, "%s", text);
    tw_ctl_fail(gpu->comm->ctl, NULL, status, text);
}

static void mismatch(struct tw_gpu *gpu, bool before)
{
    const uint32_t peer = word(&gpu->host->trouble_peer);
    const uint32_t epoch = word(&gpu->host->trouble_epoch) - before;
    uint32_t words[TW_GK_WORDS];
    char mine[TW_GPU_CALL_TEXT_BYTES], theirs[TW_GPU_CALL_TEXT_BYTES], text[TW_ERROR_TEXT_BYTES];

    words_read(before ? gpu->host->last : gpu->host->mine, words);
    if (before) /* another call altogether, whatever it moved */
        tw_gpu_call_text(words, mine);
    else
        toward_text(words, TW_GK_WORD_BACK, TW_GK_WORD_COUNT, (int)peer, mine);
    words_read(gpu->host->theirs, words);
    if (before)
        tw_gpu_call_text(words, theirs);
    else
        toward_text(words, TW_GK_WORD_COUNT, TW_GK_WORD_BACK, gpu->comm->rank, theirs);
    (void)snprintf(
        text, sizeof(text), "calls do not match: %s %u of rank %d is %s, that of rank %u %s%s",
        numbered(words), epoch, gpu->comm->rank, mine, peer, theirs,
        strcmp(mine, theirs) == 0 ? ", by another kernel: buffers are registered on some ranks only"
                                  : "");
    fail(gpu, TWILL_ERR_MISMATCH, text);
}

static void other_plan(struct tw_gpu *gpu)
{
    char text[TW_ERROR_TEXT_BYTES];

    (void)snprintf(text, sizeof(text),
                   "calls do not match: rank %u runs call %u by another plan than rank %d "
                   "(TWILL_ALGO, TWILL_PLAN_FILE)",
                   word(&gpu->host->trouble_peer), word(&gpu->host->trouble_epoch),
                   gpu->comm->rank);
    fail(gpu, TWILL_ERR_MISMATCH, text);
}

/* What one rank writes to and what the other means lie in different places. */
static void elsewhere(struct tw_gpu *gpu)
{
    uint32_t words[TW_GK_WORDS];
    char call[TW_GPU_CALL_TEXT_BYTES], text[TW_ERROR_TEXT_BYTES];

    words_read(gpu->host->mine, words);
    tw_gpu_call_text(words, call);
    (void)snprintf(text, sizeof(text),
                   "calls do not match: the recvbuf of rank %u in call %u, %s, does not lie in its "
                   "symmetric registration where that of rank %d lies",
                   word(&gpu->host->trouble_peer), word(&gpu->host->trouble_epoch), call,
                   gpu->comm->rank);
    fail(gpu, TWILL_ERR_MISMATCH, text);
}

static void broken(struct tw_gpu *gpu)
{
    char text[TW_ERROR_TEXT_BYTES];

    (void)snprintf(
        text, sizeof(text),
        "rank %d: a message of rank %u is of another length than the plan of call %u says",
        gpu->comm->rank, word(&gpu->host->trouble_peer), word(&gpu->host->trouble_epoch));
    fail(gpu, TWILL_ERR_PEER, text);
}

static void wait_follow(struct tw_gpu *gpu)
{
    const struct tw_params *params = gpu->comm->proc->params;
    const uint32_t epoch = word(&gpu->host->wait_epoch);
    const uint64_t now_ns = tw_now_ns();
    uint32_t words[TW_GK_WORDS];
    char call[TW_GPU_CALL_TEXT_BYTES], text[TW_ERROR_TEXT_BYTES];

    if (gpu->wait_since_ns == 0 || gpu->wait_epoch != epoch) {
        gpu->wait_since_ns = now_ns;
        gpu->wait_epoch = epoch;
        gpu->warned = false;
    }
    const uint64_t waited_ns = now_ns - gpu->wait_since_ns;
    const bool late = params->timeout_ns > 0 && waited_ns > params->timeout_ns;
    if (!late && (gpu->warned || waited_ns < params->warn_ns))
        return;
    words_read(gpu->host->wait_words, words);
    tw_gpu_call_text(words, call);
    (void)snprintf(text, sizeof(text), "rank %d has waited %.1f s for rank %u in %s %u, %s",
                   gpu->comm->rank, (double)waited_ns * 1e-9, word(&gpu->host->wait_peer),
                   numbered(words), epoch, call);
    gpu->warned = true;
    if (late)
        fail(gpu, TWILL_ERR_TIMEOUT, text);
    else
        tw_warn(TW_SUB_COMM, "%s", text);
}

static void look(struct tw_gpu *gpu)
{
    const uint32_t trouble = __atomic_load_n(&gpu->host->trouble, __ATOMIC_ACQUIRE);

    if (tw_comm_status(gpu->comm) != TWILL_OK)
        return;
    if (trouble == TW_GK_MISMATCH || trouble == TW_GK_MISMATCH_BEFORE)
        mismatch(gpu, trouble == TW_GK_MISMATCH_BEFORE);
    else if (trouble == TW_GK_OTHER_PLAN)
        other_plan(gpu);
    else if (trouble == TW_GK_ELSEWHERE)
        elsewhere(gpu);
    else if (trouble == TW_GK_BROKEN)
        broken(gpu);
    else if (__atomic_load_n(&gpu->host->waiting, __ATOMIC_ACQUIRE) != 0)
        wait_follow(gpu);
    else
        gpu->wait_since_ns = 0;
}

/* ---- the timer ---------------------------------------------------------------------------------
 */

static void timer_on_event(struct tw_source *source, uint32_t events)
{
    struct tw_gpu *gpu = source->owner;
    uint64_t times;

    (void)events;
    if (read(source->fd, &times, sizeof(times)) == (ssize_t)sizeof(times))
        look(gpu);
}

enum twill_status tw_gpu_watch(struct tw_gpu *gpu)
{
    const struct itimerspec every = {{0, LOOK_NS}, {0, LOOK_NS}};
    struct tw_loop *loop = gpu->comm->ctl->loop;
    const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    if (fd < 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "timerfd does not open");
    gpu->source = (struct tw_source){.fd = fd, .owner = gpu, .on_event = timer_on_event};
    (void)timerfd_settime(fd, 0, &every, NULL);
    tw_loop_lock(loop);
    enum twill_status status = tw_loop_watch(loop, &gpu->source, EPOLLIN);
    gpu->watched = status == TWILL_OK;
    tw_loop_unlock(loop);
    return status;
}

void tw_gpu_unwatch(struct tw_gpu *gpu)
{
    struct tw_loop *loop = gpu->comm->ctl->loop;

    if (gpu->watched) {
        tw_loop_lock(loop);
        tw_loop_unwatch(loop, &gpu->source);
        tw_loop_unlock(loop);
    }
    if (gpu->source.fd >= 0)
        (void)close(gpu->source.fd);
    gpu->source.fd = -1;
    gpu->watched = false;
}
