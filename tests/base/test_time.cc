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
    tw_backoff_init(&backoff, {300, 20});
    for (uint32_t i = 0; i < 300; i++)
        ASSERT_FALSE(tw_backoff_wait(&backoff)) << i;
    for (uint32_t i = 0; i < 20; i++)
        ASSERT_TRUE(tw_backoff_wait(&backoff)) << i;
    uint64_t before = tw_now_ns();
    EXPECT_TRUE(tw_backoff_wait(&backoff));
    EXPECT_LE(before + 50000, tw_now_ns()) << "sleeps once yielding has not helped";
    tw_backoff_reset(&backoff);
    EXPECT_FALSE(tw_backoff_wait(&backoff));
}

/* Whatever a pause takes on this CPU. */
TEST(Time, SpinsAsLongAsIsPromised)
{
    const uint64_t pause_ps = tw_pause_ps();
    EXPECT_GE(pause_ps, 1000u);
    EXPECT_LT(pause_ps, 100000000u) << "0.1 ms for one pause";
    const struct tw_patience patience = tw_patience_for(pause_ps, false);
    EXPECT_GE(patience.spins * pause_ps, TW_SPIN_NS * 1000);
    EXPECT_LE(patience.spins * pause_ps, 10 * TW_SPIN_NS * 1000);
    struct tw_backoff backoff;
    tw_backoff_init(&backoff, patience);
    uint64_t start = tw_now_ns();
    while (!tw_backoff_wait(&backoff)) {
    }
    EXPECT_GE(tw_now_ns() - start, TW_SPIN_NS);
}

TEST(Time, PatienceSuitsAnyPause)
{
    for (const uint64_t ps : {(uint64_t)0, (uint64_t)1000, (uint64_t)140000, (uint64_t)1 << 60}) {
        const struct tw_patience patience = tw_patience_for(ps, false);
        EXPECT_GE(patience.spins, 1u);
        EXPECT_LE(patience.spins, 1000000u);
        EXPECT_GT(patience.yields, 0u);
    }
}

TEST(Time, CrowdedYieldsAtOnce)
{
    const struct tw_patience crowded = tw_patience_for(50000, true);
    struct tw_backoff backoff;
    tw_backoff_init(&backoff, crowded);
    EXPECT_TRUE(tw_backoff_wait(&backoff));
    EXPECT_GT(crowded.yields, tw_patience_for(50000, false).yields);
}

TEST(Time, WhoPollsTwoSpinsHalfAsOften)
{
    struct tw_patience both = tw_patience_both({100, 3}, {100, 50});
    EXPECT_EQ(50u, both.spins);
    EXPECT_EQ(50u, both.yields);
    EXPECT_EQ(33u, tw_patience_both(both, {100, 0}).spins);
    EXPECT_EQ(0u, tw_patience_both({0, 3}, {100, 50}).spins) << "crowded";
    EXPECT_EQ(0u, tw_patience_both({0, 3}, {0, 50}).spins);
    both = tw_patience_both({UINT32_MAX, 0}, {100, 3});
    EXPECT_EQ(100u, both.spins);
    EXPECT_EQ(3u, both.yields);
}

TEST(Time, BackoffCountersDoNotWrap)
{
    struct tw_backoff backoff;
    tw_backoff_init(&backoff, {10, UINT32_MAX});
    backoff.spins = UINT32_MAX - 1;
    for (int i = 0; i < 5; i++)
        EXPECT_TRUE(tw_backoff_wait(&backoff));
    EXPECT_EQ(UINT32_MAX, backoff.spins);
}

} // namespace
