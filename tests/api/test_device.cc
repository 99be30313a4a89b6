/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what is said to those who ask for a device where there is none. Never knows: why there is
 * none: the build has no CUDA, or the machine no driver or device. */
#include <functional>

#include "world.h"

extern "C" {
#include "base/cuda.h"
}

namespace
{

/* The sentence of every init that asks for device 0. */
class NoDevice : public ::testing::Test
{
  protected:
    void SetUp() override { config_.device = 0; }
    /* In a process of its own; on machines with devices tests/gpu says what happens. */
    static void alone(const std::function<void(const std::string &why)> &body)
    {
        world::run_alone([&] {
            if (tw_cuda_absence() != nullptr)
                body(tw_cuda_absence());
        });
    }
    static void refused(enum twill_status status, const std::string &why)
    {
        EXPECT_EQ(status, TWILL_ERR_UNSUPPORTED);
        EXPECT_NE(world::text(nullptr).find(why), std::string::npos) << world::text(nullptr);
    }
    twill_config config_ = TWILL_CONFIG_INIT;
};

TEST_F(NoDevice, TheSentenceNamesCuda)
{
    alone([](const std::string &why) { EXPECT_NE(why.find("CUDA"), std::string::npos) << why; });
}

TEST_F(NoDevice, Init)
{
    alone([this](const std::string &why) {
        twill_unique_id id;
        ASSERT_OK(twill_get_unique_id(&id), nullptr);
        twill_comm_t comm = reinterpret_cast<twill_comm_t>(this);
        refused(twill_comm_init(&comm, 1, &id, 0, &config_), why);
        EXPECT_EQ(comm, nullptr);
        config_.blocking = 0; /* at once, and not by async_error */
        refused(twill_comm_init(&comm, 1, &id, 0, &config_), why);
        EXPECT_EQ(comm, nullptr);
        config_ = TWILL_CONFIG_INIT; /* the id is as good as before */
        ASSERT_OK(twill_comm_init(&comm, 1, &id, 0, &config_), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST_F(NoDevice, InitEnv)
{
    alone([this](const std::string &why) {
        twill_comm_t comm = reinterpret_cast<twill_comm_t>(this);
        refused(twill_comm_init_env(&comm, &config_), why);
        EXPECT_EQ(comm, nullptr);
    });
}

TEST_F(NoDevice, InitAll)
{
    alone([this](const std::string &why) {
        const auto none = reinterpret_cast<twill_comm_t>(this);
        twill_comm_t comms[2] = {none, none};
        const auto gone = [&] {
            EXPECT_EQ(comms[0], nullptr);
            EXPECT_EQ(comms[1], nullptr);
            comms[0] = comms[1] = none;
        };
        refused(twill_comm_init_all(comms, 2, nullptr, &config_), why);
        gone();
        const int devices[] = {0, 1};
        refused(twill_comm_init_all(comms, 2, devices, nullptr), why);
        gone();
        const int host[] = {TWILL_DEVICE_HOST, TWILL_DEVICE_HOST};
        refused(twill_comm_init_all(comms, 2, host, &config_), why);
        gone();
        ASSERT_OK(twill_comm_init_all(comms, 2, host, nullptr), nullptr);
        for (twill_comm_t comm : comms)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* A mistake in the list of devices is one, whatever there is. */
TEST_F(NoDevice, InitAllOfMixedPlaces)
{
    world::run_alone([] {
        twill_comm_t comms[2];
        const int mixed[] = {TWILL_DEVICE_HOST, 0};
        EXPECT_EQ(twill_comm_init_all(comms, 2, mixed, nullptr), TWILL_ERR_INVALID);
        EXPECT_NE(world::text(nullptr).find("rank 0 is on the host, rank 1 on a device"),
                  std::string::npos)
            << world::text(nullptr);
        const int none[] = {-2, -2};
        EXPECT_EQ(twill_comm_init_all(comms, 2, none, nullptr), TWILL_ERR_INVALID);
        EXPECT_NE(world::text(nullptr).find("device -2 of rank 0 is none"), std::string::npos)
            << world::text(nullptr);
    });
}

TEST_F(NoDevice, InitInAGroup)
{
    alone([this](const std::string &why) {
        twill_comm_t comms[2], good[2];
        ASSERT_OK(twill_group_start(), nullptr);
        refused(twill_comm_init_all(comms, 2, nullptr, &config_), why);
        ASSERT_OK(twill_comm_init_all(good, 2, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_group_end(), nullptr); /* the error was that call's alone */
        for (twill_comm_t comm : good)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST_F(NoDevice, SplitAndShrink)
{
    alone([this](const std::string &why) {
        twill_comm_t parent, child = reinterpret_cast<twill_comm_t>(this);
        ASSERT_OK(twill_comm_init_all(&parent, 1, nullptr, nullptr), nullptr);
        const auto told = [&](enum twill_status status) {
            EXPECT_EQ(status, TWILL_ERR_UNSUPPORTED);
            EXPECT_NE(world::text(parent).find(why), std::string::npos) << world::text(parent);
            EXPECT_EQ(child, nullptr);
        };
        told(twill_comm_split(parent, 0, 0, &child, &config_));
        told(twill_comm_shrink(parent, &child, &config_));
        int in = 7, out = 0;
        EXPECT_OK(twill_all_reduce(&in, &out, 1, TWILL_INT32, TWILL_SUM, parent, nullptr), parent);
        EXPECT_EQ(out, 7);
        EXPECT_OK(twill_comm_destroy(parent), nullptr);
    });
}

} // namespace
