/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how tests make chans of 2 to 8 ranks as threads, as processes and mixed.
 * Never knows: what is tested, how the transports are made. */
#ifndef TESTS_CHANNEL_CHANS_H
#define TESTS_CHANNEL_CHANS_H

#include "../conform/shared.h"

extern "C" {
#include "base/status.h"
#include "channel/channel.h"
}

namespace chans
{

using namespace twtest;

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

inline void rank_run(Process *process, Place *place, int rank, int size, const Options &options,
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

inline void run(Layout layout, const Options &options, const std::function<void(Rank &)> &body)
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

} // namespace chans

#endif
