/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-perf does with a terminal, with launchers that are not twill-run, and with
 * files that cannot be written. Never knows: how it measures. */
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "command.h"

namespace
{

const char *kPerf = BUILD_DIR "/perf/twill-perf";

/* Each checked barrier waits 200 us for the rank whose turn it is to be late, so the fourth row
 * begins 1.2 s or more after the first, and progress is shown from 1 s on. */
const std::vector<std::string> kSlow = {kPerf, "barrier", "barrier", "barrier", "barrier", "-n",
                                        "1",   "-w",      "0",       "-c",      "2000"};

TEST(PerfTerminal, ProgressIsALineOnStderrOfATerminalAndGoes)
{
    Command shown(kSlow, "", {}, 2), hidden(kSlow, "", {}, 1);
    EXPECT_EQ(shown.finish(), 0);
    EXPECT_EQ(hidden.finish(), 0);
    size_t at = shown.err.rfind(" s so far\033[K");
    ASSERT_NE(at, shown.err.npos) << shown.err << shown.out;
    EXPECT_TRUE(contains(shown.err, "\rbarrier ")) << shown.err;
    EXPECT_FALSE(contains(shown.err, "\n")) << shown.err;
    EXPECT_EQ(shown.err.substr(shown.err.size() - 4), "\r\033[K") << "not erased at the end";
    EXPECT_FALSE(contains(shown.out, "so far")) << shown.out;
    EXPECT_FALSE(contains(shown.out, "\033")) << shown.out;
    EXPECT_EQ(hidden.err, "");
    EXPECT_FALSE(contains(hidden.out, "so far")) << hidden.out;
}

struct Launcher {
    const char *rank, *size;
    std::vector<std::string> more;
};

/* The variables are the launcher's; the processes are started here, as its daemon would. */
TEST(PerfLaunchers, ProcessesOfALauncherAreRanksOfOneJob)
{
    const std::string job = std::to_string(getpid());
    const Launcher launchers[] = {
        {"OMPI_COMM_WORLD_RANK",
         "OMPI_COMM_WORLD_SIZE",
         {"OMPI_COMM_WORLD_LOCAL_SIZE=3", "PMIX_NAMESPACE=prterun-test-" + job + "@1"}},
        {"PMI_RANK", "PMI_SIZE", {"MPI_LOCALNRANKS=3", "PMI_JOBID=" + job}},
        {"PMI_RANK", "PMI_SIZE", {}},
        {"RANK",
         "WORLD_SIZE",
         {"LOCAL_WORLD_SIZE=3", "MASTER_ADDR=localhost", "MASTER_PORT=" + job}},
    };
    for (const Launcher &launcher : launchers) {
        std::vector<std::unique_ptr<Command>> ranks;
        for (int rank = 0; rank < 3; rank++) {
            std::vector<std::string> environment = launcher.more;
            environment.push_back(std::string(launcher.rank) + "=" + std::to_string(rank));
            environment.push_back(std::string(launcher.size) + "=3");
            ranks.push_back(std::make_unique<Command>(
                std::vector<std::string>{kPerf, "all_reduce", "-b", "64", "-e", "64", "-n", "2"},
                "", environment));
        }
        for (int rank = 0; rank < 3; rank++)
            EXPECT_EQ(ranks[(size_t)rank]->finish(), 0)
                << launcher.rank << " rank " << rank << ": " << ranks[(size_t)rank]->err;
        EXPECT_TRUE(contains(ranks[0]->out, "3 ranks in 3 processes")) << ranks[0]->out;
        EXPECT_TRUE(contains(ranks[0]->out, "wrong elements : 0 OK")) << ranks[0]->out;
        EXPECT_EQ(ranks[1]->out + ranks[2]->out, "") << "only rank 0 speaks";
    }
}

struct Shell {
    const char *command; /* a shell's, with %s for a program */
    int status;
    const char *says; /* on stderr */
};

/* Each of these lost what it had to write; none may end with 0, or hang. */
TEST(PerfFiles, WhatCannotBeWrittenIsAFailureThatIsSaid)
{
    const std::string perf = std::string(kPerf) + " all_reduce -b 64 -e 64 -n 1 ";
    const Shell cases[] = {
        {"--json /dev/full", 3, "cannot write /dev/full: No space left on device"},
        {"--csv /dev/full", 3, "cannot write /dev/full: No space left on device"},
        {"--csv /", 3, "cannot write /: Is a directory"},
        {"--plot /", 3, "cannot write /: Is a directory"},
        {">/dev/full", 3, "standard output could not be written"},
        {">&-", 3, "standard output could not be written"},
        {"--list >/dev/full", 3, "standard output could not be written"},
    };
    for (const Shell &each : cases) {
        Command c({"sh", "-c", perf + each.command});
        EXPECT_EQ(c.finish(), each.status) << each.command;
        EXPECT_TRUE(contains(c.err, each.says)) << each.command << ": " << c.err;
    }
    if (!have_tool("gnuplot"))
        GTEST_SKIP() << "gnuplot is missing";
    Command plot({"sh", "-c", perf + "--csv /dev/null --plot /dev/full"});
    EXPECT_EQ(plot.finish(), 3);
    EXPECT_TRUE(contains(plot.err, "could not write the whole file")) << plot.err;
}

TEST(PerfFiles, SizesTakeWholeUnitsOnly)
{
    for (const char *size : {"8KBB", "8Ki", "8iB", "8BK", "K", "8 K"}) {
        Command c({kPerf, "all_reduce", "-b", size});
        EXPECT_EQ(c.finish(), 2) << size;
    }
    for (const char *size : {"1024", "1K", "1KB", "1KiB", "1024B", "1k"}) {
        Command c({kPerf, "all_reduce", "-n", "1", "-b", size, "-e", "1024"});
        EXPECT_EQ(c.finish(), 0) << size << c.err;
    }
}

} // namespace
