/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how many blocks kernels of several communicators may have in flight on a device.
 * Never knows: what they do. */
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "gpu_ranks.h"

namespace
{

using fake::before;
using fake::launches;

class GpuBudget : public GpuRanks
{
  protected:
    using Comms = std::vector<twill_comm_t>;

    void TearDown() override
    {
        while (!more_.empty())
            end(more_.begin()->first);
        GpuRanks::TearDown();
    }
    /* Another communicator; bound: config.max_sms. */
    twill_comm_t *another(const std::vector<int> &devices, int bound = 0)
    {
        struct twill_config config = TWILL_CONFIG_INIT;
        auto made = std::make_unique<Comms>(devices.size());
        config.max_sms = bound;
        EXPECT_EQ(twill_comm_init_all(made->data(), (int)devices.size(), devices.data(), &config),
                  TWILL_OK)
            << twill_last_error(nullptr);
        twill_comm_t *at = made->data();
        more_[at] = std::move(made);
        return at;
    }
    /* Its kernels are over then. */
    void end(twill_comm_t *comms)
    {
        for (twill_comm_t comm : *more_.at(comms))
            over_.emplace_back(comm->gpu->state, launches().size());
        for (twill_comm_t comm : *more_.at(comms))
            EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
        more_.erase(comms);
    }
    /* A kernel of so many blocks, of a rank that is alone on its device. */
    fake::Point kernel(twill_comm_t comm, uint32_t blocks, void *stream)
    {
        const size_t bytes = (size_t)blocks * 480 * 8;
        EXPECT_EQ(twill_broadcast(at_, at_, bytes, TWILL_INT8, 0, comm, stream), TWILL_OK)
            << twill_last_error(comm);
        const auto all = launches();
        EXPECT_EQ(all.back().launch.blocks, blocks);
        return all.back().point;
    }
    bool is_over(const void *state, size_t launch, size_t last) const
    {
        return std::any_of(over_.begin(), over_.end(), [&](const auto &one) {
            return one.first == state && launch < one.second && one.second <= last;
        });
    }
    /* What may run on a device beside the last of the launches, and it: of each rank at most one
     * kernel, since its kernels come one after another. */
    uint64_t beside(const std::vector<fake::Launch> &all, size_t last) const
    {
        std::map<const void *, uint64_t> most; /* by rank */
        for (size_t i = 0; i <= last; i++) {
            const auto &one = all[i];
            if (one.device != all[last].device || one.capture != all[last].capture ||
                before(one.point, all[last].point))
                continue;
            for (uint32_t r = 0; r < one.launch.ranks; r++) {
                const void *state = one.launch.call[r].state;
                if (!is_over(state, i, last))
                    most[state] = std::max(most[state], (uint64_t)one.launch.blocks);
            }
        }
        uint64_t sum = 0;
        for (const auto &rank : most)
            sum += rank.second;
        return sum;
    }
    uint64_t most_together() const
    {
        const auto all = launches();
        uint64_t most = 0;
        for (size_t i = 0; i < all.size(); i++)
            most = std::max(most, beside(all, i));
        return most;
    }
    /* Of devices with 24 multiprocessors. */
    void SetUp() override { start(2); }
    void start(int devices)
    {
        fake::reset(devices, 24);
        fake::mark(at_, sizeof at_, TW_CUDA_DEVICE, 0);
        set_params({{"PROBE", "0"}});
        over_.clear();
    }

    std::map<twill_comm_t *, std::unique_ptr<Comms>> more_;
    std::vector<std::pair<const void *, size_t>>
        over_; /* a rank, and the launches before its end */
    char at_[480 * 8 * 32] = {};
};

TEST_F(GpuBudget, WhatDoesNotFitComesAfterTheOldest)
{
    twill_comm_t *a = another({0, 1}), *b = another({0, 1}), *c = another({0, 1});
    void *streams[] = {fake::stream(0), fake::stream(0), fake::stream(0)};
    const auto first = kernel(a[0], 10, streams[0]);
    const auto second = kernel(b[0], 10, streams[1]);
    const auto third = kernel(c[0], 10, streams[2]);
    EXPECT_FALSE(before(first, second)) << "20 of 24";
    EXPECT_TRUE(before(first, third)) << "30 of 24";
    EXPECT_FALSE(before(second, third)) << "20 of 24";
    const auto fourth = kernel(a[0], 4, streams[0]);
    EXPECT_FALSE(before(second, fourth)) << "24 of 24";
    EXPECT_FALSE(before(third, fourth));
    const auto fifth = kernel(b[0], 11, streams[1]);
    EXPECT_TRUE(before(third, fifth)) << "its last one was started before that of the first";
    EXPECT_FALSE(before(fourth, fifth)) << "15 of 24: the first's other one is over, in its turn";
}

/* A kernel that waits for others does not hide them from the next. */
TEST_F(GpuBudget, WhatAnotherKernelWaitsForIsCountedStill)
{
    twill_comm_t *a = another({0, 1}), *b = another({0, 1}), *c = another({0, 1});
    void *streams[] = {fake::stream(0), fake::stream(0), fake::stream(0)};
    const auto first = kernel(a[0], 14, streams[0]);
    const auto second = kernel(b[0], 11, streams[1]);
    EXPECT_TRUE(before(first, second));
    EXPECT_TRUE(before(first, kernel(c[0], 12, streams[2]))) << "both may run by then";
    EXPECT_LE(most_together(), 24u);
}

TEST_F(GpuBudget, KernelsThatFitCostNothingMore)
{
    void *streams[] = {fake::stream(0), fake::stream(0)};
    const auto cost = [&](twill_comm_t *comms, uint32_t blocks) {
        const int had = fake::ordered;
        for (int i = 0; i < 4; i++)
            (void)kernel(comms[0], blocks, streams[0]);
        return fake::ordered - had;
    };
    twill_comm_t *a = another({0, 1});
    EXPECT_EQ(cost(a, 24), 0) << "alone";
    twill_comm_t *b = another({1, 0}, 12);
    EXPECT_EQ(cost(a, 12), 0) << "alone so far";
    const auto last = launches().back().point;
    const auto first = kernel(b[1], 12, streams[1]);
    EXPECT_TRUE(before(last, first)) << "what went before could be of 24 blocks, for all it knows";
    EXPECT_EQ(cost(a, 12), 0);
    EXPECT_EQ(cost(a, 13), 1) << "the first waits, and so do those behind it";
}

TEST_F(GpuBudget, CommunicatorsThatAlwaysFitAreNotCounted)
{
    twill_comm_t *a = another({0, 1}, 12), *b = another({0, 1}, 12);
    void *streams[] = {fake::stream(0), fake::stream(0)};
    for (int i = 0; i < 4; i++) {
        (void)kernel(a[0], 12, streams[0]);
        (void)kernel(b[0], 12, streams[1]);
    }
    EXPECT_EQ(fake::ordered, 0);
    EXPECT_FALSE(a[0]->gpu->shared->crowded);
}

/* Kernels of one stream come one after another without more. */
TEST_F(GpuBudget, OneStreamNeedsNoEvents)
{
    twill_comm_t *a = another({0, 1}), *b = another({0, 1});
    void *stream = fake::stream(0);
    for (int i = 0; i < 4; i++) {
        (void)kernel(a[0], 24, stream);
        (void)kernel(b[0], 24, stream);
    }
    EXPECT_EQ(fake::ordered, 0);
}

TEST_F(GpuBudget, ADestroyedCommunicatorHoldsNothing)
{
    twill_comm_t *a = another({0, 1}), *b = another({0, 1}), *c = another({0, 1});
    void *streams[] = {fake::stream(0), fake::stream(0), fake::stream(0)};
    (void)kernel(a[0], 20, streams[0]);
    end(a);
    const int had = fake::ordered;
    (void)kernel(b[0], 20, streams[1]);
    EXPECT_EQ(fake::ordered, had);
    EXPECT_TRUE(b[0]->gpu->shared->crowded);
    end(c);
    EXPECT_FALSE(b[0]->gpu->shared->crowded);
    twill_comm_t *d =
        another({0, 1}); /* what b has started is of its most blocks, for all it knows */
    const auto last = launches().back().point;
    EXPECT_TRUE(before(last, kernel(d[0], 1, streams[2])));
}

TEST_F(GpuBudget, RanksOfOneDeviceAreCountedTogether)
{
    twill_comm_t *a = another({0, 0, 1}), *b = another({0, 1});
    void *streams[] = {fake::stream(0), fake::stream(0), fake::stream(0)};
    const size_t bytes = (size_t)8 * 480 * 8;
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    for (int rank = 0; rank < 2; rank++)
        ASSERT_EQ(twill_broadcast(at_, at_, bytes, TWILL_INT8, 0, a[rank], streams[rank]),
                  TWILL_OK);
    ASSERT_EQ(twill_group_end(), TWILL_OK);
    const auto joint = launches().back();
    EXPECT_EQ(joint.launch.blocks * joint.launch.ranks, 16u);
    EXPECT_FALSE(before(joint.point, kernel(b[0], 8, streams[2])));
    const int had = fake::ordered;
    EXPECT_TRUE(before(joint.point, kernel(b[0], 17, streams[2])));
    EXPECT_EQ(fake::ordered, had + 1) << "one kernel, one wait";
}

/* Rank 0's kernel waits for that of rank 1: between them nothing may come that waits for it. */
TEST_F(GpuBudget, SendsThatAreStartedApartWaitForNobody)
{
    twill_comm_t *a = another({0, 0}), *b = another({0, 1});
    void *streams[] = {fake::stream(0), fake::stream(0), fake::stream(0)};
    ASSERT_EQ(twill_send(at_, sizeof at_, TWILL_INT8, 1, a[0], streams[0]), TWILL_OK);
    const auto sent = launches().back();
    const auto between = kernel(b[0], 24, streams[2]);
    EXPECT_TRUE(before(sent.point, between));
    ASSERT_EQ(twill_recv(at_, sizeof at_, TWILL_INT8, 0, a[1], streams[1]), TWILL_OK);
    const auto received = launches().back();
    EXPECT_FALSE(before(between, received.point));
    EXPECT_TRUE(before(received.point, kernel(b[0], 24, streams[2])));
}

/* What a rank has started may need another one's next kernel: ranks of a team are never ordered. */
TEST_F(GpuBudget, RanksOfOneDeviceDoNotWaitForEachOther)
{
    twill_comm_t *a = another({0, 0, 1}), *b = another({0, 1});
    void *streams[] = {fake::stream(0), fake::stream(0), fake::stream(0)};
    ASSERT_EQ(twill_send(at_, sizeof at_, TWILL_INT8, 2, a[0], streams[0]), TWILL_OK);
    const auto first = launches().back();
    const auto between = kernel(b[0], 24 - first.launch.blocks, streams[2]);
    ASSERT_EQ(twill_send(at_, sizeof at_, TWILL_INT8, 2, a[1], streams[1]), TWILL_OK);
    const auto second = launches().back();
    EXPECT_FALSE(before(first.point, between)) << "24 of 24";
    EXPECT_TRUE(before(between, second.point));
    EXPECT_FALSE(before(first.point, second.point));
}

TEST_F(GpuBudget, ACaptureIsCountedByItself)
{
    twill_comm_t *a = another({0, 1}), *b = another({0, 1}), *c = another({0, 1});
    void *plain = fake::stream(0), *third = fake::stream(0, 8), *fourth = fake::stream(0, 8);
    void *streams[] = {fake::stream(0, 7), fake::stream(0, 7)};
    const auto outside = kernel(a[0], 20, plain);
    const auto first = kernel(a[0], 20, streams[0]);
    const auto second = kernel(b[0], 20, streams[1]);
    EXPECT_TRUE(before(first, second)) << "of one capture";
    EXPECT_FALSE(before(outside, second));
    const auto elsewhere = kernel(c[0], 20, third);
    EXPECT_FALSE(before(first, elsewhere)) << "of two";
    EXPECT_FALSE(before(second, elsewhere)) << "of two";
    const auto beside = kernel(a[0], 4, fourth);
    EXPECT_FALSE(before(elsewhere, beside)) << "24 of 24";
    EXPECT_FALSE(before(beside, kernel(c[0], 20, third))) << "24 of 24";
    EXPECT_FALSE(before(elsewhere, kernel(a[0], 20, plain)));
}

/* ---- drawn ---------------------------------------------------------------------------------- */

/* Three communicators, whose kernels alone could be of 24 blocks, on streams that are drawn. */
TEST_F(GpuBudget, DrawnCallsNeverExceedIt)
{
    uint64_t most = 0;
    for (unsigned seed = 1; seed <= 30; seed++) {
        start(2);
        std::mt19937 draw(seed);
        const auto pick = [&](size_t n) { return (size_t)(draw() % n); };
        twill_comm_t *comms[] = {another({0, 1}), another({0, 0, 1}), another({1, 0}, 15)};
        const std::vector<int> devices[] = {{0, 1}, {0, 0, 1}, {1, 0}};
        std::vector<void *> streams[2];
        for (int device = 0; device < 2; device++)
            for (int i = 0; i < 8; i++)
                streams[device].push_back(fake::stream(device, i < 4 ? 0 : 50 + (uint64_t)device));
        std::map<const void *, size_t> lasts[2]; /* by rank: its last launch, but in captures */
        for (int call = 0; call < 60; call++) {
            if (call == 40) {
                end(comms[0]);
                comms[0] = another({0, 1});
            }
            const size_t which = pick(3), bytes = (pick(24) + 1) * 480 * 8;
            const bool p2p = pick(4) == 0, captured = call / 10 == 2;
            const size_t ranks = devices[which].size();
            ASSERT_EQ(twill_group_start(), TWILL_OK);
            for (size_t r = 0; r < ranks; r++) {
                const int device = devices[which][r];
                void *stream = streams[device][pick(4) + (captured ? 4 : 0)];
                char *mine = buffer(device, 2 * bytes);
                if (!p2p) {
                    ASSERT_EQ(
                        twill_broadcast(mine, mine, bytes, TWILL_INT8, 0, comms[which][r], stream),
                        TWILL_OK);
                    continue;
                }
                ASSERT_EQ(twill_send(mine, bytes, TWILL_INT8, (int)((r + 1) % ranks),
                                     comms[which][r], stream),
                          TWILL_OK);
                ASSERT_EQ(twill_recv(mine + bytes, bytes, TWILL_INT8,
                                     (int)((r + ranks - 1) % ranks), comms[which][r], stream),
                          TWILL_OK);
            }
            ASSERT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
        }
        const auto all = launches();
        for (size_t i = 0; i < all.size(); i++)
            for (uint32_t r = 0; r < all[i].launch.ranks; r++) {
                const bool captured = all[i].capture != 0;
                const void *rank = all[i].launch.call[r].state;
                const auto last = lasts[captured].find(rank);
                if (last != lasts[captured].end() && !is_over(rank, last->second, i)) {
                    EXPECT_TRUE(before(all[last->second].point, all[i].point))
                        << "seed " << seed << ": calls " << last->second << " and " << i;
                }
                lasts[captured][rank] = i;
            }
        const uint64_t now = most_together();
        ASSERT_LE(now, 24u) << "seed " << seed;
        most = std::max(most, now);
        while (!more_.empty())
            end(more_.begin()->first);
    }
    EXPECT_EQ(most, 24u) << "what there is is used";
}

/* Communicators come and go while others start kernels. */
TEST_F(GpuBudget, ThreadsNeverExceedIt)
{
    twill_comm_t *comms[] = {another({0, 1}), another({0, 1})};
    std::vector<std::thread> threads;
    std::atomic<bool> over{false};
    for (int t = 0; t < 2; t++)
        threads.emplace_back([&, t] {
            void *stream = fake::stream(0);
            for (size_t i = 0; i < 100; i++)
                EXPECT_EQ(twill_broadcast(at_, at_, (i * 7 % 24 + 1) * 480 * 8, TWILL_INT8, 0,
                                          comms[t][0], stream),
                          TWILL_OK);
        });
    threads.emplace_back([&] {
        void *stream = fake::stream(0);
        while (!over) {
            twill_comm_t *third = another({0, 1});
            EXPECT_EQ(twill_broadcast(at_, at_, sizeof at_ / 2, TWILL_INT8, 0, third[0], stream),
                      TWILL_OK);
            end(third);
        }
    });
    threads[0].join();
    threads[1].join();
    over = true;
    threads[2].join();
    EXPECT_LE(most_together(), 24u);
}

} // namespace
