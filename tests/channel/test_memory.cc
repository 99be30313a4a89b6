/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory that ranks have for each other beside their chans, in one process and in several.
 * Never knows: how the transports are made. */
#include "chans.h"

using namespace chans;

namespace
{

const size_t BYTES = (size_t)1 << 20;

struct Blobs {
    tw_blob of[kRanksMax];
    void *at[kRanksMax];
};

/* The piece of rank i, as this process has it. */
char *piece(Rank &me, struct tw_chan_memory *memory, const Blobs &blobs, int i)
{
    void *at = blobs.at[i];
    if (!tw_chan_same_process(me.chan, i)) {
        EXPECT_EQ(TWILL_OK, tw_chan_memory_map(memory, i, &blobs.of[i], BYTES, &at))
            << tw_fail_text();
    }
    return static_cast<char *>(at);
}

class ChanMemory : public testing::TestWithParam<Layout>
{
};

TEST_P(ChanMemory, EveryRankWritesIntoEveryOthers)
{
    Shared<Blobs> blobs;
    run(GetParam(), Options(), [&](Rank &me) {
        struct tw_chan_memory *memory = nullptr;
        ASSERT_EQ(TWILL_OK, tw_chan_memory_create(me.chan, BYTES, &memory, &blobs->of[me.rank]))
            << tw_fail_text();
        char *own = static_cast<char *>(tw_chan_memory_own(memory));
        blobs->at[me.rank] = own;
        EXPECT_EQ(own[0], 0);
        EXPECT_EQ(own[BYTES - 1], 0);
        me.place->meeting.meet();
        for (int i = 0; i < me.size; i++)
            if (i != me.rank) {
                char *at = piece(me, memory, *blobs, i);
                ASSERT_NE(at, nullptr);
                EXPECT_EQ((uintptr_t)at % 4096, 0u);
                at[me.rank] = at[BYTES - 1 - (size_t)me.rank] = (char)(1 + me.rank);
            }
        me.place->meeting.meet();
        for (int i = 0; i < me.size; i++) {
            EXPECT_EQ(own[i], i == me.rank ? 0 : 1 + i);
            EXPECT_EQ(own[BYTES - 1 - (size_t)i], i == me.rank ? 0 : 1 + i);
        }
        me.place->meeting.meet();
        tw_chan_memory_destroy(memory);
    });
}

INSTANTIATE_TEST_SUITE_P(All, ChanMemory,
                         testing::Values(Layout{1, 2}, Layout{2, 1}, Layout{3, 1}, Layout{2, 2}),
                         [](const auto &info) {
                             return std::to_string(info.param.processes) + "x" +
                                    std::to_string(info.param.threads);
                         });

TEST(ChanMemoryErrors, NothingOfItsKindIsRefused)
{
    Shared<Blobs> blobs;
    run({2, 1}, Options(), [&](Rank &me) {
        const int peer = 1 - me.rank;
        struct tw_chan_memory *memory = nullptr;
        void *at = nullptr;
        ASSERT_EQ(TWILL_OK, tw_chan_memory_create(me.chan, BYTES, &memory, &blobs->of[me.rank]));
        me.place->meeting.meet();
        tw_blob bad = blobs->of[peer];
        bad.bytes = 0;
        EXPECT_EQ(TWILL_ERR_INVALID, tw_chan_memory_map(memory, peer, &bad, BYTES, &at));
        EXPECT_EQ(TWILL_ERR_INVALID,
                  tw_chan_memory_map(memory, peer, &blobs->of[me.rank], BYTES, &at))
            << "of another than the peer";
        EXPECT_EQ(TWILL_ERR_PEER,
                  tw_chan_memory_map(memory, peer, &blobs->of[peer], BYTES + 1, &at))
            << "shorter than needed";
        EXPECT_EQ(at, nullptr);
        EXPECT_EQ(TWILL_ERR_USAGE, tw_chan_memory_map(memory, peer, &blobs->of[peer], BYTES, &at))
            << "twice";
        me.place->meeting.meet();
        tw_chan_memory_destroy(memory);
        tw_chan_memory_destroy(nullptr);
    });
}

} // namespace
