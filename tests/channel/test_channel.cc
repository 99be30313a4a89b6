/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: chans of 2 to 8 ranks as threads, as processes and mixed.
 * Never knows: how the transports are made. */
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chans.h"

using namespace chans;

namespace
{

uint64_t pattern(int from, int to, int n)
{
    return (uint64_t)from << 48 | (uint64_t)to << 32 | (uint64_t)n;
}

/* Every rank sends `count` messages to every other and receives as many from each. */
void all_pairs(Rank &me, int count, uint32_t subs, uint32_t depth)
{
    struct Progress {
        int sent = 0, taken = 0;
        bool laid = false;
    };
    std::vector<Progress> progress((size_t)me.size);
    for (int i = 0; i < me.size; i++)
        if (i != me.rank) {
            ASSERT_EQ(TWILL_OK, tw_chan_layout_recv(me.chan, i, subs, depth));
        }
    for (int open = 2 * (me.size - 1) * count; open > 0;) {
        int before = open;
        for (int i = 0; i < me.size; i++) {
            if (i == me.rank)
                continue;
            Progress &p = progress[(size_t)i];
            if (!p.laid)
                p.laid = tw_chan_layout_send(me.chan, i, subs, depth) == TWILL_OK;
            void *data;
            uint32_t sub = (uint32_t)p.sent % subs;
            if (p.laid && p.sent < count && tw_chan_reserve(me.chan, i, sub, &data) == TWILL_OK) {
                uint64_t value = pattern(me.rank, i, p.sent);
                memcpy(data, &value, sizeof(value));
                tw_chan_commit(me.chan, i, sub, sizeof(value), ~value);
                p.sent++;
                open--;
            }
            tw_msg msg;
            sub = (uint32_t)p.taken % subs;
            if (p.taken < count && tw_chan_peek(me.chan, i, sub, &msg) == TWILL_OK) {
                uint64_t value;
                ASSERT_EQ(sizeof(value), msg.bytes);
                memcpy(&value, msg.data, sizeof(value));
                ASSERT_EQ(pattern(i, me.rank, p.taken), value);
                ASSERT_EQ(~value, msg.header);
                tw_chan_release(me.chan, i, sub);
                p.taken++;
                open--;
            }
        }
        if (open == before)
            sched_yield();
    }
}

class Chan : public testing::TestWithParam<Layout>
{
};

TEST_P(Chan, EveryPairExchangesInOrder)
{
    run(GetParam(), Options(), [](Rank &me) {
        all_pairs(me, 300, 1, 2);
        all_pairs(me, 300, 3, 2); /* another layout, straight behind */
        all_pairs(me, 301, 1, 4);
        all_pairs(me, 50, 1, 2);
    });
}

TEST_P(Chan, BoardsAreReadByAllAndWrittenByTheOwner)
{
    run(GetParam(), Options(), [](Rank &me) {
        auto *mine = static_cast<uint64_t *>(tw_chan_board(me.chan));
        for (int i = 0; i < 512; i++)
            ASSERT_EQ(0u, mine[i]);
        mine[511] = (uint64_t)me.rank + 100;
        me.place->meeting.meet();
        for (int i = 0; i < me.size; i++) {
            if (i == me.rank)
                continue;
            auto *theirs = static_cast<const uint64_t *>(tw_chan_peer_board(me.chan, i));
            ASSERT_NE(nullptr, theirs);
            EXPECT_EQ((uint64_t)i + 100, theirs[511]);
        }
    });
}

TEST_P(Chan, ScratchAndSignalsReachThePeer)
{
    run(GetParam(), Options(), [](Rank &me) {
        for (int i = 0; i < me.size; i++) {
            if (i == me.rank)
                continue;
            auto *theirs = static_cast<uint64_t *>(tw_chan_peer_scratch(me.chan, i));
            ASSERT_NE(nullptr, theirs);
            theirs[me.rank] = pattern(me.rank, i, 9);
            __atomic_store_n(&tw_chan_peer_signals(me.chan, i)[me.rank], 77, __ATOMIC_RELEASE);
        }
        for (int i = 0; i < me.size; i++) {
            if (i == me.rank)
                continue;
            while (__atomic_load_n(&tw_chan_signals(me.chan)[i], __ATOMIC_ACQUIRE) != 77)
                sched_yield();
            EXPECT_EQ(pattern(i, me.rank, 9), static_cast<uint64_t *>(tw_chan_scratch(me.chan))[i]);
        }
    });
}

/* What a rank offers all others get, as often as they ask, until it is withdrawn. */
TEST_P(Chan, DescriptorsGoToWhoKnowsTheirToken)
{
    run(GetParam(), Options(), [](Rank &me) {
        const uint64_t none[2] = {1, 2};
        struct tw_chan_offer offers[2];
        for (int n = 0; n < 2; n++) {
            const int fd = memfd_create("test", MFD_CLOEXEC);
            const uint64_t value = pattern(me.rank, n, 3);
            ASSERT_EQ((ssize_t)sizeof(value), write(fd, &value, sizeof(value)));
            ASSERT_EQ(TWILL_OK, tw_chan_offer(me.chan, fd, &offers[n]));
            memcpy(static_cast<uint64_t *>(tw_chan_board(me.chan)) + n * 2, offers[n].token, 16);
        }
        me.place->meeting.meet();
        for (int i = 0; i < me.size; i++) {
            int fd = -1;
            if (i == me.rank)
                continue;
            auto *tokens = static_cast<const uint64_t *>(tw_chan_peer_board(me.chan, i));
            for (int n : {1, 0, 1}) {
                uint64_t value = 0;
                ASSERT_EQ(TWILL_OK, tw_chan_take(me.chan, i, tokens + n * 2, &fd))
                    << tw_fail_text();
                EXPECT_EQ((ssize_t)sizeof(value), pread(fd, &value, sizeof(value), 0));
                EXPECT_EQ(pattern(i, n, 3), value);
                close(fd);
            }
            EXPECT_EQ(TWILL_ERR_PEER, tw_chan_take(me.chan, i, none, &fd));
        }
        me.place->meeting.meet();
        tw_chan_withdraw(&offers[0]);
        me.place->meeting.meet();
        for (int i = 0; i < me.size; i++) {
            int fd = -1;
            if (i == me.rank)
                continue;
            auto *tokens = static_cast<const uint64_t *>(tw_chan_peer_board(me.chan, i));
            EXPECT_EQ(TWILL_ERR_PEER, tw_chan_take(me.chan, i, tokens, &fd));
            EXPECT_EQ(TWILL_OK, tw_chan_take(me.chan, i, tokens + 2, &fd));
            close(fd);
        }
        me.place->meeting.meet();
        tw_chan_withdraw(&offers[1]);
    });
}

TEST_P(Chan, TellsWhatServesAPeer)
{
    Layout layout = GetParam();
    run(layout, Options(), [layout](Rank &me) {
        for (int i = 0; i < me.size; i++) {
            if (i == me.rank)
                continue;
            bool same = i % layout.processes == me.rank % layout.processes;
            EXPECT_EQ(same, tw_chan_same_process(me.chan, i));
            EXPECT_STREQ(same ? "self" : "shm", tw_chan_transport(me.chan, i));
            EXPECT_EQ(TWILL_OK, tw_chan_peer_status(me.chan, i));
        }
        EXPECT_EQ(16384u, tw_chan_fifo_size(me.chan));
    });
}

/* Messages of all sizes and layouts, both directions of every pair at once, for a while. */
TEST_P(Chan, MixedTrafficUntilTheBudgetEnds)
{
    const char *budget = getenv("TW_TEST_BUDGET");
    int rounds = budget != nullptr ? atoi(budget) * 40 : 12;
    run(GetParam(), Options(), [rounds](Rank &me) {
        uint32_t state = 12345; /* the same on all ranks */
        for (int round = 0; round < rounds; round++) {
            state = state * 1664525u + 1013904223u;
            all_pairs(me, 1 + (int)(state >> 8) % 40, 1 + (state >> 16) % 4, 1 + (state >> 24) % 4);
        }
    });
}

/* A rank that is done first leaves its memory to those who may still write it. */
TEST_P(Chan, DestroyInAnyOrder)
{
    run(GetParam(), Options(), [](Rank &me) {
        me.place->meeting.meet(); /* all have imported */
        for (int turn = 0; turn < me.size; turn++) {
            if (turn == me.rank) {
                tw_chan_destroy(me.chan);
                me.chan = nullptr;
            }
            me.place->meeting.meet();
            for (int i = 0; i < me.size && me.chan != nullptr; i++) {
                void *data = nullptr;
                if (i == me.rank) {
                    continue;
                }
                ASSERT_EQ(TWILL_OK, tw_chan_layout_send(me.chan, i, 1, 4));
                if (tw_chan_reserve(me.chan, i, 0, &data) == TWILL_OK) {
                    memset(data, 0xff, 1000);
                    tw_chan_commit(me.chan, i, 0, 1000, 1);
                }
                memset(static_cast<char *>(tw_chan_peer_scratch(me.chan, i)) + 1024 * me.rank, 0xff,
                       1024);
                tw_chan_peer_signals(me.chan, i)[me.rank] = 5;
            }
            me.place->meeting.meet();
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Threads, Chan, testing::Values(Layout{1, 2}, Layout{1, 5}, Layout{1, 8}));
INSTANTIATE_TEST_SUITE_P(Processes, Chan,
                         testing::Values(Layout{2, 1}, Layout{4, 1}, Layout{2, 2}, Layout{3, 2}));

} // namespace
