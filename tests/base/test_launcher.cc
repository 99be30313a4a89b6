/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/launcher.c. Never knows: what is made of the variables. */
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>
#include <string>

extern "C" {
#include "base/launcher.h"
#include "base/log.h"
#include "base/status.h"
}

namespace
{

class Launcher : public testing::Test
{
  protected:
    void SetUp() override
    {
        tw_log_configure("none", nullptr);
        unsetenv("WORLD_SIZE");
    }
    void TearDown() override
    {
        unsetenv("WORLD_SIZE");
        tw_log_configure(nullptr, nullptr);
    }
};

TEST_F(Launcher, EveryVariableHasItsOwnName)
{
    std::set<std::string> names;
    for (int i = 0; i < TW_LAUNCHER_COUNT; i++)
        names.insert(tw_launcher_name(static_cast<enum tw_launcher_var>(i)));
    EXPECT_EQ(static_cast<size_t>(TW_LAUNCHER_COUNT), names.size());
    EXPECT_STREQ("WORLD_SIZE", tw_launcher_name(TW_LAUNCHER_TORCH_SIZE));
    EXPECT_STREQ("OMPI_COMM_WORLD_RANK", tw_launcher_name(TW_LAUNCHER_OMPI_RANK));
}

TEST_F(Launcher, UnsetAndEmptyAreAlike)
{
    int value = 77;
    EXPECT_EQ(nullptr, tw_launcher_text(TW_LAUNCHER_TORCH_SIZE));
    EXPECT_EQ(TWILL_OK, tw_launcher_int(TW_LAUNCHER_TORCH_SIZE, &value));
    setenv("WORLD_SIZE", "", 1);
    EXPECT_EQ(nullptr, tw_launcher_text(TW_LAUNCHER_TORCH_SIZE));
    EXPECT_EQ(TWILL_OK, tw_launcher_int(TW_LAUNCHER_TORCH_SIZE, &value));
    EXPECT_EQ(77, value);
}

TEST_F(Launcher, IntegersAreRead)
{
    int value = 77;
    setenv("WORLD_SIZE", "16", 1);
    EXPECT_STREQ("16", tw_launcher_text(TW_LAUNCHER_TORCH_SIZE));
    EXPECT_EQ(TWILL_OK, tw_launcher_int(TW_LAUNCHER_TORCH_SIZE, &value));
    EXPECT_EQ(16, value);
    setenv("WORLD_SIZE", "-2147483648", 1);
    EXPECT_EQ(TWILL_OK, tw_launcher_int(TW_LAUNCHER_TORCH_SIZE, &value));
    EXPECT_EQ(INT32_MIN, value);
}

TEST_F(Launcher, AnythingElseIsAnErrorThatNamesIt)
{
    for (const char *bad :
         {"x", "1x", "1.5", "2147483648", "-2147483649", "99999999999999999999999999", "-"}) {
        int value = 77;
        setenv("WORLD_SIZE", bad, 1);
        EXPECT_EQ(TWILL_ERR_INVALID, tw_launcher_int(TW_LAUNCHER_TORCH_SIZE, &value)) << bad;
        EXPECT_EQ(77, value) << bad;
        EXPECT_EQ("WORLD_SIZE=\"" + std::string(bad) + "\": expected an integer", tw_fail_text());
    }
}

} // namespace
