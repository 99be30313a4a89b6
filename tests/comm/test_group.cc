/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what an open group notes and forgets. Never knows: how its calls run. */
#include "../api/world.h"

extern "C" {
#include "comm/group.h"
}

namespace
{

TEST(GroupNotes, DepthIsOfTheThread)
{
    EXPECT_FALSE(tw_group_active());
    ASSERT_EQ(tw_group_start(), TWILL_OK);
    ASSERT_EQ(tw_group_start(), TWILL_OK);
    world::threads(1, [](int) {
        EXPECT_FALSE(tw_group_active());
        EXPECT_EQ(tw_group_end(), TWILL_ERR_USAGE);
    });
    EXPECT_EQ(tw_group_end(), TWILL_OK);
    EXPECT_TRUE(tw_group_active());
    EXPECT_EQ(tw_group_end(), TWILL_OK);
    EXPECT_FALSE(tw_group_active());
    EXPECT_EQ(tw_group_end(), TWILL_ERR_USAGE);
}

/* The communicator is failed: its calls end at once, each with the sentence. */
TEST(GroupNotes, ManyCallsAndTheirStreams)
{
    struct twill_comm comm = {};
    struct tw_ops ops = {};
    comm.size = 2;
    comm.ops = &ops;
    ops.comm = &comm;
    comm.key = 5;
    comm.failing = TWILL_ERR_PEER;
    comm.status = TWILL_ERR_PEER;
    snprintf(comm.failure, sizeof comm.failure, "rank 1 is gone");
    struct tw_stream *stream = nullptr;
    ASSERT_EQ(tw_stream_create(&stream), TWILL_OK);
    ASSERT_EQ(tw_group_start(), TWILL_OK);
    struct tw_call call = {};
    call.comm = &comm;
    for (int i = 0; i < 100; i++)
        ASSERT_EQ(tw_group_add_call(&call), TWILL_OK);
    EXPECT_FALSE(tw_group_uses_stream(stream));
    EXPECT_EQ(tw_group_end(), TWILL_ERR_PEER);
    EXPECT_STREQ(tw_last_error_find(0), "rank 1 is gone");
    EXPECT_STREQ(tw_last_error_find(comm.key), "rank 1 is gone");
    EXPECT_EQ(comm.user, 0u) << "claimed only while it runs";
    ASSERT_EQ(tw_group_start(), TWILL_OK);
    EXPECT_EQ(tw_group_end(), TWILL_OK) << "nothing is left of the first one";
    EXPECT_EQ(tw_stream_destroy(stream), TWILL_OK);
}

TEST(GroupNotes, BusyCommunicatorRunsNothing)
{
    struct twill_comm comms[2] = {};
    struct tw_ops ops[2] = {};
    struct tw_call call = {};
    for (int i = 0; i < 2; i++) {
        comms[i].ops = &ops[i];
        ops[i].comm = &comms[i];
        comms[i].failing = TWILL_ERR_PEER;
        comms[i].status = TWILL_ERR_PEER;
    }
    world::threads(1, [&](int) { ASSERT_EQ(tw_ops_claim(&comms[1], "test"), TWILL_OK); });
    ASSERT_EQ(tw_group_start(), TWILL_OK);
    for (struct twill_comm &comm : comms) {
        call.comm = &comm;
        ASSERT_EQ(tw_group_add_call(&call), TWILL_OK);
    }
    EXPECT_EQ(tw_group_end(), TWILL_ERR_BUSY);
    EXPECT_EQ(comms[0].user, 0u);
    EXPECT_NE(comms[1].user, 0u);
}

} // namespace
