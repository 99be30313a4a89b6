/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/param.c. Never knows: what a parameter does. */
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "base/log.h"
#include "base/param.h"
#include "base/status.h"
}
#include "capture.h"

namespace
{

/* Each test starts and ends without settings; the log goes into a file. */
class Param : public testing::Test
{
  protected:
    void SetUp() override
    {
        tw_params_reset();
        put("TWILL_LOG_FILE", folder_.path("log"));
        ASSERT_EQ(TWILL_OK, tw_log_configure("warn", folder_.path("log").c_str()));
    }
    void TearDown() override
    {
        for (const auto &name : put_)
            unsetenv(name.c_str());
        tw_params_reset();
        tw_log_configure(nullptr, nullptr);
    }
    void put(const std::string &name, const std::string &value)
    {
        setenv(name.c_str(), value.c_str(), 1);
        put_.push_back(name);
    }
    std::string log() { return text_of(folder_.path("log")); }
    struct tw_param_row row(const std::string &name)
    {
        struct tw_param_row found = {};
        for (size_t i = 0; tw_param_row(i, &found); i++) {
            if (name == found.name)
                return found;
        }
        ADD_FAILURE() << name;
        return found;
    }
    Folder folder_;
    std::vector<std::string> put_;
};

TEST_F(Param, DefaultsAreTheTables)
{
    const struct tw_params *params = nullptr;
    ASSERT_EQ(TWILL_OK, tw_params_get(&params));
    EXPECT_STREQ("", params->algo);
    EXPECT_STREQ("warn", params->log);
    EXPECT_EQ(300000000000u, params->init_timeout_ns);
    EXPECT_EQ(20000000000u, params->warn_ns);
    EXPECT_EQ(1800000000000u, params->timeout_ns);
    EXPECT_EQ(33554432u, params->staging_bytes);
    EXPECT_EQ(-1, params->rank);
    EXPECT_EQ(0, params->channels);
    EXPECT_TRUE(params->shm);
    EXPECT_FALSE(params->deterministic);
}

TEST_F(Param, EveryDefaultParsesAndEveryRowIsDocumented)
{
    struct tw_param_row one = {};
    std::map<std::string, int> seen;
    size_t rows = 0;
    for (; tw_param_row(rows, &one); rows++) {
        seen[one.name]++;
        EXPECT_GT(std::string(one.doc).size(), 10u) << one.name;
        if (one.dflt[0] != '\0') {
            EXPECT_EQ(TWILL_OK, tw_param_set(one.name, one.dflt)) << one.name;
        }
    }
    EXPECT_EQ(rows, seen.size()) << "a name is in the table twice";
    EXPECT_FALSE(tw_param_row(rows, &one));
    EXPECT_FALSE(tw_param_row(SIZE_MAX, &one));
}

TEST_F(Param, TheEnvironmentCounts)
{
    put("TWILL_STAGING", "64K");
    put("TWILL_TIMEOUT", "1.8us");
    put("TWILL_WARN", "5");
    put("TWILL_SHM", "off");
    put("TWILL_ALGO", "all_reduce=ring");
    put("TWILL_RANK", ""); /* empty is as good as unset */
    const struct tw_params *params = nullptr;
    ASSERT_EQ(TWILL_OK, tw_params_get(&params));
    EXPECT_EQ(65536u, params->staging_bytes);
    EXPECT_EQ(1800u, params->timeout_ns);
    EXPECT_EQ(5000000000u, params->warn_ns);
    EXPECT_FALSE(params->shm);
    EXPECT_STREQ("all_reduce=ring", params->algo);
    EXPECT_EQ(-1, params->rank);
}

TEST_F(Param, BadValuesNameVariableValueAndWhatIsExpected)
{
    const struct {
        const char *name, *value, *expected;
    } rows[] = {
        {"TWILL_STAGING", "64Q", "expected a whole number of bytes"},
        {"TWILL_TIMEOUT", "soon", "expected a time"},
        {"TWILL_RANK", "first", "expected an integer"},
        {"TWILL_SHM", "maybe", "expected 0 or 1"},
    };
    for (const auto &one : rows) {
        const struct tw_params *params = nullptr;
        put(one.name, one.value);
        EXPECT_EQ(TWILL_ERR_INVALID, tw_params_get(&params)) << one.name;
        EXPECT_EQ(nullptr, params);
        std::string text = tw_fail_text();
        EXPECT_EQ(0u, text.find(std::string(one.name) + "=\"" + one.value + "\"")) << text;
        EXPECT_NE(std::string::npos, text.find(one.expected)) << text;
        unsetenv(one.name);
    }
    put("TWILL_ALGO", std::string(256, 'a'));
    const struct tw_params *params = nullptr;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_params_get(&params));
    put("TWILL_ALGO", std::string(255, 'a'));
    EXPECT_EQ(TWILL_OK, tw_params_get(&params));
}

TEST_F(Param, ABadLogLevelIsAnErrorToo)
{
    put("TWILL_LOG", "loud");
    const struct tw_params *params = nullptr;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_params_get(&params));
    ASSERT_EQ(TWILL_OK, tw_param_set("LOG", "error"));
    EXPECT_EQ(TWILL_OK, tw_params_get(&params)) << "an error freezes nothing";
    EXPECT_FALSE(tw_log_on(TW_SUB_BASE, TW_LOG_WARN));
}

TEST_F(Param, UnknownNamesAreWarnedOfOnceWithTheNearest)
{
    put("TWILL_STAGNIG", "64K");
    put("TWILL_CHANELS", "2");
    put("TWILL_", "2");
    const struct tw_params *params = nullptr;
    ASSERT_EQ(TWILL_OK, tw_params_get(&params));
    ASSERT_EQ(TWILL_OK, tw_params_get(&params));
    std::string text = log();
    size_t first = text.find("TWILL_STAGNIG is no parameter and is ignored; the nearest is "
                             "TWILL_STAGING");
    ASSERT_NE(std::string::npos, first) << text;
    EXPECT_EQ(std::string::npos, text.find("STAGNIG", first + 10));
    EXPECT_NE(std::string::npos, text.find("the nearest is TWILL_CHANNELS")) << text;
    EXPECT_EQ(std::string::npos, text.find("LOG_FILE is no")) << text;
}

TEST_F(Param, AHugeUnknownNameIsCut)
{
    put("TWILL_" + std::string(100000, 'Z'), "1");
    const struct tw_params *params = nullptr;
    ASSERT_EQ(TWILL_OK, tw_params_get(&params));
    EXPECT_NE(std::string::npos, log().find("TWILL_" + std::string(100, 'Z')));
}

TEST_F(Param, SetIsStrongerThanTheEnvironment)
{
    put("TWILL_CHANNELS", "nonsense");
    EXPECT_EQ(TW_PARAM_ENV, row("CHANNELS").source);
    EXPECT_STREQ("nonsense", row("CHANNELS").value);
    ASSERT_EQ(TWILL_OK, tw_param_set("CHANNELS", "4"));
    ASSERT_EQ(TWILL_OK, tw_param_set("TWILL_SIZE", "8")) << "the full name will do";
    EXPECT_EQ(TW_PARAM_SET, row("CHANNELS").source);
    EXPECT_STREQ("4", row("CHANNELS").value);
    EXPECT_EQ(TW_PARAM_DEFAULT, row("SHM").source);
    EXPECT_STREQ("1", row("SHM").value);
    const struct tw_params *params = nullptr;
    ASSERT_EQ(TWILL_OK, tw_params_get(&params));
    EXPECT_EQ(4, params->channels);
    EXPECT_EQ(8, params->size);
}

TEST_F(Param, SetRefusesWhatItCannotMean)
{
    EXPECT_EQ(TWILL_ERR_INVALID, tw_param_set(nullptr, "1"));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_param_set("SHM", nullptr));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_param_set("SHN", "1"));
    EXPECT_STREQ("parameter \"SHN\" is unknown; the nearest is \"SHM\"", tw_fail_text());
    EXPECT_EQ(TWILL_ERR_INVALID, tw_param_set("", "1"));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_param_set("SHM", "perhaps"));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_param_set("STAGING", ""));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_param_set("RANK", std::string(300, '0').c_str()));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_param_set("ALGO", std::string(100000, 'a').c_str()));
    EXPECT_EQ(TW_PARAM_DEFAULT, row("SHM").source);
}

TEST_F(Param, GetFreezesAndPeekDoesNot)
{
    struct tw_params shown;
    ASSERT_EQ(TWILL_OK, tw_params_peek(&shown));
    ASSERT_EQ(TWILL_OK, tw_param_set("CHANNELS", "3"));
    ASSERT_EQ(TWILL_OK, tw_params_peek(&shown));
    EXPECT_EQ(3, shown.channels);
    const struct tw_params *params = nullptr;
    ASSERT_EQ(TWILL_OK, tw_params_get(&params));
    EXPECT_EQ(TWILL_ERR_USAGE, tw_param_set("CHANNELS", "5"));
    put("TWILL_CHANNELS", "6");
    ASSERT_EQ(TWILL_OK, tw_params_peek(&shown));
    EXPECT_EQ(3, shown.channels);
    const struct tw_params *again = nullptr;
    ASSERT_EQ(TWILL_OK, tw_params_get(&again));
    EXPECT_EQ(params, again);
    EXPECT_EQ(3, again->channels);
}

TEST_F(Param, PeekReportsBadValues)
{
    struct tw_params shown;
    put("TWILL_SIZE", "many");
    EXPECT_EQ(TWILL_ERR_INVALID, tw_params_peek(&shown));
}

TEST_F(Param, ThreadsMayAskAtOnce)
{
    std::vector<std::thread> threads;
    const struct tw_params *seen[4] = {};
    for (auto &one : seen)
        threads.emplace_back([&one] { EXPECT_EQ(TWILL_OK, tw_params_get(&one)); });
    for (auto &thread : threads)
        thread.join();
    for (const auto *one : seen) {
        ASSERT_EQ(seen[0], one);
        EXPECT_EQ(33554432u, one->staging_bytes);
    }
}

TEST_F(Param, RankOfTheLauncher)
{
    EXPECT_STREQ("x", tw_param_env_rank());
    put("RANK", "3");
    EXPECT_STREQ("3", tw_param_env_rank());
    put("TWILL_RANK", "5");
    EXPECT_STREQ("5", tw_param_env_rank());
    put("TWILL_RANK", "../../etc/passwd");
    EXPECT_STREQ("3", tw_param_env_rank()) << "it becomes part of a file name";
}

} // namespace
