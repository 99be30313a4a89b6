// SPDX-License-Identifier: Apache-2.0
// Knows: how to make the executors of several ranks in one process and run calls on them.
// Never knows: what the calls compute.
#ifndef TW_TESTS_DEVICE_WORLD_H
#define TW_TESTS_DEVICE_WORLD_H

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" {
#include "channel/channel.h"
#include "device/exec.h"
}

struct WorldConfig {
    int size;
    size_t fifo_bytes = 64 << 10;
    size_t scratch_bytes = 1 << 20;
    uint32_t signals = 512;
    tw_isa isa = TW_ISA_PORTABLE;
};

// How often a test repeats itself: plain times TW_TEST_BUDGET, fewer under a sanitizer; TSan
// learns nothing from tests of one thread, few rounds of which do.
unsigned rounds(unsigned plain, unsigned under_tsan = 1);

// Ranks of one communicator as it were: a chan and an executor each.
class World
{
  public:
    explicit World(const WorldConfig &config);
    ~World();
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    const WorldConfig config;
    std::vector<tw_chan *> chans;
    std::vector<tw_exec *> execs;
    std::vector<uint64_t> signal_bases;
    uint32_t call_index = 0; // of the next call

    // Starts calls[rank] on each rank. "" or what failed.
    std::string start(const std::vector<tw_exec_call> &calls);
};

// One thread drives executors in a random order until all are done. "" or what went wrong: an
// error, or a hang, which is a round in which nobody advanced.
std::string drive(const std::vector<tw_exec *> &execs, std::mt19937_64 &rng);
// A thread for each executor.
std::string drive_threads(const std::vector<tw_exec *> &execs);
using Driver = std::function<std::string(const std::vector<tw_exec *> &)>;

struct PlanDeleter {
    void operator()(tw_plan *plan) const { tw_plan_destroy(plan); }
};
using PlanPtr = std::unique_ptr<tw_plan, PlanDeleter>;

#endif
