/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a stream's life: it holds the process state from its first call on. Never knows: what runs
 * on it. */
#include "../api/world.h"

extern "C" {
#include "comm/ops.h"
}

namespace
{

TEST(StreamLife, UnusedOnesNeedNoProcessState)
{
    struct tw_stream *stream = nullptr;
    ASSERT_EQ(tw_stream_create(&stream), TWILL_OK);
    EXPECT_TRUE(tw_stream_alive(stream));
    EXPECT_EQ(stream->proc, nullptr);
    EXPECT_EQ(tw_stream_synchronize(stream), TWILL_OK);
    EXPECT_EQ(tw_stream_query(stream), TWILL_OK);
    EXPECT_EQ(tw_stream_destroy(stream), TWILL_OK);
    struct tw_stream none = {};
    EXPECT_FALSE(tw_stream_alive(&none));
}

/* A stream outlives the communicators that used it. */
TEST(StreamLife, OutlivesTheLastCommunicator)
{
    world::run_alone([] {
        struct tw_stream *stream = nullptr;
        ASSERT_EQ(tw_stream_create(&stream), TWILL_OK);
        for (int round = 0; round < 3; round++) {
            twill_comm_t comm = nullptr;
            ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
            int x = 5;
            ASSERT_OK(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, stream), comm);
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
            EXPECT_NE(stream->proc, nullptr);
            EXPECT_EQ(tw_stream_synchronize(stream), TWILL_OK);
            EXPECT_EQ(x, 5);
        }
        EXPECT_EQ(tw_stream_destroy(stream), TWILL_OK);
    });
}

} // namespace
