/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the calls that libraries above twill need: defaults of their own, the thread's device,
 * groups that come to nothing.
 * Never knows: such a library. */
#include <fstream>
#include <string>

#include <unistd.h>

#include "world.h"

using world::run_alone;

static std::string value_of(const char *name)
{
    char value[256] = "untouched";
    EXPECT_OK(twill_param_get(name, value, sizeof value), nullptr);
    return value;
}

TEST(Above, ADefaultGivesWayToTheEnvironmentAndToSet)
{
    run_alone(
        [] {
            EXPECT_EQ(value_of("TIMEOUT"), "1800s");
            EXPECT_OK(twill_param_default("TIMEOUT", "0"), nullptr);
            EXPECT_EQ(value_of("TWILL_TIMEOUT"), "0");
            EXPECT_OK(twill_param_default("WARN", "3s"), nullptr);
            EXPECT_EQ(value_of("WARN"), "7s") << "the environment's";
            EXPECT_OK(twill_param_set("TIMEOUT", "5s"), nullptr);
            EXPECT_OK(twill_param_default("TIMEOUT", "6s"), nullptr);
            EXPECT_EQ(value_of("TIMEOUT"), "5s") << "what was set";
        },
        {{"TWILL_WARN", "7s"}});
}

TEST(Above, ADefaultCounts)
{
    run_alone([] {
        EXPECT_OK(twill_param_default("CHANNELS", "77"), nullptr);
        twill_comm_t comm = nullptr;
        EXPECT_EQ(twill_comm_init_all(&comm, 1, nullptr, nullptr), TWILL_ERR_INVALID);
        EXPECT_NE(world::text(nullptr).find("TWILL_CHANNELS is 77"), std::string::npos);
        EXPECT_EQ(twill_param_default("CHANNELS", "1"), TWILL_ERR_USAGE) << "they are in use";
        EXPECT_EQ(value_of("CHANNELS"), "77");
    });
}

TEST(Above, BadDefaultsAndQuestionsAreRefused)
{
    run_alone([] {
        char value[8] = "kept";
        EXPECT_EQ(twill_param_default(nullptr, "1"), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_param_default("WARN", nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_param_default("WARN", "soon"), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_param_default("WRAN", "1s"), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_param_get(nullptr, value, sizeof value), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_param_get("WARN", nullptr, sizeof value), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_param_get("WARN", value, 0), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_param_get("WRAN", value, sizeof value), TWILL_ERR_INVALID);
        EXPECT_STREQ(value, "kept");
        EXPECT_NE(world::text(nullptr).find("\"WARN\""), std::string::npos) << "the nearest";
        EXPECT_OK(twill_param_get("TIMEOUT", value, 3), nullptr);
        EXPECT_STREQ(value, "18") << "cut";
    });
}

TEST(Above, WarningsGoToTheLog)
{
    char path[] = "/tmp/twill-above-XXXXXX";
    const int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    run_alone(
        [] {
            EXPECT_EQ(twill_log_warn(nullptr), TWILL_ERR_INVALID);
            EXPECT_OK(twill_log_warn("above: a remark"), nullptr);
            EXPECT_OK(twill_log_warn(std::string(5000, 'x').c_str()), nullptr);
            EXPECT_EQ(twill_param_set("LOG", "none"), TWILL_ERR_USAGE) << "they are in use";
        },
        {{"TWILL_LOG_FILE", path}});
    std::ifstream file(path);
    std::string first, second;
    std::getline(file, first);
    std::getline(file, second);
    EXPECT_NE(first.find("warn api: above: a remark"), std::string::npos) << first;
    EXPECT_NE(second.find(std::string(900, 'x')), std::string::npos);
    unlink(path);
    run_alone([] { EXPECT_EQ(twill_log_warn("x"), TWILL_ERR_INVALID); }, {{"TWILL_WARN", "soon"}});
}

TEST(Above, AThreadHasADeviceOrTheHost)
{
    run_alone([] {
        int device = -7;
        EXPECT_EQ(twill_current_device(nullptr), TWILL_ERR_INVALID);
        const enum twill_status status = twill_current_device(&device);
        if (status == TWILL_OK)
            EXPECT_GE(device, TWILL_DEVICE_HOST);
        else
            EXPECT_EQ(device, -7) << "untouched";
    });
}

TEST(Above, ACanceledGroupRunsNothing)
{
    world::run_all(2, [](const world::Rank &r) {
        twill_comm_t comm = r.init();
        int mine = r.rank, sum = -1;
        EXPECT_EQ(twill_group_cancel(), TWILL_ERR_USAGE) << "no group is open";
        EXPECT_OK(twill_group_start(), comm);
        EXPECT_OK(twill_all_reduce(&mine, &sum, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
        EXPECT_OK(twill_group_start(), comm);
        EXPECT_EQ(twill_group_cancel(), TWILL_ERR_USAGE) << "an inner group";
        EXPECT_OK(twill_group_end(), comm);
        EXPECT_OK(twill_group_cancel(), comm);
        EXPECT_EQ(sum, -1);
        EXPECT_EQ(twill_group_end(), TWILL_ERR_USAGE) << "it is closed";
        EXPECT_OK(twill_all_reduce(&mine, &sum, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
        EXPECT_EQ(sum, 1);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Above, ACanceledGroupMakesNoCommunicators)
{
    run_alone([] {
        twill_comm_t comms[2] = {nullptr, nullptr}, child = nullptr;
        EXPECT_OK(twill_comm_init_all(comms, 2, nullptr, nullptr), nullptr);
        EXPECT_OK(twill_group_start(), nullptr);
        EXPECT_OK(twill_comm_split(comms[0], 0, 0, &child, nullptr), comms[0]);
        twill_comm_t more[2] = {nullptr, nullptr};
        EXPECT_OK(twill_comm_init_all(more, 2, nullptr, nullptr), nullptr);
        EXPECT_OK(twill_group_cancel(), nullptr);
        EXPECT_EQ(child, nullptr);
        EXPECT_EQ(more[0], nullptr);
        enum twill_status state = TWILL_INPROGRESS;
        EXPECT_OK(twill_comm_async_error(comms[0], &state), comms[0]);
        EXPECT_EQ(state, TWILL_OK);
        for (twill_comm_t comm : comms)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}
