/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a chan's limits, errors and ends, one chan at a time.
 * Never knows: how the transports are made. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>

#include "chans.h"

using namespace chans;

namespace
{

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
        const tw_chan_need need = {size, here, fixed, 0, 0};
        const tw_chan_share share = tw_chan_share_find(&nets, &need);
        EXPECT_EQ(0u, share.scratch_bytes);
        return share.fifo_bytes;
    };
    auto both = [&](int size, int here, size_t scratch) {
        const tw_chan_need need = {size, here, 0, scratch, 0};
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

/* What an algorithm needs of scratch at least comes before long FIFOs, as far as there is room. */
TEST(ChanAlone, ScratchIsNoLessThanItsUse)
{
    Process process(false, 16 << 20);
    auto scratch = [&](size_t least) {
        const tw_chan_need need = {9, 9, 4096, 256 << 10, least};
        return tw_chan_share_find(&process.nets, &need).scratch_bytes;
    };
    EXPECT_EQ(8192u, scratch(0));
    EXPECT_EQ(41472u, scratch(41472));
    void *most = nullptr;
    const tw_rma_ops *rma = tw_transport_find("self")->rma;
    ASSERT_EQ(TWILL_OK, rma->stage(process.nets.self, 15 << 20, &most));
    EXPECT_EQ(4096u, scratch(41472)) << "nine would take more than a sixteenth";
    rma->unstage(process.nets.self, most);
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
                                   scratch_most, 0};
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
