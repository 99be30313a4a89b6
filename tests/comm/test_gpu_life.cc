/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what ranks on devices hold, and which cannot be joined. Never knows: their calls. */
#include "gpu_ranks.h"

namespace
{

class GpuLife : public GpuRanks
{
  protected:
    void refused(const std::vector<int> &devices, enum twill_status status, const char *part)
    {
        std::vector<twill_comm_t> comms(devices.size());
        set_params({{"PROBE", "0"}});
        EXPECT_EQ(twill_comm_init_all(comms.data(), (int)devices.size(), devices.data(), nullptr),
                  status);
        EXPECT_NE(std::string(twill_last_error(nullptr)).find(part), std::string::npos)
            << twill_last_error(nullptr);
        for (twill_comm_t comm : comms)
            EXPECT_EQ(comm, nullptr);
    }
    /* One after the other: n parts of `each` bytes. */
    static uint64_t end(uint64_t at, uint64_t n, uint64_t each) { return at + n * each; }
};

TEST_F(GpuLife, DevicesThatAreNone)
{
    refused({0, 8}, TWILL_ERR_INVALID, "CUDA device 8 does not exist: there are 8");
    refused({0, -2}, TWILL_ERR_INVALID, "device -2 of rank 1 is none");
    refused({0, TWILL_DEVICE_HOST}, TWILL_ERR_INVALID, "all are on devices, or none is");
}

/* Of the ranks, whichever it is that does not reach another: what is shared lies in host memory,
 * and nothing else is reached. */
TEST_F(GpuLife, DevicesThatDoNotReachEachOther)
{
    fake::cut(2, 1);
    make({0, 1, 2, 1});
    for (size_t r = 0; r < 4; r++) {
        const struct tw_gpu *gpu = comms_[r]->gpu;
        struct tw_cuda_memory found;

        for (size_t p = 0; p < 4; p++) {
            ASSERT_EQ(tw_cuda_memory_find(gpu->base.near[p], &found), TWILL_OK);
            EXPECT_EQ(found.kind, TW_CUDA_PINNED) << "rank " << r << " of " << p;
            EXPECT_EQ(gpu->base.near[p], comms_[p]->gpu->mem);
            EXPECT_EQ(gpu->here[p], p == r);
        }
        EXPECT_FALSE(gpu->all_here);
    }
}

TEST_F(GpuLife, OthersReachEachOther)
{
    fake::cut(1, 2);
    make({0, 1, 3});
    for (twill_comm_t comm : comms_) {
        struct tw_cuda_memory found;

        ASSERT_EQ(tw_cuda_memory_find(comm->gpu->mem, &found), TWILL_OK);
        EXPECT_EQ(found.kind, TW_CUDA_DEVICE);
        EXPECT_TRUE(comm->gpu->all_here);
    }
}

TEST_F(GpuLife, MoreRanksThanADeviceTakes)
{
    refused(std::vector<int>(9, 0), TWILL_ERR_UNSUPPORTED, "at most 8");
    make(std::vector<int>(8, 0));
}

TEST_F(GpuLife, MoreRanksThanACommunicatorTakes)
{
    refused(std::vector<int>(65, 0), TWILL_ERR_UNSUPPORTED, "at most 64");
}

TEST_F(GpuLife, DeviceOfARank)
{
    make({3, 0, 3});
    for (int rank = 0; rank < 3; rank++) {
        int device = -7;
        EXPECT_EQ(twill_comm_device(comms_[(size_t)rank], &device), TWILL_OK);
        EXPECT_EQ(device, rank == 1 ? 0 : 3);
    }
    struct twill_config config = TWILL_CONFIG_INIT;
    config.device = 5;
    twill_comm_t all[2];
    ASSERT_EQ(twill_comm_init_all(all, 2, nullptr, &config), TWILL_OK);
    int device = -7;
    EXPECT_EQ(twill_comm_device(all[1], &device), TWILL_OK);
    EXPECT_EQ(device, 5);
    for (twill_comm_t comm : all)
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
}

/* Alike on all ranks, nothing overlaps, and no more than docs/gpu.md says. */
TEST_F(GpuLife, MemoryIsCutAlikeAndHasRoomForAll)
{
    for (int size : {1, 2, 3, 5, 8, 9, 64}) {
        std::vector<int> devices;
        for (int rank = 0; rank < size; rank++)
            devices.push_back(rank % 8);
        make(devices, {{"PROBE", "0"}});
        const struct tw_gk_layout layout = gpu(0)->base.layout;
        const uint64_t peers = (uint64_t)size - 1;
        for (int rank = 1; rank < size; rank++)
            EXPECT_EQ(memcmp(&gpu(rank)->base.layout, &layout, sizeof layout), 0);
        EXPECT_GE(layout.lines, end(TW_GK_FLAGS_AT, (uint64_t)size, sizeof(struct tw_gk_flags)));
        EXPECT_GE(layout.ring, end(layout.lines, 2 * peers, layout.line_each));
        EXPECT_GE(layout.bytes, end(layout.ring, peers, layout.ring_each));
        EXPECT_LE(layout.bytes, (uint64_t)16 << 20);
        EXPECT_EQ((layout.lines | layout.ring | layout.line_each | layout.ring_each) % 16, 0u);
        if (size == 2) {
            EXPECT_LE(layout.bytes, (uint64_t)4 << 20);
        }
        destroy();
    }
}

TEST_F(GpuLife, BlocksOfAllRanksOfADeviceAreResident)
{
    fake::reset(8, 20);
    make({0, 1, 0, 0, 2});
    for (int rank = 0; rank < 5; rank++)
        EXPECT_EQ(gpu(rank)->most_blocks, 6) << "20 multiprocessors, 3 ranks";
    destroy();
    fake::reset(1, 2);
    make({0, 0, 0});
    EXPECT_EQ(gpu(0)->most_blocks, 1);
    destroy();
    fake::reset(8);
    make({0, 1});
    EXPECT_EQ(gpu(0)->most_blocks, TW_GK_BLOCKS_MAX);
}

TEST_F(GpuLife, ABoundOnMultiprocessorsIsOfADevicesKernel)
{
    const auto blocks = [&](const std::vector<int> &devices, int bound) {
        struct twill_config config = TWILL_CONFIG_INIT;
        config.max_sms = bound;
        make(devices, {}, &config);
        const int most = gpu(0)->most_blocks;
        for (size_t rank = 1; rank < devices.size(); rank++)
            EXPECT_EQ(gpu((int)rank)->most_blocks, most);
        destroy();
        return most;
    };
    EXPECT_EQ(blocks({0, 1}, 16), 16);
    EXPECT_EQ(blocks({0, 1}, 1), 1);
    EXPECT_EQ(blocks({0, 1}, 0), TW_GK_BLOCKS_MAX);
    EXPECT_EQ(blocks({0, 1}, INT32_MAX), TW_GK_BLOCKS_MAX);
    EXPECT_EQ(blocks({0, 0, 1, 1}, 16), 8) << "one kernel of two ranks";
    EXPECT_EQ(blocks({0, 1, 0, 0}, 16), 5) << "all ranks have as many";
    EXPECT_EQ(blocks({0, 0, 0}, 2), 1) << "each has one at least";
}

TEST_F(GpuLife, ABoundOnMultiprocessorsFromTheParameter)
{
    make({0, 1}, {{"MAX_SMS", "5"}});
    EXPECT_EQ(gpu(0)->most_blocks, 5);
    destroy();
    struct twill_config config = TWILL_CONFIG_INIT;
    config.max_sms = 0;
    make({0, 1}, {{"MAX_SMS", "5"}}, &config);
    EXPECT_EQ(gpu(0)->most_blocks, TW_GK_BLOCKS_MAX) << "the field is stronger";
    destroy();
    for (const char *bad : {"-1", "4000000000"}) {
        twill_comm_t comms[2];
        set_params({{"MAX_SMS", bad}});
        EXPECT_EQ(twill_comm_init_all(comms, 2, nullptr, nullptr), TWILL_ERR_INVALID);
        EXPECT_NE(
            std::string(twill_last_error(nullptr)).find("TWILL_MAX_SMS is " + std::string(bad)),
            std::string::npos)
            << twill_last_error(nullptr);
    }
}

TEST_F(GpuLife, TheLeastBoundOfAllRanksHolds)
{
    twill_unique_id id;
    set_params({});
    ASSERT_EQ(twill_get_unique_id(&id), TWILL_OK);
    comms_.resize(3);
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    for (int rank = 0; rank < 3; rank++) {
        struct twill_config config = TWILL_CONFIG_INIT;
        config.device = rank;
        config.max_sms = rank == 0 ? 0 : 40 - 10 * rank;
        ASSERT_EQ(twill_comm_init(&comms_[(size_t)rank], 3, &id, rank, &config), TWILL_OK);
    }
    ASSERT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
    for (int rank = 0; rank < 3; rank++)
        EXPECT_EQ(gpu(rank)->most_blocks, 20);
    std::vector<twill_comm_t> split(3);
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    for (int rank = 0; rank < 3; rank++)
        ASSERT_EQ(
            twill_comm_split(comms_[(size_t)rank], rank > 1, 0, &split[(size_t)rank], nullptr),
            TWILL_OK);
    ASSERT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
    EXPECT_EQ(split[0]->gpu->most_blocks, 30) << "each rank's own goes on";
    EXPECT_EQ(split[2]->gpu->most_blocks, 20);
    for (twill_comm_t comm : split)
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
}

TEST_F(GpuLife, NothingIsLeftBehind)
{
    const Count before = count_now();
    make({0, 0, 1});
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    for (int rank = 0; rank < 3; rank++)
        ASSERT_EQ(sum(rank, nullptr), TWILL_OK);
    ASSERT_EQ(twill_group_end(), TWILL_OK);
    destroy();
    EXPECT_TRUE(count_returns(before));
}

TEST_F(GpuLife, ASplitStaysOnItsDevices)
{
    make({0, 1, 2, 3});
    const std::vector<twill_comm_t> halves = this->halves();
    if (HasFailure())
        return;
    for (int rank = 0; rank < 4; rank++) {
        int device = -7;
        EXPECT_EQ(twill_comm_device(halves[(size_t)rank], &device), TWILL_OK);
        EXPECT_EQ(device, rank);
        EXPECT_EQ(halves[(size_t)rank]->gpu->base.size, 2);
    }
    for (twill_comm_t comm : halves)
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
}

} // namespace
