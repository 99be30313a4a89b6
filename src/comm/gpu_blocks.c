/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how many blocks of all communicators of a process may run on a device at once, and which
 * kernels therefore wait for which.
 * Never knows: what kernels do, how they are started.
 *
 * Blocks of a kernel wait for its peers', and hold their multiprocessors meanwhile. If those of two
 * kernels do not all fit, each may hold what the other one needs. So kernels that do not fit next
 * to others come after them, by events, in the order in which they were started.
 *
 * Kernels of a rank run one after another: what it has in flight is one of those that it has
 * started since. For each pair of ranks the device knows `ahead`, the most blocks of the other
 * one's kernels that the next kernel of the first is not ordered behind. A kernel waits until its
 * own blocks and all that is ahead fit. Of any kernels that run at once the one that was started
 * last has counted all others: so they fit too.
 *
 * What is captured is counted in its capture alone.
 */
#include "config.h"

#include "comm/gpu_device.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/gpu.h"

#define SEATS_FIRST 16u

static uint32_t *ahead_of(const struct tw_gpu_device *device, uint32_t of, uint32_t other,
                          int which)
{
    return &device->ahead[(size_t)of * device->seats + other][which];
}

/* ---- coming and going --------------------------------------------------------------------------
 */

static enum twill_status seats_grow(struct tw_gpu_device *device)
{
    const size_t old = device->seats, more = old > 0 ? 2 * old : SEATS_FIRST;
    struct tw_gpu **ranks = tw_alloc(more * sizeof(void *));
    uint32_t(*ahead)[2] = tw_alloc(more * more * sizeof(*ahead));

    if (ranks == NULL || ahead == NULL) {
        free(ranks);
        free(ahead);
        return TWILL_ERR_NOMEM;
    }
    for (size_t i = 0; i < old; i++) {
        ranks[i] = device->ranks[i];
        memcpy(ahead[i * more], device->ahead[i * old], old * sizeof(*ahead));
    }
    free(device->ranks);
    free(device->ahead);
    device->ranks = ranks;
    device->ahead = ahead;
    device->seats = (uint32_t)more;
    return TWILL_OK;
}

/* Of a rank that was not counted so far: what it has started may run. */
static uint32_t maybe_running(const struct tw_gpu *gpu)
{
    return gpu->done_once ? (uint32_t)gpu->most_blocks : 0;
}

/* Nothing is known of the rank's order among others. */
static void seat_clear(const struct tw_gpu_device *device, uint32_t at)
{
    for (uint32_t i = 0; i < device->seats; i++)
        for (int which = 0; which < 2; which++)
            *ahead_of(device, i, at, which) = *ahead_of(device, at, i, which) = 0;
}

/* Could kernels of several communicators not fit? One's always do. */
static bool is_crowded(const struct tw_gpu_device *device)
{
    const struct tw_gpu *one = NULL;
    uint64_t most = 0;
    bool several = false;

    for (uint32_t i = 0; i < device->seats; i++) {
        const struct tw_gpu *gpu = device->ranks[i];

        if (gpu == NULL)
            continue;
        most += (uint64_t)gpu->most_blocks;
        several |= one != NULL && one->team != gpu->team;
        one = gpu;
    }
    return several && most > device->budget;
}

/* From now on kernels are counted. Those that were not have been started when this returns. */
static void count_begin(struct tw_gpu_device *device)
{
    __atomic_store_n(&device->crowded, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&device->starting, __ATOMIC_SEQ_CST) > 0)
        (void)sched_yield();
    for (uint32_t at = 0; at < device->seats; at++) {
        struct tw_gpu *gpu = device->ranks[at];

        if (gpu == NULL)
            continue;
        seat_clear(device, at);
        gpu->seat = (struct tw_gpu_seat){.at = at, .taken = true};
    }
    for (uint32_t at = 0; at < device->seats; at++)
        for (uint32_t i = 0; i < device->seats && device->ranks[at] != NULL; i++)
            if (i != at && device->ranks[i] != NULL)
                *ahead_of(device, i, at, 0) = maybe_running(device->ranks[at]);
}

static void seat_take(struct tw_gpu_device *device, struct tw_gpu *gpu, uint32_t at)
{
    const bool was_crowded = device->crowded;

    device->ranks[at] = gpu;
    gpu->seat = (struct tw_gpu_seat){.at = at, .taken = true};
    seat_clear(device, at);
    if (!was_crowded && is_crowded(device))
        count_begin(device);
    for (uint32_t i = 0; i < device->seats && was_crowded; i++)
        if (i != at && device->ranks[i] != NULL)
            *ahead_of(device, at, i, 0) = maybe_running(device->ranks[i]);
}

enum twill_status tw_gpu_blocks_join(struct tw_gpu *gpu)
{
    struct tw_gpu_device *device = gpu->shared;
    enum twill_status status = TWILL_OK;
    uint32_t at = 0;

    (void)pthread_mutex_lock(&device->lock);
    while (at < device->seats && device->ranks[at] != NULL)
        at++;
    if (at == device->seats)
        status = seats_grow(device);
    if (!tw_failed(status))
        seat_take(device, gpu, at);
    (void)pthread_mutex_unlock(&device->lock);
    return status;
}

void tw_gpu_blocks_leave(struct tw_gpu *gpu)
{
    struct tw_gpu_device *device = gpu->shared;

    if (!gpu->seat.taken)
        return;
    (void)pthread_mutex_lock(&device->lock);
    device->ranks[gpu->seat.at] = NULL;
    gpu->seat.taken = false;
    if (device->crowded && !is_crowded(device))
        __atomic_store_n(&device->crowded, false, __ATOMIC_SEQ_CST);
    (void)pthread_mutex_unlock(&device->lock);
}

/* ---- starting ----------------------------------------------------------------------------------
 */

static struct tw_gpu_device *device_of(const struct tw_gpu_start *start)
{
    return start->ranks[0]->shared;
}

/* What of a rank may run beside the kernel. */
static uint32_t beside(const struct tw_gpu_start *start, const struct tw_gpu *other)
{
    const struct tw_gpu_device *device = device_of(start);
    const int which = start->found->capturing;
    uint32_t most = 0;

    if (which == 1 && other->seat.capture != start->found->capture)
        return 0;
    for (uint32_t r = 0; r < start->count; r++) {
        const uint32_t one = *ahead_of(device, start->ranks[r]->seat.at, other->seat.at, which);

        if (other == start->ranks[r])
            return 0;
        most = one > most ? one : most;
    }
    return most;
}

/* All that may run, with the kernel. oldest: out: whose last kernel came first, of the ranks that
 * can be waited for, NULL: none */
static uint64_t blocks_sum(const struct tw_gpu_start *start, const struct tw_gpu **oldest)
{
    const struct tw_gpu_device *device = device_of(start);
    const int which = start->found->capturing;
    uint64_t sum = (uint64_t)start->count * start->blocks;

    *oldest = NULL;
    for (uint32_t i = 0; i < device->seats; i++) {
        const struct tw_gpu *other = device->ranks[i];
        const uint32_t blocks = other != NULL ? beside(start, other) : 0;

        sum += blocks;
        if (blocks > 0 && other->team != start->ranks[0]->team &&
            (*oldest == NULL || other->seat.last[which] < (*oldest)->seat.last[which]))
            *oldest = other;
    }
    return sum;
}

/* Nothing of another rank's last kernel, and so of its mates in that, may run beside the next. */
static void ahead_clear(const struct tw_gpu_start *start, const struct tw_gpu *other)
{
    const struct tw_gpu_device *device = device_of(start);
    const int which = start->found->capturing;
    const uint64_t number = other->seat.last[which];

    for (uint32_t i = 0; i < device->seats; i++) {
        const struct tw_gpu *mate = device->ranks[i];

        if (mate == NULL || (mate != other && (number == 0 || mate->seat.last[which] != number)))
            continue;
        for (uint32_t r = 0; r < start->count; r++)
            *ahead_of(device, start->ranks[r]->seat.at, i, which) = 0;
    }
}

/* The kernel comes after another rank's last one. */
static enum twill_status start_follow(const struct tw_gpu_start *start, const struct tw_gpu *other)
{
    const bool captured = start->found->capturing;
    enum twill_status status = TWILL_OK;

    if (captured || other->seat.stream != start->found->id) /* else as the stream has it */
        status =
            tw_cuda_event_await(other->device, captured ? other->mark : other->done, start->stream);
    if (!tw_failed(status))
        ahead_clear(start, other);
    return status;
}

enum twill_status tw_gpu_blocks_begin(struct tw_gpu_start *start)
{
    struct tw_gpu_device *device = device_of(start);
    enum twill_status status = TWILL_OK;
    const struct tw_gpu *oldest;

    (void)__atomic_add_fetch(&device->starting, 1, __ATOMIC_SEQ_CST);
    start->locked = __atomic_load_n(&device->crowded, __ATOMIC_SEQ_CST);
    if (!start->locked)
        return TWILL_OK;
    (void)__atomic_sub_fetch(&device->starting, 1, __ATOMIC_SEQ_CST);
    (void)pthread_mutex_lock(&device->lock);
    while (device->crowded && !start->at_once && !tw_failed(status) &&
           blocks_sum(start, &oldest) > device->budget && oldest != NULL)
        status = start_follow(start, oldest);
    return status;
}

/* Others have the rank's kernel ahead of them. */
static enum twill_status rank_note(const struct tw_gpu_start *start, struct tw_gpu *gpu)
{
    const struct tw_gpu_device *device = device_of(start);
    const int which = start->found->capturing;
    const bool first = which == 1 && gpu->seat.capture != start->found->capture;

    for (uint32_t i = 0; i < device->seats; i++) {
        uint32_t *ahead = ahead_of(device, i, gpu->seat.at, which);

        if (i != gpu->seat.at && (first || *ahead < start->blocks))
            *ahead = start->blocks;
    }
    gpu->seat.last[which] = device->starts;
    if (which == 0) {
        gpu->seat.stream = start->found->id;
        return TWILL_OK;
    }
    gpu->seat.capture = start->found->capture;
    return tw_cuda_event_record(device->number, gpu->mark, start->stream);
}

enum twill_status tw_gpu_blocks_end(struct tw_gpu_start *start, enum twill_status status)
{
    struct tw_gpu_device *device = device_of(start);

    if (!start->locked) {
        (void)__atomic_sub_fetch(&device->starting, 1, __ATOMIC_SEQ_CST);
        return status;
    }
    device->starts++;
    for (uint32_t r = 0; r < start->count && device->crowded && !tw_failed(status); r++)
        status = rank_note(start, start->ranks[r]);
    (void)pthread_mutex_unlock(&device->lock);
    return status;
}
