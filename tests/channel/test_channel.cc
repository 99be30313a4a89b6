/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: chans of 2 to 8 ranks as threads, as processes and mixed.
 * Never knows: how the transports are made. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>

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

/* ---- one chan at a time --------------------------------------------------------------------- */

tw_chan_config config_of(const tw_chan_peer *peers, int rank, int size)
{
    tw_chan_config config = {};
    config.rank = rank;
    config.size = size;
    config.peers = peers;
    config.key = kKey;
    config.fifo_bytes = 4096;
    config.board_bytes = 256;
    config.wait = wait_for(20 * TW_NS_S);
    return config;
}

uint64_t used_of(const tw_net *net)
{
    uint64_t used, limit;
    tw_net_staging(net, &used, &limit);
    return used;
}

TEST(ChanAlone, OfOneRank)
{
    Process process(false);
    tw_chan_config config = config_of(&process.as_peer, 0, 1);
    tw_chan *chan = nullptr;
    ASSERT_EQ(TWILL_OK, tw_chan_create(&process.nets, &config, &chan));
    EXPECT_NE(nullptr, tw_chan_board(chan));
    EXPECT_EQ(nullptr, tw_chan_scratch(chan));
    EXPECT_EQ(nullptr, tw_chan_signals(chan));
    EXPECT_EQ(TWILL_OK, tw_chan_peer_status(chan, 0));
    tw_chan_blob blob;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_chan_export(chan, 0, &blob));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_chan_export(chan, 1, &blob));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_chan_import(chan, -1, &blob));
    tw_chan_destroy(chan);
    tw_chan_destroy(nullptr);
    EXPECT_EQ(0u, used_of(process.nets.self));
}

TEST(ChanAlone, NonsenseIsRefused)
{
    Process process(false);
    tw_chan_peer peers[2] = {process.as_peer, process.as_peer};
    tw_chan *chan = nullptr;
    for (auto [rank, size] : {std::pair{0, 0}, std::pair{-1, 2}, std::pair{2, 2}}) {
        tw_chan_config config = config_of(peers, rank, size);
        EXPECT_EQ(TWILL_ERR_INVALID, tw_chan_create(&process.nets, &config, &chan));
    }
    tw_chan_config config = config_of(peers, 0, 2);
    config.fifo_bytes = 100;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_chan_create(&process.nets, &config, &chan));
    config.fifo_bytes = 4096;
    config.scratch_bytes = SIZE_MAX;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_chan_create(&process.nets, &config, &chan));
    EXPECT_EQ(nullptr, chan);
    EXPECT_EQ(0u, used_of(process.nets.self));
}

TEST(ChanAlone, OtherProcessesNeedSharedMemory)
{
    Process process(false);
    tw_chan_peer peers[2] = {process.as_peer, process.as_peer};
    peers[1].proc = fresh_id();
    tw_chan_config config = config_of(peers, 0, 2);
    tw_chan *chan = nullptr;
    EXPECT_EQ(TWILL_ERR_UNSUPPORTED, tw_chan_create(&process.nets, &config, &chan));
    EXPECT_NE(nullptr, strstr(tw_fail_text(), "peer 1")) << tw_fail_text();
    EXPECT_EQ(nullptr, chan);
}

TEST(ChanAlone, ShortStagingIsACleanError)
{
    Process process(false, 65536);
    std::vector<tw_chan_peer> peers(8, process.as_peer);
    tw_chan_config config = config_of(peers.data(), 0, 8);
    tw_chan *chan = nullptr;
    for (size_t bytes : {(size_t)16384, (size_t)8192, (size_t)1 << 30}) { /* at once, midway */
        config.fifo_bytes = bytes;
        EXPECT_EQ(TWILL_ERR_NOMEM, tw_chan_create(&process.nets, &config, &chan));
        EXPECT_NE(nullptr, strstr(tw_fail_text(), "staging is short")) << tw_fail_text();
        EXPECT_EQ(0u, used_of(process.nets.self));
    }
    config.fifo_bytes = 4096; /* FIFOs fit, the areas do not */
    config.scratch_bytes = 65536;
    EXPECT_EQ(TWILL_ERR_NOMEM, tw_chan_create(&process.nets, &config, &chan));
    EXPECT_EQ(0u, used_of(process.nets.self));
    config.scratch_bytes = 0;
    ASSERT_EQ(TWILL_OK, tw_chan_create(&process.nets, &config, &chan));
    tw_chan_destroy(chan);
    EXPECT_EQ(0u, used_of(process.nets.self));
}

/* Two ranks of one thread that disagree about sizes. */
TEST(ChanAlone, DisagreementIsFoundAtImport)
{
    Process process(false);
    tw_chan_peer peers[2] = {process.as_peer, process.as_peer};
    for (int what = 0; what < 4; what++) {
        tw_chan_config config = config_of(peers, 0, 2);
        config.scratch_bytes = 512;
        tw_chan *a = nullptr, *b = nullptr;
        ASSERT_EQ(TWILL_OK, tw_chan_create(&process.nets, &config, &a));
        config.rank = 1;
        config.fifo_bytes = what == 0 ? 8192 : 4096;
        config.board_bytes = what == 1 ? 128 : 256;
        config.scratch_bytes = what == 2 ? 0 : 512;
        config.signals = what == 3 ? 4 : 0;
        ASSERT_EQ(TWILL_OK, tw_chan_create(&process.nets, &config, &b));
        tw_chan_blob blob;
        ASSERT_EQ(TWILL_OK, tw_chan_export(b, 0, &blob));
        EXPECT_EQ(TWILL_ERR_VERSION, tw_chan_import(a, 1, &blob)) << what;
        EXPECT_EQ(TWILL_ERR_USAGE, tw_chan_import(a, 1, &blob)) << what;
        tw_chan_destroy(a);
        tw_chan_destroy(b);
        EXPECT_EQ(0u, used_of(process.nets.self));
    }
}

/* Areas that a peer may still write serve nobody else before it has let go. */
TEST(ChanAlone, AreasStayWhileAPeerMayWrite)
{
    Process process(false);
    tw_chan_peer peers[2] = {process.as_peer, process.as_peer};
    tw_chan_config config = config_of(peers, 0, 2);
    config.scratch_bytes = 65536;
    tw_chan *chans[2] = {};
    for (int rank = 0; rank < 2; rank++) {
        config.rank = rank;
        ASSERT_EQ(TWILL_OK, tw_chan_create(&process.nets, &config, &chans[rank]));
    }
    uint64_t both = used_of(process.nets.self);
    for (int rank = 0; rank < 2; rank++) {
        tw_chan_blob blob;
        ASSERT_EQ(TWILL_OK, tw_chan_export(chans[rank], 1 - rank, &blob));
        ASSERT_EQ(TWILL_OK, tw_chan_import(chans[1 - rank], rank, &blob));
    }
    tw_chan_destroy(chans[0]);
    EXPECT_EQ(both, used_of(process.nets.self));
    memset(tw_chan_peer_scratch(chans[1], 0), 1, 65536);
    tw_chan_destroy(chans[1]);
    EXPECT_EQ(0u, used_of(process.nets.self));
}

TEST(ChanAlone, PeersThatNeverComeCostATimeout)
{
    Process process(true);
    tw_chan_peer peers[2] = {process.as_peer, process.as_peer};
    memset(peers[1].proc.nonce, 0, 16); /* sorts first: it would have to connect */
    tw_chan_config config = config_of(peers, 0, 2);
    config.wait = wait_for(30 * TW_NS_MS);
    tw_chan *chan = nullptr;
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_chan_create(&process.nets, &config, &chan));
    EXPECT_NE(nullptr, strstr(tw_fail_text(), "connecting to rank 1: ")) << tw_fail_text();
    EXPECT_EQ(0u, used_of(process.nets.shm));
}

/* The rule of the header, computed by hand for a few cases. */
TEST(ChanAlone, SharesFollowFreeStaging)
{
    Process process(false, 32 << 20);
    const tw_nets &nets = process.nets;
    auto fifo = [&](int size, int here, size_t fixed = 0) {
        const tw_chan_need need = {size, here, fixed, 0};
        const tw_chan_share share = tw_chan_share_find(&nets, &need);
        EXPECT_EQ(0u, share.scratch_bytes);
        return share.fifo_bytes;
    };
    auto both = [&](int size, int here, size_t scratch) {
        const tw_chan_need need = {size, here, 0, scratch};
        const tw_chan_share share = tw_chan_share_find(&nets, &need);
        return std::make_pair(share.fifo_bytes, share.scratch_bytes);
    };
    auto pair = [](size_t a, size_t b) { return std::make_pair(a, b); };
    EXPECT_EQ(262144u, fifo(2, 1));
    EXPECT_EQ(262144u, fifo(1, 1));
    EXPECT_EQ(262144u, fifo(8, 1));         /* 7 of them, under 2 MiB */
    EXPECT_EQ(131072u, fifo(9, 1));         /* 8 and their counters: over */
    EXPECT_EQ(131072u, fifo(8, 1, 262144)); /* 7 and what has its size: over */
    EXPECT_EQ(32768u, fifo(8, 8));          /* 56 of them */
    EXPECT_EQ(16384u, fifo(9, 8));
    EXPECT_EQ(1024u, fifo(1000, 8)); /* not within the share, but within all */
    EXPECT_EQ(0u, fifo(1000, 8, 4 << 20));
    EXPECT_EQ(0u, fifo(100000, 8));
    EXPECT_EQ(pair(262144, 262144), both(2, 1, 262144));
    EXPECT_EQ(pair(262144, 65536), both(2, 1, 65536));
    EXPECT_EQ(pair(131072, 131072), both(8, 1, 262144)); /* as if there were an eighth peer */
    EXPECT_EQ(pair(16384, 16384), both(8, 8, 262144));
    EXPECT_EQ(pair(1024, 4096), both(1000, 8, 262144)); /* the least of both */
    void *most = nullptr;
    const tw_rma_ops *rma = tw_transport_find("self")->rma;
    ASSERT_EQ(TWILL_OK, rma->stage(nets.self, 31 << 20, &most));
    EXPECT_EQ(32768u, fifo(2, 1)); /* a sixteenth of 1 MiB is 64 KiB */
    rma->unstage(nets.self, most);
}

/* 64 communicators: each gets less, all get something, and all is given back. */
void many_share(size_t staging, int ranks, size_t scratch_most)
{
    Process process(false, staging);
    std::vector<tw_chan_peer> peers((size_t)ranks, process.as_peer);
    std::vector<tw_chan *> chans;
    for (int c = 0; c < 64; c++) {
        tw_chan_config config = config_of(peers.data(), 0, ranks);
        const tw_chan_need need = {ranks, ranks, config.board_bytes + 8 * config.signals,
                                   scratch_most};
        const tw_chan_share share = tw_chan_share_find(&process.nets, &need);
        ASSERT_NE(0u, share.fifo_bytes) << "communicator " << c;
        ASSERT_EQ(scratch_most > 0, share.scratch_bytes > 0);
        for (int rank = 0; rank < ranks; rank++) {
            config.rank = rank;
            config.fifo_bytes = share.fifo_bytes;
            config.scratch_bytes = share.scratch_bytes;
            tw_chan *chan = nullptr;
            ASSERT_EQ(TWILL_OK, tw_chan_create(&process.nets, &config, &chan)) << tw_fail_text();
            chans.push_back(chan);
        }
    }
    EXPECT_LE(used_of(process.nets.self), staging);
    for (tw_chan *chan : chans) {
        tw_chan_destroy(chan);
    }
    EXPECT_EQ(0u, used_of(process.nets.self));
}

TEST(ChanAlone, ManyShareTheStaging)
{
    many_share(32 << 20, 4, 0);
    many_share(32 << 20, 4, 256 << 10);
    many_share(4 << 20, 2, 256 << 10);
}

/* A killed process: the rank that it held is lost to the others, who can destroy without it. */
TEST(ChanAlone, AKilledPeerIsLost)
{
    int before = open_descriptors();
    Shared<Place> place;
    place->meeting.init(2);
    auto connect = [&](Process &process, int rank) {
        place->peers[rank] = process.as_peer;
        place->meeting.meet();
        tw_chan_config config = config_of(place->peers, rank, 2);
        tw_chan *chan = nullptr;
        EXPECT_EQ(TWILL_OK, tw_chan_create(&process.nets, &config, &chan)) << tw_fail_text();
        EXPECT_EQ(TWILL_OK, tw_chan_export(chan, 1 - rank, &place->blobs[rank][1 - rank]));
        place->meeting.meet();
        EXPECT_EQ(TWILL_OK, tw_chan_import(chan, 1 - rank, &place->blobs[1 - rank][rank]));
        place->meeting.meet();
        return chan;
    };
    pid_t pid = fork_side([&] {
        Process process(true);
        (void)connect(process, 1);
        for (;;) {
            pause();
        }
    });
    {
        Process process(true);
        tw_chan *chan = connect(process, 0);
        EXPECT_EQ(TWILL_OK, tw_chan_peer_status(chan, 1));
        kill(pid, SIGKILL);
        uint64_t start = tw_now_ns();
        while (tw_chan_peer_status(chan, 1) == TWILL_OK && tw_now_ns() - start < 10 * TW_NS_S) {
            sched_yield();
        }
        EXPECT_EQ(TWILL_ERR_PEER, tw_chan_peer_status(chan, 1));
        EXPECT_LT(tw_now_ns() - start, TW_NS_S);
        tw_chan_destroy(chan);
        EXPECT_EQ(0u, used_of(process.nets.shm));
        EXPECT_EQ(pid, waitpid(pid, nullptr, 0));
    }
    EXPECT_EQ(before, open_descriptors());
}

} // namespace
