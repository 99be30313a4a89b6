/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/log.c. Never knows: who logs. */
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
#include "base/log.h"
#include "base/status.h"
}
#include "capture.h"

namespace
{

class Log : public testing::Test
{
  protected:
    void TearDown() override { tw_log_configure(nullptr, nullptr); }
    /* configure, with the log in a file */
    enum twill_status to_file(const char *levels)
    {
        return tw_log_configure(levels, folder_.path("log").c_str());
    }
    std::string text() { return text_of(folder_.path("log")); }
    Folder folder_;
};

std::string prefix() { return "twill[" + std::to_string(getpid()) + "] "; }

TEST_F(Log, WarnIsTheDefault)
{
    for (const char *levels : {static_cast<const char *>(nullptr), ""}) {
        ASSERT_EQ(TWILL_OK, tw_log_configure(levels, nullptr));
        EXPECT_TRUE(tw_log_on(TW_SUB_NET, TW_LOG_WARN));
        EXPECT_FALSE(tw_log_on(TW_SUB_NET, TW_LOG_INFO));
    }
}

TEST_F(Log, LevelsPerSubsystem)
{
    ASSERT_EQ(TWILL_OK, tw_log_configure("info,net=trace,plan=none", nullptr));
    EXPECT_TRUE(tw_log_on(TW_SUB_BASE, TW_LOG_INFO));
    EXPECT_FALSE(tw_log_on(TW_SUB_BASE, TW_LOG_DEBUG));
    EXPECT_TRUE(tw_log_on(TW_SUB_NET, TW_LOG_TRACE));
    EXPECT_FALSE(tw_log_on(TW_SUB_PLAN, TW_LOG_ERROR));
    ASSERT_EQ(TWILL_OK, tw_log_configure("api=debug", nullptr));
    EXPECT_TRUE(tw_log_on(TW_SUB_API, TW_LOG_DEBUG));
    EXPECT_TRUE(tw_log_on(TW_SUB_BASE, TW_LOG_WARN));
    EXPECT_FALSE(tw_log_on(TW_SUB_BASE, TW_LOG_INFO));
}

TEST_F(Log, BadLevelsChangeNothingAndAreNamed)
{
    ASSERT_EQ(TWILL_OK, to_file("info,chan=debug"));
    for (const char *bad : {"loud", "info,", ",info", "net=", "=warn", "nets=info", "net=loud",
                            "net=info=info", "WARN", " info"}) {
        EXPECT_EQ(TWILL_ERR_INVALID, tw_log_configure(bad, nullptr)) << bad;
        EXPECT_TRUE(tw_log_on(TW_SUB_CHAN, TW_LOG_DEBUG)) << bad;
    }
    EXPECT_EQ(TWILL_ERR_INVALID, tw_log_configure("plan=loud", nullptr));
    EXPECT_STREQ("log level \"loud\" is none of none error warn info debug trace", tw_fail_text());
    EXPECT_NE(std::string::npos, text().find("log level \"loud\""));
}

TEST_F(Log, OneLineWithProcessLevelAndSubsystem)
{
    ASSERT_EQ(TWILL_OK, to_file("info"));
    tw_info(TW_SUB_CHAN, "%d of %s", 3, "four");
    tw_debug(TW_SUB_CHAN, "not shown");
    EXPECT_EQ(prefix() + "info chan: 3 of four\n", text());
}

TEST_F(Log, ControlCharactersCannotForgeALine)
{
    ASSERT_EQ(TWILL_OK, to_file("warn"));
    tw_warn(TW_SUB_NET, "name \"%s\"", "a\ntwill[1] error net: forged\x1b[31m");
    EXPECT_EQ(prefix() + "warn net: name \"a?twill[1] error net: forged?[31m\"\n", text());
}

TEST_F(Log, LongLinesAreCutAndStillEnd)
{
    ASSERT_EQ(TWILL_OK, to_file("warn"));
    tw_warn(TW_SUB_NET, "%s", std::string(100000, 'y').c_str());
    std::string line = text();
    EXPECT_EQ(1024u, line.size());
    EXPECT_EQ("yy\n", line.substr(line.size() - 3));
}

TEST_F(Log, ErrnoSurvives)
{
    ASSERT_EQ(TWILL_OK, to_file("warn"));
    errno = EXDEV;
    tw_warn(TW_SUB_NET, "x");
    EXPECT_EQ(EXDEV, errno);
}

TEST_F(Log, FileNamesAreExpanded)
{
    char host[256];
    ASSERT_EQ(0, gethostname(host, sizeof(host)));
    std::string host_name(host);
    setenv("TWILL_RANK", "17", 1);
    ASSERT_EQ(TWILL_OK, tw_log_configure("warn", folder_.path("%h.%p.%r.%%").c_str()));
    unsetenv("TWILL_RANK");
    tw_warn(TW_SUB_API, "here");
    std::string path =
        folder_.path(host_name.substr(0, 63) + "." + std::to_string(getpid()) + ".17.%");
    EXPECT_EQ(prefix() + "warn api: here\n", text_of(path));
}

TEST_F(Log, BadFilesAreRefused)
{
    ASSERT_EQ(TWILL_OK, to_file("none"));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_log_configure("none", folder_.path("%q").c_str()));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_log_configure("none", folder_.path("%").c_str()));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_log_configure("none", std::string(9000, 'a').c_str()));
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_log_configure("none", folder_.path("no/such").c_str()));
}

/* Neither a reader that does not come nor one that does not read is waited for. */
TEST_F(Log, APipeIsNeverWaitedFor)
{
    const std::string path = folder_.path("pipe");
    ASSERT_EQ(0, mkfifo(path.c_str(), 0600));
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_log_configure("warn", path.c_str()));

    const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    ASSERT_EQ(TWILL_OK, tw_log_configure("warn", path.c_str()));
    const std::string line(500, 'x');
    for (int i = 0; i < 1000; i++) /* more than a pipe holds */
        tw_warn(TW_SUB_API, "%s", line.c_str());
    char got[4096];
    EXPECT_EQ(static_cast<ssize_t>(sizeof(got)), read(reader, got, sizeof(got)));
    ASSERT_EQ(TWILL_OK, to_file("none")); /* nobody writes to the pipe any more */
    close(reader);
}

TEST_F(Log, ThreadsWriteWholeLinesWhileTheFileIsChanged)
{
    const int lines = 200;
    ASSERT_EQ(TWILL_OK, to_file("warn"));
    std::vector<std::thread> writers;
    for (int t = 0; t < 3; t++)
        writers.emplace_back([t] {
            for (int i = 0; i < lines; i++)
                tw_warn(TW_SUB_EXEC, "writer %d", t);
        });
    for (int i = 0; i < 50; i++)
        ASSERT_EQ(TWILL_OK,
                  tw_log_configure("warn", folder_.path(i % 2 ? "log" : "other").c_str()));
    for (auto &writer : writers)
        writer.join();
    std::stringstream all(text() + text_of(folder_.path("other")));
    std::string line;
    int seen = 0;
    for (; std::getline(all, line); seen++)
        ASSERT_EQ(0u, line.find(prefix() + "warn exec: writer ")) << line;
    EXPECT_EQ(3 * lines, seen);
}

} // namespace
