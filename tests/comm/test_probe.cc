/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: devices that are tried with each other's memory, made up ones. Never knows: ranks. */
#include <gtest/gtest.h>

#include "fake_gpu.h"

extern "C" {
#include "base/time.h"
#include "device/probe.h"
}

namespace
{

class Probe : public ::testing::Test
{
  protected:
    void SetUp() override { fake::reset(5); }
    void TearDown() override
    {
        for (const std::string &what : fake::misuse())
            ADD_FAILURE() << "CUDA was misused: " << what;
        for (int i = 0; i < 5; i++)
            EXPECT_EQ(fake::bytes_of(i), 0u) << "device " << i;
    }
    /* "0>1 there is no peer access" of each pair where something is in the way */
    static std::vector<std::string> all(int count)
    {
        std::vector<enum tw_gap> gaps((size_t)(count * count), TW_GAP_COUNT);
        std::vector<std::string> found;
        EXPECT_EQ(tw_probe_all(count, TW_NEVER, gaps.data()), TWILL_OK) << tw_fail_text();
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count; j++)
                if (gaps[(size_t)(i * count + j)] != TW_GAP_NONE)
                    found.push_back(std::to_string(i) + ">" + std::to_string(j) + " " +
                                    tw_gap_text(gaps[(size_t)(i * count + j)]));
        return found;
    }
    typedef std::vector<std::string> Texts;
};

TEST_F(Probe, AllReachEachOther)
{
    EXPECT_EQ(all(1), Texts());
    EXPECT_EQ(all(5), Texts());
}

TEST_F(Probe, EachPairHasItsOwnReason)
{
    fake::cut(0, 1);
    fake::lie(1, 0, fake::LOST);
    fake::lie(2, 3, fake::STALE);
    fake::lie(3, 2, fake::TWISTED_READS);
    fake::lie(4, 1, fake::TWISTED_WRITES);
    EXPECT_EQ(all(5), (Texts{"0>1 there is no peer access", "1>0 the self-test's writes are lost",
                             "2>3 the self-test's reads find nothing",
                             "3>2 the self-test's reads find other bytes than are there",
                             "4>1 the self-test's writes arrive as other bytes"}));
}

TEST_F(Probe, ADeviceWithoutMemoryIsAnError)
{
    enum tw_gap gaps[9];
    fake::full_device = 2;
    EXPECT_EQ(tw_probe_all(3, TW_NEVER, gaps), TWILL_ERR_NOMEM);
}

TEST_F(Probe, MoreDevicesThanCanBeTried)
{
    EXPECT_EQ(tw_probe_all(65, TW_NEVER, nullptr), TWILL_ERR_UNSUPPORTED);
}

/* A device that is busy: the wait ends at the deadline, or when nobody waits any more. */
TEST_F(Probe, TheWaitIsBounded)
{
    uint32_t seen[TW_GK_PROBE_ITEMS];
    alignas(4) char spots[2][TW_PROBE_SPOT_BYTES] = {};
    struct tw_probe_memory own = {spots[0], spots[1], 7, false};
    struct tw_probe_side side = {0, 0, 1, &own, seen, TW_NEVER, nullptr};
    enum tw_gap gap = TW_GAP_COUNT;
    int cancel = 0;

    fake::mark(spots, sizeof spots, TW_CUDA_DEVICE, 0);
    fake::busy = true;
    side.deadline_ns = tw_now_ns() + 2 * TW_NS_MS;
    EXPECT_EQ(tw_probe_run(&side, TW_PROBE_OFFER, &gap), TWILL_ERR_TIMEOUT);
    side.deadline_ns = TW_NEVER;
    side.cancel = &cancel;
    cancel = 1;
    EXPECT_EQ(tw_probe_run(&side, TW_PROBE_OFFER, &gap), TWILL_ERR_ABORTED);
    fake::busy = false;
    EXPECT_EQ(tw_probe_run(&side, TW_PROBE_LOOK, &gap), TWILL_OK);
    EXPECT_EQ(gap, TW_GAP_NONE);
    for (size_t i = 0; i < sizeof spots; i++)
        EXPECT_EQ(((char *)spots)[i], 0);
    fake::reset(5);
}

TEST_F(Probe, EveryGapHasASentence)
{
    for (int gap = 0; gap < TW_GAP_COUNT; gap++)
        EXPECT_STRNE(tw_gap_text((enum tw_gap)gap), "unknown") << gap;
    EXPECT_STREQ(tw_gap_text(TW_GAP_COUNT), "unknown");
}

} // namespace
