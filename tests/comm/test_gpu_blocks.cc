/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how many blocks a kernel may have. Never knows: what it does. */
#include <algorithm>

#include "gpu_ranks.h"

namespace
{

using fake::launches;

class GpuBlocks : public GpuRanks
{
  protected:
    /* One of each: collectives of few and of many bytes, with counts that differ, and sends. */
    void everything(int ranks)
    {
        for (size_t count : {(size_t)1, (size_t)100000, (size_t)1 << 22})
            together(ranks, [&](int rank) { return sum(rank, nullptr, count); });
        const std::vector<size_t> counts((size_t)ranks, (size_t)1 << 18);
        together(ranks, [&](int rank) {
            char *at = buffer(gpu(rank)->device, (size_t)ranks << 18);
            return twill_all_gather_v(at + ((size_t)rank << 18), at, counts.data(), nullptr,
                                      TWILL_INT8, comms_[(size_t)rank], nullptr);
        });
        together(ranks, [&](int rank) {
            char *at = buffer(gpu(rank)->device, (size_t)2 << 20);
            (void)twill_send(at, 1 << 20, TWILL_INT8, (rank + 1) % ranks, comms_[(size_t)rank],
                             nullptr);
            return twill_recv(at + (1 << 20), 1 << 20, TWILL_INT8, (rank + ranks - 1) % ranks,
                              comms_[(size_t)rank], nullptr);
        });
    }

  private:
    template <typename Call> void together(int ranks, Call call)
    {
        ASSERT_EQ(twill_group_start(), TWILL_OK);
        for (int rank = 0; rank < ranks; rank++)
            ASSERT_EQ(call(rank), TWILL_OK) << twill_last_error(comms_[(size_t)rank]);
        ASSERT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
    }
};

TEST_F(GpuBlocks, EveryKernelKeepsToTheBoundOnMultiprocessors)
{
    for (int bound : {2, 3, 8, 50}) {
        struct twill_config config = TWILL_CONFIG_INIT;
        uint32_t most = 0;
        config.max_sms = bound;
        fake::reset(2);
        make({0, 0, 1}, {}, &config);
        everything(3);
        for (const auto &one : launches()) {
            EXPECT_LE(one.launch.ranks * one.launch.blocks, (uint32_t)bound);
            most = std::max(most, one.launch.ranks * one.launch.blocks);
        }
        EXPECT_GE(most, (uint32_t)bound - 1) << "what there is is used";
        destroy();
    }
}

} // namespace
