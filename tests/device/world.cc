// SPDX-License-Identifier: Apache-2.0
// Knows: how to make the executors of several ranks in one process and run calls on them.
// Never knows: what the calls compute.
#include "world.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <thread>

extern "C" {
#include "base/status.h"
#include "base/time.h"
}

namespace
{

const uint8_t key[TW_KEY_BYTES] = {7};

// The process's net, for all worlds.
struct Process {
    tw_nets nets = {};
    tw_chan_peer as_peer = {};

    Process()
    {
        tw_net_config config = {};
        config.self.host[0] = 1;
        config.staging_bytes = 512 << 20;
        as_peer.proc = config.self;
        if (tw_transport_find("self")->net->open(&config, &nets.self) != TWILL_OK) {
            throw std::runtime_error(tw_fail_text());
        }
    }
    ~Process() { tw_transport_find("self")->net->close(nets.self); }
};

void expect_ok(twill_status status)
{
    if (status != TWILL_OK) {
        throw std::runtime_error(tw_fail_text());
    }
}

} // namespace

unsigned rounds(unsigned plain, [[maybe_unused]] unsigned under_tsan)
{
#if defined(__SANITIZE_THREAD__)
    const unsigned times = under_tsan < plain ? under_tsan : plain;
#elif defined(__SANITIZE_ADDRESS__)
    const unsigned times = (plain + 3) / 4;
#else
    const unsigned times = plain;
#endif
    const char *text = std::getenv("TW_TEST_BUDGET");
    const unsigned budget = text != nullptr ? std::strtoul(text, nullptr, 10) : 0;
    return times * (budget > 0 ? budget : 1);
}

World::World(const WorldConfig &given) : config(given), signal_bases(given.size, 0)
{
    static Process process;
    const std::vector<tw_chan_peer> peers(given.size, process.as_peer);
    std::vector<std::vector<tw_chan_blob>> blobs(given.size, std::vector<tw_chan_blob>(given.size));
    for (int r = 0; r < given.size; r++) {
        tw_chan_config chan = {};
        chan.rank = r;
        chan.size = given.size;
        chan.peers = peers.data();
        chan.key = key;
        chan.fifo_bytes = given.fifo_bytes;
        chan.scratch_bytes = given.scratch_bytes;
        chan.signals = given.signals;
        chan.wait = {TW_NEVER, -1};
        chans.push_back(nullptr);
        expect_ok(tw_chan_create(&process.nets, &chan, &chans[r]));
        for (int p = 0; p < given.size; p++) {
            if (p != r) {
                expect_ok(tw_chan_export(chans[r], p, &blobs[r][p]));
            }
        }
    }
    for (int r = 0; r < given.size; r++) {
        for (int p = 0; p < given.size; p++) {
            if (p != r) {
                expect_ok(tw_chan_import(chans[r], p, &blobs[p][r]));
            }
        }
        execs.push_back(nullptr);
        expect_ok(
            tw_exec_create(chans[r], given.isa, given.scratch_bytes, &signal_bases[r], &execs[r]));
    }
}

World::~World()
{
    for (tw_exec *exec : execs) {
        tw_exec_destroy(exec);
    }
    for (tw_chan *chan : chans) {
        tw_chan_destroy(chan);
    }
}

std::string World::start(const std::vector<tw_exec_call> &calls)
{
    for (size_t r = 0; r < calls.size(); r++) {
        if (tw_exec_start(execs[r], &calls[r]) != TWILL_OK) {
            return std::string("start: ") + tw_fail_text();
        }
    }
    call_index++;
    return "";
}

static std::string stuck(const std::vector<tw_exec *> &execs)
{
    static const char *const phases[] = {"idle", "layout", "send", "recv", "signal", "done"};
    std::string text = "hang:";
    for (size_t r = 0; r < execs.size(); r++) {
        struct tw_exec_wait wait;
        tw_exec_where(execs[r], &wait);
        text += " [" + std::to_string(r) + ": " + phases[wait.phase] + " peer " +
                std::to_string(wait.peer) + " loop " + std::to_string(wait.loop) + " lane " +
                std::to_string(wait.lane) + " step " + std::to_string(wait.step) + " slice " +
                std::to_string(wait.slice) + "]";
    }
    return text;
}

std::string drive(const std::vector<tw_exec *> &execs, std::mt19937_64 &rng)
{
    std::vector<size_t> live(execs.size());
    for (size_t i = 0; i < live.size(); i++) {
        live[i] = i;
    }
    while (!live.empty()) {
        bool moved = false;
        std::shuffle(live.begin(), live.end(), rng);
        for (size_t i = 0; i < live.size();) {
            bool advanced = false;
            const twill_status status = tw_exec_progress(execs[live[i]], &advanced);
            if (status < 0) {
                return std::string("progress: ") + tw_fail_text();
            }
            moved |= advanced || status == TWILL_OK;
            if (status == TWILL_OK) {
                live.erase(live.begin() + i);
            } else {
                i++;
            }
        }
        if (!moved) {
            return stuck(execs);
        }
    }
    return "";
}

std::string drive_threads(const std::vector<tw_exec *> &execs)
{
    std::vector<std::string> failures(execs.size());
    std::vector<std::thread> threads;
    for (size_t r = 0; r < execs.size(); r++) {
        threads.emplace_back([&, r] {
            twill_status status;
            while ((status = tw_exec_progress(execs[r], nullptr)) == TWILL_INPROGRESS) {
                std::this_thread::yield();
            }
            failures[r] = status == TWILL_OK ? "" : tw_fail_text();
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (const std::string &failure : failures) {
        if (!failure.empty()) {
            return "thread: " + failure;
        }
    }
    return "";
}
