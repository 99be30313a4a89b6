/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments that are wrong on a device, and what is to be said of them.
 * Never knows: calls that do not match (mismatch.cc). */
#include <cstring>

#include "gpu/base.h"
#include "gpu/world.h"

namespace gpu
{

namespace
{

const size_t COUNT = 1000, BYTES = COUNT * sizeof(uint32_t);

/* Two ranks with buffers, whose communicator is to survive what a test does to it. */
class Arguments : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        world_ = std::make_unique<World>(place(2, 0));
        for (int r = 0; r < 2; r++)
            memory_[r] = std::make_unique<Memory>(world_->rank(r).device, 4 * BYTES);
    }
    void TearDown() override
    {
        if (HasFatalFailure())
            return;
        works();
        memory_[0].reset();
        memory_[1].reset();
        world_->destroy();
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    }

    twill_comm_t comm(int r = 0) { return world_->rank(r).comm; }
    char *at(int r = 0) { return memory_[r]->get(); }
    cudaStream_t stream(int r = 0) { return *world_->rank(r).own[0]; }
    void works();
    void refused(enum twill_status status, enum twill_status expected, const std::string &words);
    void refused_both(const void *bad, const std::string &words);

    std::unique_ptr<World> world_;
    std::unique_ptr<Memory> memory_[2];
};

/* A call of all ranks still gives what it should. */
void Arguments::works()
{
    uint32_t out[COUNT];

    for (int r = 0; r < 2; r++) {
        const On on(world_->rank(r).device);
        CUDA(cudaMemset(at(r), 1 + r, BYTES));
        CUDA(cudaDeviceSynchronize());
    }
    grouped([&] {
        for (int r = 0; r < 2; r++)
            TWILL(
                twill_all_reduce(at(r), at(r), COUNT, TWILL_UINT32, TWILL_SUM, comm(r), stream(r)),
                comm(r));
    });
    for (int r = 0; r < 2; r++) {
        wait(world_->rank(r).device, stream(r));
        CUDA(cudaMemcpy(out, at(r), BYTES, cudaMemcpyDeviceToHost));
        for (uint32_t value : out)
            ASSERT_EQ(value, 0x03030303u);
    }
    world_->healthy();
}

void Arguments::refused(enum twill_status status, enum twill_status expected,
                        const std::string &words)
{
    EXPECT_EQ(status, expected) << twill_status_string(status);
    const std::string text = twill_last_error(comm());
    EXPECT_TRUE(contains(text, words)) << "\"" << text << "\" does not say \"" << words << "\"";
}

/* As either buffer, outside of a group and in one. */
void Arguments::refused_both(const void *bad, const std::string &words)
{
    void *writable = const_cast<void *>(bad);

    refused(twill_all_reduce(bad, at(), COUNT, TWILL_FLOAT32, TWILL_SUM, comm(), stream()),
            TWILL_ERR_INVALID, "sendbuf");
    refused(twill_all_reduce(at(), writable, COUNT, TWILL_FLOAT32, TWILL_SUM, comm(), stream()),
            TWILL_ERR_INVALID, "recvbuf");
    refused(twill_all_reduce(at(), writable, COUNT, TWILL_FLOAT32, TWILL_SUM, comm(), stream()),
            TWILL_ERR_INVALID, words);
    TWILL(twill_group_start(), nullptr);
    refused(twill_broadcast(bad, writable, COUNT, TWILL_FLOAT32, 0, comm(), stream()),
            TWILL_ERR_INVALID, words);
    EXPECT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
}

} // namespace

TEST_F(Arguments, HostPointer)
{
    static uint32_t buffer[COUNT];
    uint32_t local[COUNT];
    std::vector<uint32_t> heap(COUNT);

    refused_both(buffer, "host memory");
    refused_both(local, "host memory");
    refused_both(heap.data(), "host memory");
    refused_both((const void *)0x1000, "host memory"); /* nothing at all */
}

TEST_F(Arguments, PinnedPointer)
{
    Pinned pinned(BYTES);
    refused_both(pinned.get(), "pinned");
}

TEST_F(Arguments, PointerOfAnotherDevice)
{
    if (devices() < 2)
        GTEST_SKIP() << "needs 2 GPUs: not run";
    refused_both(at(1), "device 1");
}

TEST_F(Arguments, MisalignedPointer)
{
    refused_both(at() + BYTES + 1, "aligned");
    refused_both(at() + BYTES + 2, "aligned");
    refused(twill_all_gather(at() + 4, at() + 1024, 8, TWILL_FLOAT64, comm(), stream()),
            TWILL_ERR_INVALID, "aligned");
}

TEST_F(Arguments, FreedMemory)
{
    char *gone;
    {
        /* larger than what an allocator would keep for other small allocations */
        Memory memory(world_->rank(0).device, (size_t)64 << 20);
        gone = memory.get();
    }
    refused_both(gone, "freed");
}

TEST_F(Arguments, Null)
{
    refused(twill_all_reduce(nullptr, at(), COUNT, TWILL_FLOAT32, TWILL_SUM, comm(), stream()),
            TWILL_ERR_INVALID, "sendbuf");
    refused(twill_all_reduce(at(), nullptr, COUNT, TWILL_FLOAT32, TWILL_SUM, comm(), stream()),
            TWILL_ERR_INVALID, "recvbuf");
}

TEST_F(Arguments, OtherArguments)
{
    refused(twill_all_reduce(at(), at(), COUNT, (twill_type_t)99, TWILL_SUM, comm(), stream()),
            TWILL_ERR_INVALID, "type");
    refused(twill_all_reduce(at(), at(), COUNT, TWILL_FLOAT32, TWILL_BAND, comm(), stream()),
            TWILL_ERR_INVALID, "");
    refused(twill_broadcast(at(), at(), COUNT, TWILL_FLOAT32, 2, comm(), stream()),
            TWILL_ERR_INVALID, "root");
    refused(twill_all_reduce(at(), at() + 4, COUNT, TWILL_FLOAT32, TWILL_SUM, comm(), stream()),
            TWILL_ERR_INVALID, "");
    refused(twill_all_reduce(at(), at(), SIZE_MAX / 2, TWILL_FLOAT32, TWILL_SUM, comm(), stream()),
            TWILL_ERR_INVALID, "");
}

/* What holds nothing on this rank may be anything; what does is looked at. */
TEST_F(Arguments, CountsForEachRank)
{
    const size_t counts[2] = {8, 8}, none[2] = {0, 0};
    static uint32_t host[COUNT];
    char *odd = at() + 1;
    const auto no = [&](enum twill_status status, const char *words) {
        refused(status, TWILL_ERR_INVALID, words);
    };

    no(twill_all_gather_v(host, at(), counts, nullptr, TWILL_INT32, comm(), stream()), "sendbuf");
    no(twill_all_gather_v(at(), host, counts, nullptr, TWILL_INT32, comm(), stream()), "recvbuf");
    no(twill_all_gather_v(at() + 1024, odd, counts, nullptr, TWILL_INT32, comm(), stream()),
       "aligned");
    no(twill_reduce_scatter_v(host, at(), counts, nullptr, TWILL_INT32, TWILL_SUM, comm(),
                              stream()),
       "host memory");
    no(twill_all_to_all_v(host, counts, nullptr, at(), counts, nullptr, TWILL_INT32, comm(),
                          stream()),
       "sendbuf");
    no(twill_all_to_all_v(at(), counts, nullptr, host, counts, nullptr, TWILL_INT32, comm(),
                          stream()),
       "recvbuf");
    no(twill_gather_v(at(), 8, host, counts, nullptr, TWILL_INT32, 0, comm(), stream()), "recvbuf");
    no(twill_scatter_v(host, counts, nullptr, at(), 8, TWILL_INT32, 0, comm(), stream()),
       "sendbuf");
    no(twill_all_to_all_v(at(), none, nullptr, at() + 64, counts, nullptr, TWILL_INT32, comm(),
                          stream()),
       "itself");
    grouped([&] {
        for (int r = 0; r < 2; r++) {
            TWILL(twill_all_to_all_v(host, none, nullptr, odd, none, nullptr, TWILL_INT32, comm(r),
                                     stream(r)),
                  comm(r));
            TWILL(twill_all_gather_v(nullptr, host, none, nullptr, TWILL_INT32, comm(r), stream(r)),
                  comm(r));
            TWILL(twill_reduce_scatter_v(nullptr, nullptr, none, nullptr, TWILL_INT32, TWILL_SUM,
                                         comm(r), stream(r)),
                  comm(r));
        }
    });
}

/* ---- devices -----------------------------------------------------------------------------------
 */

static void no_communicator(const std::vector<int> &list, const std::string &words)
{
    std::vector<twill_comm_t> comms(list.size(), (twill_comm_t)1);

    EXPECT_EQ(twill_comm_init_all(comms.data(), (int)list.size(), list.data(), nullptr),
              TWILL_ERR_INVALID);
    for (twill_comm_t comm : comms)
        EXPECT_EQ(comm, nullptr);
    EXPECT_TRUE(contains(twill_last_error(nullptr), words)) << twill_last_error(nullptr);
}

TEST(Devices, ThatDoNotExist)
{
    no_communicator({0, 99}, "99");
    no_communicator({devices()}, std::to_string(devices()));
    no_communicator({-2, 0}, "-2");

    struct twill_config config = TWILL_CONFIG_INIT;
    twill_comm_t comm = nullptr;
    twill_unique_id id;
    TWILL(twill_get_unique_id(&id), nullptr);
    config.device = 99;
    EXPECT_EQ(twill_comm_init(&comm, 1, &id, 0, &config), TWILL_ERR_INVALID);
    EXPECT_EQ(comm, nullptr);
    EXPECT_TRUE(contains(twill_last_error(nullptr), "99")) << twill_last_error(nullptr);
    config.device = 0;
    TWILL(twill_comm_init(&comm, 1, &id, 0, &config), nullptr); /* the id is still good */
    int device = -5;
    EXPECT_EQ(twill_comm_device(comm, &device), TWILL_OK);
    EXPECT_EQ(device, 0);
    TWILL(twill_comm_destroy(comm), nullptr);
}

TEST(Devices, MixedWithTheHost)
{
    no_communicator({TWILL_DEVICE_HOST, 0}, "host");
    no_communicator({0, TWILL_DEVICE_HOST}, "host");

    enum twill_status statuses[2];
    std::string texts[2];
    twill_unique_id id;
    TWILL(twill_get_unique_id(&id), nullptr);
    on_threads(2, [&](int r) {
        struct twill_config config = TWILL_CONFIG_INIT;
        twill_comm_t comm = nullptr;

        config.device = r == 0 ? 0 : TWILL_DEVICE_HOST;
        statuses[r] = twill_comm_init(&comm, 2, &id, r, &config);
        texts[r] = twill_last_error(nullptr);
    });
    for (int r = 0; r < 2; r++) {
        EXPECT_EQ(statuses[r], TWILL_ERR_VERSION) << twill_status_string(statuses[r]);
        EXPECT_TRUE(contains(texts[r], "host") && contains(texts[r], "device")) << texts[r];
    }
}

} // namespace gpu
