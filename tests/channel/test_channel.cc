/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: chans of 2 to 8 ranks as threads, as processes and mixed.
 * Never knows: how the transports are made. */
#include <fcntl.h>
#include <sched.h>

#include "../conform/shared.h"

extern "C" {
#include "base/status.h"
#include "channel/channel.h"
}

using namespace twtest;

namespace
{

constexpr int kRanksMax = 8;
const uint8_t kKey[TW_KEY_BYTES] = {1, 2, 3};

struct Place {
    Meeting meeting;
    tw_chan_peer peers[kRanksMax];
    tw_chan_blob blobs[kRanksMax][kRanksMax]; /* [of][for] */
};

/* ranks as processes x threads */
struct Layout {
    int processes, threads;
};

struct Rank {
    int rank, size;
    tw_chan *chan;
    Place *place;
};

struct Process {
    tw_nets nets = {};
    tw_listener *listener = nullptr;
    tw_chan_peer as_peer = {};

    explicit Process(bool with_shm, uint64_t staging = 16 << 20)
    {
        tw_net_config config = {};
        config.self = fresh_id();
        config.staging_bytes = staging;
        config.allow_cma = true;
        as_peer.proc = config.self;
        EXPECT_EQ(TWILL_OK, tw_transport_find("self")->net->open(&config, &nets.self));
        if (with_shm) {
            EXPECT_EQ(TWILL_OK, tw_transport_find("shm")->net->open(&config, &nets.shm));
            EXPECT_EQ(TWILL_OK, tw_transport_find("shm")->net->listen(nets.shm, kKey, &listener,
                                                                      &as_peer.address));
        }
    }
    ~Process()
    {
        tw_transport_find("self")->net->close(nets.self);
        if (nets.shm != nullptr) {
            tw_transport_find("shm")->net->unlisten(listener);
            tw_transport_find("shm")->net->close(nets.shm);
        }
    }
};

struct Options {
    size_t fifo_bytes = 16384;
    size_t board_bytes = 4096;
    size_t scratch_bytes = 8192;
    uint32_t signals = 16;
};

void rank_run(Process *process, Place *place, int rank, int size, const Options &options,
              const std::function<void(Rank &)> &body)
{
    place->peers[rank] = process->as_peer;
    place->meeting.meet();
    tw_chan_config config = {};
    config.rank = rank;
    config.size = size;
    config.peers = place->peers;
    config.key = kKey;
    config.fifo_bytes = options.fifo_bytes;
    config.board_bytes = options.board_bytes;
    config.scratch_bytes = options.scratch_bytes;
    config.signals = options.signals;
    config.wait = wait_for(20 * TW_NS_S);
    Rank me = {rank, size, nullptr, place};
    ASSERT_EQ(TWILL_OK, tw_chan_create(&process->nets, &config, &me.chan)) << tw_fail_text();
    for (int i = 0; i < size; i++)
        if (i != rank) {
            ASSERT_EQ(TWILL_OK, tw_chan_export(me.chan, i, &place->blobs[rank][i]));
        }
    place->meeting.meet();
    for (int i = 0; i < size; i++)
        if (i != rank) {
            ASSERT_EQ(TWILL_OK, tw_chan_import(me.chan, i, &place->blobs[i][rank]))
                << tw_fail_text();
        }
    body(me);
    place->meeting.meet();
    tw_chan_destroy(me.chan);
    place->meeting.meet();
    uint64_t used = 0, limit = 0;
    tw_net_staging(process->nets.self, &used, &limit);
    if (process->nets.shm == nullptr) {
        EXPECT_EQ(0u, used) << "staging is not given back";
    }
}

void run(Layout layout, const Options &options, const std::function<void(Rank &)> &body)
{
    Shared<Place> place;
    int size = layout.processes * layout.threads;
    place->meeting.init((unsigned)size);
    std::vector<std::function<void()>> processes;
    for (int p = 0; p < layout.processes; p++) {
        processes.push_back([&, p] {
            Process process(layout.processes > 1);
            std::vector<std::function<void()>> threads;
            for (int t = 0; t < layout.threads; t++)
                threads.push_back([&, t] {
                    rank_run(&process, &*place, p + t * layout.processes, size, options, body);
                });
            run_threads(threads);
        });
    }
    run_processes(processes);
}

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

INSTANTIATE_TEST_SUITE_P(Threads, Chan, testing::Values(Layout{1, 2}, Layout{1, 5}, Layout{1, 8}));
INSTANTIATE_TEST_SUITE_P(Processes, Chan,
                         testing::Values(Layout{2, 1}, Layout{4, 1}, Layout{2, 2}, Layout{3, 2}));

} // namespace
