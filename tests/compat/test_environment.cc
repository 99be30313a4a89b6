/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which of twill's parameters NCCL's variables are, in the environment and in files.
 * Never knows: what the parameters do. */
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "ranks.h"
#include "twill.h"

namespace
{

std::string value_of(const char *name)
{
    char value[256] = "";
    EXPECT_EQ(twill_param_get(name, value, sizeof value), TWILL_OK);
    return value;
}

/* A file of this name, while it lives. */
class File
{
  public:
    explicit File(const std::string &text)
    {
        char path[] = "/tmp/twill-nccl-XXXXXX";
        const int fd = mkstemp(path);
        EXPECT_GE(fd, 0);
        close(fd);
        path_ = path;
        std::ofstream(path_) << text;
    }
    ~File() { unlink(path_.c_str()); }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    const std::string &path() const { return path_; }
    std::vector<std::string> lines() const
    {
        std::vector<std::string> all;
        std::ifstream file(path_);
        for (std::string line; std::getline(file, line);)
            all.push_back(line);
        return all;
    }

  private:
    std::string path_;
};

void start()
{
    ncclUniqueId id;
    EXPECT_NCCL(ncclGetUniqueId(&id));
}

/* Under these variables a parameter is this, once the first communicator is about to be made. */
void expect_param(const ranks::Env &env, const char *name, const char *value)
{
    const File log("");
    ranks::Env all = env;
    all.push_back({"TWILL_LOG_FILE", log.path()});
    ranks::alone(
        [name, value] {
            start();
            EXPECT_EQ(value_of(name), value) << name;
        },
        all);
    EXPECT_TRUE(log.lines().empty()) << log.lines()[0];
}

/* The one line that is said under these variables. */
std::string line_under(const ranks::Env &env)
{
    const File log("");
    ranks::Env all = env;
    all.push_back({"TWILL_LOG_FILE", log.path()});
    ranks::alone(
        [] {
            start();
            start(); /* once for a process */
        },
        all);
    EXPECT_EQ(log.lines().size(), 1u);
    return log.lines().empty() ? "" : log.lines()[0];
}

} // namespace

TEST(NcclEnvironment, VariablesAreParameters)
{
    expect_param({{"NCCL_P2P_DISABLE", "1"}}, "P2P", "0");
    expect_param({{"NCCL_P2P_DISABLE", "0"}}, "P2P", "1");
    expect_param({{"NCCL_P2P_LEVEL", "LOC"}}, "P2P", "0");
    expect_param({{"NCCL_ALGO", "Ring"}}, "ALGO", "ring");
    expect_param({{"NCCL_ALGO", "Tree"}}, "ALGO", "double_tree");
    expect_param({{"NCCL_ALGO", "^Tree,NVLS,PAT"}}, "ALGO", "^double_tree,^pat");
    expect_param({{"NCCL_PROTO", "Simple"}}, "PROTO", "simple");
    expect_param({{"NCCL_MAX_NCHANNELS", "4"}}, "CHANNELS", "4");
    expect_param({{"NCCL_MAX_CTAS", "8"}}, "MAX_SMS", "8");
    expect_param({{"NCCL_HOSTID", "here"}}, "HOSTID", "here");
    expect_param({{"NCCL_VERSION", "2.19.3-1"}}, "TIMEOUT", "0");
}

TEST(NcclEnvironment, TwillsOwnVariablesAreStronger)
{
    expect_param({{"NCCL_P2P_DISABLE", "1"}, {"TWILL_P2P", "1"}}, "P2P", "1");
    expect_param({{"TWILL_TIMEOUT", "7s"}}, "TIMEOUT", "7s");
}

TEST(NcclEnvironment, WhatHasNoEffectIsSaidOnce)
{
    EXPECT_NE(line_under({{"NCCL_IB_HCA", "mlx5_0"}}).find("NCCL_IB_HCA=\"mlx5_0\" has no effect"),
              std::string::npos);
    EXPECT_NE(line_under({{"NCCL_NVLS_ENABLE", "1"}}).find("NCCL_NVLS_ENABLE"), std::string::npos);
    EXPECT_NE(line_under({{"NCCL_ALGO", "Ring,Tree"}}).find("TWILL_ALGO"), std::string::npos);
    EXPECT_NE(line_under({{"NCCL_PROTO", "LL128"}}).find("NCCL_PROTO"), std::string::npos);
    EXPECT_NE(line_under({{"NCCL_MAX_NCHANNELS", "many"}}).find("an integer"), std::string::npos);
    EXPECT_NE(line_under({{"NCCL_DEBUG_SUBSYS", "ALL"}}).find("TWILL_LOG"), std::string::npos);
    EXPECT_NE(line_under({{"NCCL_DEBUG_FILE", "/tmp/%x"}}).find("NCCL_DEBUG_FILE"),
              std::string::npos);
}

TEST(NcclEnvironment, DebugNamesTwill)
{
    for (const char *level : {"VERSION", "WARN", "warn"}) {
        const std::string line = line_under({{"NCCL_DEBUG", level}});
        EXPECT_NE(line.find("this is twill 0.1.0 in place of NCCL"), std::string::npos) << line;
        EXPECT_NE(line.find("22809"), std::string::npos) << line;
    }
    ranks::alone(
        [] {
            start();
            EXPECT_EQ(value_of("LOG"), "info");
        },
        {{"NCCL_DEBUG", "INFO"}, {"TWILL_LOG_FILE", "/dev/null"}});
}

TEST(NcclEnvironment, DebugFile)
{
    const File log("");
    ranks::alone(start, {{"NCCL_DEBUG", "VERSION"}, {"NCCL_DEBUG_FILE", log.path()}});
    EXPECT_EQ(log.lines().size(), 1u);
}

/* The environment is stronger than the file, and the file than nothing. */
TEST(NcclEnvironment, Files)
{
    const File settings("# NCCL_P2P_DISABLE=0\n"
                        "not a setting\n"
                        " NCCL_P2P_DISABLE = 1\r\n"
                        "NCCL_P2P_DISABLE=0\n"
                        "NCCL_MAX_CTAS=5\n"
                        "OTHER=1\n");
    expect_param({{"NCCL_CONF_FILE", settings.path()}}, "P2P", "0");
    expect_param({{"NCCL_CONF_FILE", settings.path()}}, "MAX_SMS", "5");
    expect_param({{"NCCL_CONF_FILE", settings.path()}, {"NCCL_MAX_CTAS", "6"}}, "MAX_SMS", "6");
    expect_param({{"NCCL_CONF_FILE", settings.path() + "-none"}}, "MAX_SMS", "0");
    char folder[] = "/tmp/twill-home-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const std::string file = std::string(folder) + "/.nccl.conf";
    std::ofstream(file) << "NCCL_MAX_CTAS=7"; /* without an end of line */
    expect_param({{"HOME", folder}}, "MAX_SMS", "7");
    expect_param({{"HOME", folder}, {"NCCL_CONF_FILE", settings.path()}}, "MAX_SMS", "5");
    unlink(file.c_str());
    rmdir(folder);
}
