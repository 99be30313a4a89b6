/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: devices that do not get at each other's memory, or say that they do and lie: that the
 * ranks' self-test finds out, and that calls are right all the same.
 * Never knows: how a device lies (peers.h), how calls are judged. */
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "gpu/base.h"
#include "gpu/process.h"

namespace emu
{

using namespace gpu;

namespace
{

/* Where processes say what they found; gone afterwards. */
class Log
{
  public:
    Log()
    {
        const int fd = mkstemp(path_);
        if (fd < 0)
            throw Failure("no file for a log");
        close(fd);
    }
    ~Log() { (void)unlink(path_); }
    Log(const Log &) = delete;
    Log &operator=(const Log &) = delete;
    Env env(const std::string &peers, const Env &more) const
    {
        Env all = {
            {"TW_EMU_PEERS", peers}, {"TWILL_LOG", "warn,comm=info"}, {"TWILL_LOG_FILE", path_}};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    std::string text() const
    {
        std::stringstream text;
        text << std::ifstream(path_).rdbuf();
        return text.str();
    }

  private:
    char path_[32] = "/tmp/twill-test-log-XXXXXX";
};

/* words: what the log says of it; "": it is as if devices reached each other */
void expect_said(const Log &log, const std::string &words)
{
    const std::string text = log.text();

    EXPECT_EQ(contains(text, "pinned host memory"), !words.empty()) << text;
    EXPECT_TRUE(contains(text, words)) << text;
}

/* Ranks of one process, on devices in turn. */
void one_process(int size, const std::string &peers, const std::string &words)
{
    const Log log;

    step(format("%d ranks, %s", size, peers.c_str()));
    Child child({"--role", "cut", std::to_string(size), std::to_string(7100 + size), "6"},
                log.env(peers, {}));
    EXPECT_EQ(child.wait(50), 0) << peers;
    expect_said(log, words);
}

/* The same, each with a process of its own. */
void processes(const std::string &role, const std::string &peers, const std::string &words,
               const Env &more = {})
{
    const Log log;
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;

    step(format("two processes, %s", peers.c_str()));
    for (const char *rank : {"0", "1"}) {
        std::vector<std::string> args = {"--role", "cover", "id", "2",    rank,
                                         "1",      "7200",  "4",  "65536"};
        if (role == "p2p")
            args = {"--role", "p2p", "2", rank, "2", "60000"};
        children.push_back(std::make_unique<Child>(args, log.env(peers, more)));
        all.push_back(children.back().get());
    }
    pass_id(all);
    for (auto &child : children)
        EXPECT_EQ(child->wait(50), 0) << peers;
    expect_said(log, words);
}

} // namespace

TEST(Reach, TheSelfTestPasses)
{
    one_process(3, "", "");
    processes("cover", "", "");
}

TEST(Reach, OneProcess)
{
    one_process(2, "0-1:absent", "device 0 of rank 0 to device 1 of rank 1: there is no peer");
    one_process(3, "2-1:lost",
                "device 2 of rank 2 to device 1 of rank 1: the self-test's writes "
                "are lost");
    one_process(2, "1-0:stale", "reads find nothing");
    one_process(5, "*-3:wrong", "reads find other bytes than are there");
    one_process(3, "0-3:lost", ""); /* no rank is on that one */
}

TEST(Reach, SeveralProcesses)
{
    processes("cover", "1-0:absent", "device 1 of rank 1 to device 0 of rank 0: there is no peer");
    processes("cover", "0-1:closed", "memory of the other process does not open");
    processes("cover", "0-1:lost",
              "device 0 of rank 0 to device 1 of rank 1: the self-test's "
              "writes are lost");
    processes("p2p", "1-0:stale", "reads find nothing");
    processes("p2p", "", "which is slow: TWILL_P2P=0", {{"TWILL_P2P", "0"}});
}

} // namespace emu
