/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sends and receives of a batch: each list by groups of threads of its own.
 * Never knows: element types, who made the lists, how an operation is cut (p2p.cuh).
 */
#include "device/cuda/kernels.cuh"
#include "device/cuda/p2p.cuh"

#define NO_LIST UINT32_MAX

/* ---- operations --------------------------------------------------------------------------------
 */

/* As the host tells it. */
static __device__ inline void words_of(const struct tw_gk_op *op, uint32_t is_send, uint32_t peer,
                                       uint32_t words[TW_GK_WORDS])
{
    words[TW_GK_WORD_CALL] = TW_GK_P2P_WORD(op->type, is_send);
    words[TW_GK_WORD_PATH] = peer << 16;
    words[TW_GK_WORD_COUNT] = (uint32_t)op->bytes;
    words[TW_GK_WORD_COUNT + 1] = (uint32_t)(op->bytes >> 32);
}

/* A warp turns to an operation; its first thread, if it alone waits. */
static __device__ inline void op_begin(struct list *list, const struct tw_gk_op *op,
                                       uint32_t number)
{
    list->me.epoch = number;
    if (lane_of(list) == 0)
        words_of(op, op->kind == TW_GK_SEND, (uint32_t)list->peer,
                 list->share->words[warp_of(list)]);
}

/* What the receiver takes, if it is there. */
static __device__ inline bool post_read(const struct list *list, uint32_t number,
                                        uint32_t words[TW_GK_WORDS])
{
    const struct tw_gk_record *post =
        &door_of(list->me.call, list->me.call->rank, list->peer)->posts[number % TW_GK_POSTS];
    bool whole = true;

    for (int i = 0; i < TW_GK_WORD_IN; i += 2)
        whole &= tw_load_pairs(post->pair[i], number, &words[i], &words[i + 1]);
    return whole;
}

/* The first of the rank's failures is told to the host. */
static __device__ inline void op_mismatch(const struct list *list, const uint32_t *theirs)
{
    struct tw_gk_host *host = list->me.call->host;

    if (atomicExch(&list->me.call->state->failed, 1) != 0)
        return;
    for (int i = 0; i < TW_GK_WORD_OUT; i++) {
        tw_store(&host->mine[i], list->share->words[0][i]);
        tw_store(&host->theirs[i], theirs[i]);
    }
    tw_store(&host->trouble_peer, (uint32_t)list->peer);
    tw_store(&host->trouble_epoch, list->me.epoch);
    tw_store_release(&host->trouble, TW_GK_MISMATCH);
}

/* The first thread of a sender: until the receiver's post is there, and is what is sent. */
static __device__ inline void post_match(struct list *list, const struct tw_gk_op *op)
{
    struct tw_block *me = &list->me;
    const uint32_t *mine = list->share->words[0];
    uint32_t words[TW_GK_WORDS];

    if (!tw_wait_until(me, list->peer, [&] { return post_read(list, me->epoch, words); }))
        return;
    list->share->to = tw_reached(me->call, list->peer, words, TW_GK_WORD_OUT);
    if (words[TW_GK_WORD_CALL] == TW_GK_P2P_WORD(op->type, 0) &&
        words[TW_GK_WORD_COUNT] == mine[TW_GK_WORD_COUNT] &&
        words[TW_GK_WORD_COUNT + 1] == mine[TW_GK_WORD_COUNT + 1])
        return;
    op_mismatch(list, words);
    me->dead = true;
}

/* The first thread: the group has sent `some` pieces, the last of all that it has to send. */
static __device__ inline void op_sent(const struct list *list, uint64_t some, uint64_t all)
{
    const bool direct = list->share->to != nullptr; /* else data says itself that it is there */
    const struct tw_gk_call *call = list->me.call;
    const uint32_t number = list->me.epoch;
    uint32_t *pieces = &call->state->pieces[list->peer][number % TW_GK_POSTS];
    uint32_t *done = &door_of(call, list->peer, call->rank)->done[number % TW_GK_POSTS];

    if (some != all) {
        if (direct)
            __threadfence_system(); /* what the group has written comes before the count */
        if (atomicAdd(pieces, (uint32_t)some) + (uint32_t)some != (uint32_t)all)
            return;
        atomicExch(pieces, 0);
        __threadfence();
    }
    if (direct)
        tw_store_release(done, number);
    else
        tw_store(done, number);
}

/* False: the communicator has failed. */
static __device__ inline bool op_send(struct list *list, const struct tw_gk_op *op, uint32_t number)
{
    struct piece piece = piece_first(list, op->bytes, number);
    uint64_t some = 0;

    if (!piece_is(&piece))
        return true;
    op_begin(list, op, number);
    if (is_first(list))
        post_match(list, op);
    if (!group_goes_on(list))
        return false;
    char *to = list->share->to;
    for (; piece_is(&piece); piece_next(list, &piece), some++) {
        const uint64_t at = piece_at(list, &piece);
        const uint64_t bytes = piece_bytes(list, &piece, op->bytes);
        const struct part part = part_of(list, &piece, bytes);

        if (to != nullptr)
            tw_copy(to + at, op->at + at, bytes, (uint32_t)list->me.thread, TW_GK_GROUP);
        else
            part_push(list, &part, op->at + at, op->elem);
    }
    if (!group_goes_on(list))
        return false;
    if (is_first(list))
        op_sent(list, some, pieces_of(list, op->bytes));
    return true;
}

/* Each warp goes on when it can, also to the next operation. */
static __device__ inline void op_take(struct list *list, const struct tw_gk_op *op, uint32_t number)
{
    struct piece piece = piece_first(list, op->bytes, number);

    if (op->bytes == 0 || op->word != 0)
        return;
    op_begin(list, op, number);
    for (; piece_is(&piece); piece_next(list, &piece)) {
        const struct part part = part_of(list, &piece, piece_bytes(list, &piece, op->bytes));

        part_pull(list, &part, op->at + piece_at(list, &piece), op->elem);
    }
}

/* The first thread of a receiver: until all of an operation has been sent. */
static __device__ inline void done_wait(struct list *list, uint32_t number)
{
    const struct tw_gk_call *call = list->me.call;

    tw_wait_count(&list->me, list->peer,
                  &door_of(call, call->rank, list->peer)->done[number % TW_GK_POSTS], number);
}

/* The first thread of a receiver tells the sender what it takes. */
static __device__ inline void op_post(struct list *list, const struct tw_gk_op *op, uint32_t number)
{
    const struct tw_gk_call *call = list->me.call;
    struct tw_gk_record *post = &door_of(call, list->peer, call->rank)->posts[number % TW_GK_POSTS];
    uint32_t words[TW_GK_WORDS];

    done_wait(list, number - TW_GK_POSTS);
    if (list->me.dead)
        return;
    words_of(op, 0, (uint32_t)call->rank, words);
    words[TW_GK_WORD_OUT] = (uint32_t)op->word;
    words[TW_GK_WORD_OUT + 1] = (uint32_t)(op->word >> 32);
    for (int i = 0; i < TW_GK_WORD_IN; i += 2)
        tw_store_pairs(post->pair[i], words[i], words[i + 1], number);
}

/* ---- lists -------------------------------------------------------------------------------------
 */

static __device__ inline void list_send(struct list *list)
{
    struct tw_gk_counts *counts = list->me.call->state->counts[list->peer];
    uint32_t *uses = list->share->uses;

    slots_each(list, [&](uint32_t slot) { uses[slot] = counts[slot].sent; });
    tw_group_sync();
    for (uint32_t i = 0; i < list->ops->ops; i++)
        if (!op_send(list, &list->ops[i], list->number + 1 + i))
            return;
    tw_group_sync();
    slots_each(list, [&](uint32_t slot) { counts[slot].sent = uses[slot]; });
}

/* By slots: the list's first group posts. */
static __device__ inline void list_take(struct list *list)
{
    struct tw_gk_counts *counts = list->me.call->state->counts[list->peer];
    uint32_t *uses = list->share->uses;
    uint32_t posted = 0;

    slots_each(list, [&](uint32_t slot) { uses[slot] = counts[slot].taken; });
    tw_group_sync();
    for (uint32_t i = 0; i < list->ops->ops; i++) {
        if (is_first(list) && list->group == 0) {
            op_begin(list, &list->ops[i], list->number + 1 + i);
            for (; posted < list->ops->ops && posted < i + TW_GK_POSTS; posted++)
                op_post(list, &list->ops[posted], list->number + 1 + posted);
        }
        op_take(list, &list->ops[i], list->number + 1 + i);
    }
    if (!group_goes_on(list))
        return;
    slots_each(list, [&](uint32_t slot) { counts[slot].taken = uses[slot]; });
    /* what did not go by slots has not been waited for */
    if (is_first(list) && list->group == 0) {
        op_begin(list, &list->ops[list->ops->ops - 1], list->number + list->ops->ops);
        for (uint32_t i = list->ops->ops < TW_GK_POSTS ? list->ops->ops : TW_GK_POSTS; i > 0; i--)
            done_wait(list, list->number + list->ops->ops + 1 - i);
    }
}

/* Where the sender does everything: a thread posts and waits. */
static __device__ inline void list_await(struct list *list)
{
    uint32_t posted = 0;

    if (!is_first(list))
        return;
    for (uint32_t i = 0; i < list->ops->ops && !list->me.dead; i++) {
        op_begin(list, &list->ops[i], list->number + 1 + i);
        for (; posted < list->ops->ops && posted < i + TW_GK_POSTS; posted++)
            op_post(list, &list->ops[posted], list->number + 1 + posted);
        done_wait(list, list->number + 1 + i);
    }
}

static __device__ inline void list_self(const struct list *list)
{
    for (uint32_t i = 0; i < list->ops->ops; i += 2) {
        const struct tw_gk_op *from = &list->ops[i], *to = &list->ops[i + 1];
        struct piece piece = piece_first(list, from->bytes, i / 2);

        for (; from->bytes != 0 && from->at != to->at && piece_is(&piece);
             piece_next(list, &piece)) {
            const uint64_t at = piece_at(list, &piece);

            tw_copy(to->at + at, from->at + at, piece_bytes(list, &piece, from->bytes),
                    (uint32_t)list->me.thread, TW_GK_GROUP);
        }
    }
}

/* The group that ends last moves the number on: it is seen by the next kernel. */
static __device__ inline void list_end(const struct list *list)
{
    struct tw_gk_way *way = &list->me.call->state->ways[list->peer][list->ops->kind == TW_GK_RECV];

    tw_group_sync(); /* all threads have read the number */
    if (!is_first(list))
        return;
    if (list->groups > 1 && atomicAdd(&way->ended, 1) != list->groups - 1)
        return;
    way->ended = 0;
    way->number = list->number + list->ops->ops;
}

/* ---- the kernel --------------------------------------------------------------------------------
 */

/* All of the group: the list that it is of. */
static __device__ inline uint32_t list_find(const struct tw_gk_op *ops, uint32_t count,
                                            uint32_t place, uint32_t group, struct share *share)
{
    const uint32_t thread = threadIdx.x % TW_GK_GROUP;

    if (thread == 0)
        share->list = NO_LIST;
    tw_group_sync();
    for (uint32_t i = thread; i < count; i += TW_GK_GROUP)
        if (ops[i].ops != 0 && ops[i].place == place && group >= ops[i].group &&
            group < (uint32_t)ops[i].group + ops[i].groups)
            share->list = i;
    tw_group_sync();
    return share->list;
}

static __device__ inline void list_begin(const struct tw_gk_launch *launch,
                                         const struct tw_gk_op *ops, uint32_t place, uint32_t group,
                                         struct list *list)
{
    const struct tw_gk_call *call = &launch->call[place];
    struct tw_block *me = &list->me;

    me->call = call;
    me->pairs = nullptr;
    me->block = blockIdx.x;
    me->blocks = gridDim.x;
    me->thread = (int)(threadIdx.x % TW_GK_GROUP);
    me->dead = false;
    me->keeps = false;
    me->words = list->share->words[warp_of(list)];
    list->ops = ops;
    list->peer = ops->peer;
    list->direct = ops->direct != 0;
    list->group = group - ops->group;
    list->groups = ops->groups;
    list->ways = list->direct ? list->groups : tw_slots(call) / WARPS;
    list->piece_bytes = list->direct ? PIECE_BYTES : SLOTS_BYTES;
    list->number = tw_load(&call->state->ways[list->peer][ops->kind == TW_GK_RECV].number);
    me->epoch = list->number + ops->ops;
}

static __device__ inline void batch_run(const struct tw_gk_launch *launch,
                                        const struct tw_gk_op *ops, uint32_t count)
{
    __shared__ struct share shares[TW_GK_THREADS / TW_GK_GROUP];
    const uint32_t place = blockIdx.y;
    const uint32_t group = blockIdx.x * (blockDim.x / TW_GK_GROUP) + threadIdx.x / TW_GK_GROUP;
    struct list list;

    list.share = &shares[threadIdx.x / TW_GK_GROUP];
    const uint32_t at = list_find(ops, count, place, group, list.share);
    if (at == NO_LIST)
        return;
    list_begin(launch, ops + at, place, group, &list);
    if (list.ops->kind == TW_GK_SELF)
        list_self(&list);
    else if (list.ops->kind == TW_GK_SEND)
        list_send(&list);
    else if (list.direct)
        list_await(&list);
    else
        list_take(&list);
    if (list.ops->kind != TW_GK_SELF)
        list_end(&list);
}

__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_gk_p2p_few(const __grid_constant__ struct tw_gk_launch_few launch)
{
    batch_run(&launch.launch, launch.op, launch.ops);
}

__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_gk_p2p_many(const __grid_constant__ struct tw_gk_launch_p2p launch)
{
    batch_run(&launch.launch, launch.op, launch.ops);
}
