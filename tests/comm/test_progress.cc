/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the queues of the progress engine: their order, who is woken, who frees what, and what a
 * destroyed rank waits for.
 * Never knows: what items do: these fail or wait. */
#include <cstring>

#include "../api/world.h"

extern "C" {
#include "comm/ops.h"
}

namespace
{

/* A failed communicator with a queue: its items end in the first round, in order. */
struct Failed {
    Failed()
    {
        comm.size = 2;
        comm.ops = &ops;
        ops.comm = &comm;
        comm.failing = TWILL_ERR_ABORTED;
        comm.status = TWILL_ERR_ABORTED;
        strcpy(comm.failure, "given up");
    }
    struct twill_comm comm = {};
    struct tw_ops ops = {};
};

struct Engine {
    Engine() { EXPECT_EQ(tw_progress_create(&progress), TWILL_OK); }
    ~Engine() { tw_progress_destroy(progress); }
    struct tw_progress *progress = nullptr;
};

struct tw_item *item_of(struct twill_comm *comm, struct tw_stream *stream)
{
    struct tw_item *item = tw_item_create(comm, false, 1);
    struct tw_call call = {};
    call.comm = comm;
    call.stream = stream;
    tw_op_init(&item->ops[0], &call);
    item->waited = !stream;
    return item;
}

TEST(Progress, ComesAndGoesWithoutWork)
{
    Engine engine;
    tw_progress_wake(engine.progress);
    tw_progress_destroy(nullptr);
}

TEST(Progress, WaitedItemsAreTheWaitersToFree)
{
    Engine engine;
    Failed a, b;
    struct tw_item *items[] = {item_of(&a.comm, nullptr), item_of(&a.comm, nullptr),
                               item_of(&b.comm, nullptr)};
    ASSERT_EQ(tw_progress_submit(engine.progress, items, 3), TWILL_OK);
    for (struct tw_item *item : items) {
        tw_progress_wait(engine.progress, item);
        EXPECT_EQ(item->status, TWILL_ERR_ABORTED);
        EXPECT_STREQ(item->text, "given up");
        free(item);
    }
    tw_progress_drain(engine.progress, &a.ops, false);
    tw_progress_drain(engine.progress, &b.ops, false);
    EXPECT_EQ(a.ops.pending, 0u);
    EXPECT_EQ(b.ops.pending, 0u);
}

TEST(Progress, StreamTakesTheFirstErrorAndGivesItOnce)
{
    Engine engine;
    Failed a;
    struct tw_stream *stream = nullptr;
    ASSERT_EQ(tw_stream_create(&stream), TWILL_OK);
    EXPECT_EQ(tw_progress_stream(engine.progress, stream, true), TWILL_OK);
    struct tw_item *items[] = {item_of(&a.comm, stream), item_of(&a.comm, stream)};
    ASSERT_EQ(tw_progress_submit(engine.progress, items, 2), TWILL_OK);
    EXPECT_EQ(tw_progress_stream(engine.progress, stream, true), TWILL_ERR_ABORTED);
    EXPECT_STREQ(tw_last_error_find(0), "given up");
    EXPECT_EQ(tw_progress_stream(engine.progress, stream, false), TWILL_OK);
    tw_progress_drain(engine.progress, &a.ops, false);
    EXPECT_EQ(tw_stream_destroy(stream), TWILL_OK);
}

TEST(Progress, ManyThreadsSubmitAndWait)
{
    Engine engine;
    Failed comms[4];
    world::threads(4, [&](int i) {
        for (int round = 0; round < 200; round++) {
            struct tw_item *item = item_of(&comms[i].comm, nullptr);
            ASSERT_EQ(tw_progress_submit(engine.progress, &item, 1), TWILL_OK);
            tw_progress_wait(engine.progress, item);
            ASSERT_TRUE(item->done);
            free(item);
        }
    });
}

/* ---- batches ----------------------------------------------------------------------------------
 */

struct Batch {
    explicit Batch(const std::vector<std::pair<bool, size_t>> &calls)
    {
        comm.rank = 1;
        comm.size = 2;
        item = tw_item_create(&comm, true, (uint32_t)calls.size());
        for (size_t i = 0; i < calls.size(); i++) {
            struct tw_call call = {};
            call.info.coll = TW_COLL_P2P;
            call.info.peer = 1;
            call.info.is_send = calls[i].first;
            call.info.count = calls[i].second;
            call.info.type = TWILL_INT32;
            tw_op_init(&item->ops[i], &call);
        }
    }
    ~Batch() { free(item); }
    struct twill_comm comm = {};
    struct tw_item *item;
};

TEST(BatchCheck, SendsToItselfPairInOrder)
{
    EXPECT_EQ(tw_batch_check(Batch({}).item), TWILL_OK);
    EXPECT_EQ(tw_batch_check(Batch({{true, 3}, {false, 3}}).item), TWILL_OK);
    EXPECT_EQ(tw_batch_check(Batch({{false, 3}, {false, 4}, {true, 3}, {true, 4}}).item), TWILL_OK);
    EXPECT_EQ(tw_batch_check(Batch({{true, 3}}).item), TWILL_ERR_USAGE);
    EXPECT_NE(strstr(tw_fail_text(), "no recv"), nullptr);
    EXPECT_EQ(tw_batch_check(Batch({{false, 3}, {true, 3}, {false, 1}}).item), TWILL_ERR_USAGE);
    EXPECT_NE(strstr(tw_fail_text(), "recv number 1"), nullptr) << tw_fail_text();
    EXPECT_EQ(tw_batch_check(Batch({{true, 3}, {false, 4}}).item), TWILL_ERR_USAGE);
    EXPECT_NE(strstr(tw_fail_text(), "3 elements of int32, its recv 4"), nullptr) << tw_fail_text();
}

} // namespace
