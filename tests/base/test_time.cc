/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/time.c. Never knows: what is waited for. */
#include <climits>
#include <gtest/gtest.h>

extern "C" {
#include "base/time.h"
}

namespace
{

TEST(Time, NeverGoesBack)
{
    uint64_t last = tw_now_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = tw_now_ns();
        ASSERT_GE(now, last);
        last = now;
    }
}

TEST(Time, DeadlinesDoNotOverflow)
{
    EXPECT_EQ(TW_NEVER, tw_deadline_ns(0));
    EXPECT_EQ(TW_NEVER, tw_deadline_ns(UINT64_MAX));
    EXPECT_EQ(TW_NEVER, tw_deadline_ns(UINT64_MAX - 1));
    uint64_t before = tw_now_ns();
    uint64_t deadline = tw_deadline_ns(TW_NS_S);
    uint64_t after = tw_now_ns();
    EXPECT_GE(deadline, before + TW_NS_S);
    EXPECT_LE(deadline, after + TW_NS_S);
}

TEST(Time, PollMilliseconds)
{
    EXPECT_EQ(-1, tw_deadline_poll_ms(TW_NEVER));
    EXPECT_EQ(0, tw_deadline_poll_ms(0));
    EXPECT_EQ(0, tw_deadline_poll_ms(tw_now_ns()));
    EXPECT_EQ(INT_MAX, tw_deadline_poll_ms(TW_NEVER - 1));
    EXPECT_EQ(INT_MAX, tw_deadline_poll_ms(tw_now_ns() + (1ull << 62)));
    /* rounded up: waiting that long is never too short */
    int ms = tw_deadline_poll_ms(tw_now_ns() + 100 * TW_NS_S);
    EXPECT_GE(100000, ms);
    EXPECT_LT(90000, ms);
}

TEST(Time, BackoffSpinsThenYieldsThenSleeps)
{
    struct tw_backoff backoff;
    tw_backoff_init(&backoff, false);
    ASSERT_LT(0u, backoff.spin_limit);
    for (uint32_t i = 0; i < backoff.spin_limit; i++)
        ASSERT_FALSE(tw_backoff_wait(&backoff)) << i;
    for (uint32_t i = 0; i < backoff.yield_limit; i++)
        ASSERT_TRUE(tw_backoff_wait(&backoff)) << i;
    uint64_t before = tw_now_ns();
    EXPECT_TRUE(tw_backoff_wait(&backoff));
    EXPECT_LE(before + 50000, tw_now_ns()) << "sleeps once yielding has not helped";
    tw_backoff_reset(&backoff);
    EXPECT_FALSE(tw_backoff_wait(&backoff));
}

TEST(Time, CrowdedYieldsAtOnce)
{
    struct tw_backoff backoff;
    tw_backoff_init(&backoff, true);
    EXPECT_TRUE(tw_backoff_wait(&backoff));
}

TEST(Time, BackoffCountersDoNotWrap)
{
    struct tw_backoff backoff;
    tw_backoff_init(&backoff, false);
    backoff.yield_limit = UINT32_MAX;
    backoff.spins = UINT32_MAX - 1;
    for (int i = 0; i < 5; i++)
        EXPECT_TRUE(tw_backoff_wait(&backoff));
    EXPECT_EQ(UINT32_MAX, backoff.spins);
}

} // namespace
