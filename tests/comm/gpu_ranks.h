/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how tests get communicators on devices that are made up. Never knows: what is tested. */
#ifndef TESTS_COMM_GPU_RANKS_H
#define TESTS_COMM_GPU_RANKS_H

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fake_gpu.h"
#include "ranks.h"

extern "C" {
#include "comm/gpu.h"
}

class GpuRanks : public ::testing::Test
{
  protected:
    void SetUp() override { fake::reset(8); }
    void make(const std::vector<int> &devices,
              const std::vector<std::pair<std::string, std::string>> &params = {},
              const struct twill_config *config = nullptr)
    {
        set_params(params);
        comms_.resize(devices.size());
        ASSERT_EQ(twill_comm_init_all(comms_.data(), (int)devices.size(), devices.data(), config),
                  TWILL_OK)
            << twill_last_error(nullptr);
    }
    void destroy()
    {
        for (twill_comm_t comm : comms_)
            (void)twill_comm_destroy(comm);
        comms_.clear();
    }
    void TearDown() override
    {
        destroy();
        set_params({});
        for (const std::string &what : fake::misuse())
            ADD_FAILURE() << "CUDA was misused: " << what;
        for (void *ptr : memory_)
            tw_cuda_free(0, ptr);
    }
    /* Of a device. Any thread. */
    char *buffer(int device, size_t bytes)
    {
        void *ptr = nullptr;
        (void)tw_cuda_alloc(device, bytes, &ptr);
        const std::lock_guard<std::mutex> guard(memory_lock_);
        memory_.push_back(ptr);
        return static_cast<char *>(ptr);
    }
    /* Of ranks with even and with odd numbers; the caller's to destroy. */
    std::vector<twill_comm_t> halves()
    {
        std::vector<twill_comm_t> made(comms_.size());
        EXPECT_EQ(twill_group_start(), TWILL_OK);
        for (size_t rank = 0; rank < comms_.size(); rank++)
            EXPECT_EQ(twill_comm_split(comms_[rank], (int)rank % 2, 0, &made[rank], nullptr),
                      TWILL_OK);
        EXPECT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
        return made;
    }
    struct tw_gpu *gpu(int rank) { return comms_[(size_t)rank]->gpu; }
    /* An all_reduce of so many floats, in place. */
    enum twill_status sum(int rank, void *stream, size_t count = 4)
    {
        char *at = buffer(gpu(rank)->device, count * 4 + 4);
        return twill_all_reduce(at, at, count, TWILL_FLOAT32, TWILL_SUM, comms_[(size_t)rank],
                                stream);
    }
    void expect_all(enum twill_status status, const std::string &text)
    {
        for (twill_comm_t comm : comms_) {
            EXPECT_TRUE(fails_within(comm, 10000));
            EXPECT_EQ(status, tw_comm_status(comm));
            EXPECT_NE(std::string(comm->failure).find(text), std::string::npos) << comm->failure;
        }
    }
    std::vector<twill_comm_t> comms_;

  private:
    std::mutex memory_lock_;
    std::vector<void *> memory_;
};

#endif
