/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-run promises. Never knows: twill's library. */
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <set>

#include "command.h"

namespace
{

const char *kRun = BUILD_DIR "/tools/twill-run";

std::vector<std::string> run_args(std::vector<std::string> options, const std::string &script)
{
    options.insert(options.begin(), kRun);
    options.insert(options.end(), {"sh", "-c", script});
    return options;
}

std::vector<std::string> sorted_lines(const std::string &text)
{
    std::vector<std::string> lines = Command::split(text);
    std::sort(lines.begin(), lines.end());
    return lines;
}

std::vector<pid_t> pids_of(const std::string &text)
{
    std::vector<pid_t> pids;
    for (const std::string &line : Command::split(text))
        pids.push_back((pid_t)std::stol(line));
    return pids;
}

bool all_gone(const std::vector<pid_t> &pids)
{
    return comes_true([&] {
        return std::none_of(pids.begin(), pids.end(), [](pid_t p) { return process_runs(p); });
    });
}

TEST(Run, GivesEachRankItsPlace)
{
    Command c(run_args({"-n", "3"}, "echo $TWILL_RANK $TWILL_SIZE $TWILL_LOCAL_RANK"));
    EXPECT_EQ(c.finish(), 0);
    EXPECT_EQ(sorted_lines(c.out), (std::vector<std::string>{"0 3 0", "1 3 1", "2 3 2"}));
    EXPECT_EQ(c.err, "");
}

TEST(Run, GivesAllRanksOneFreshKeyAndMeetingPoint)
{
    std::set<std::string> seen;
    for (int job = 0; job < 2; job++) {
        /* read twice: a rank may read the key again */
        Command c(run_args({"-n", "3"}, "k=$(od -An -v -tx1 /dev/fd/$TWILL_KEY_FD | tr -d ' \\n'); "
                                        "echo $TWILL_RENDEZVOUS $k"));
        EXPECT_EQ(c.finish(), 0) << c.err;
        std::vector<std::string> lines = Command::split(c.out);
        ASSERT_EQ(lines.size(), 3u);
        EXPECT_EQ(lines[0], lines[1]);
        EXPECT_EQ(lines[0], lines[2]);
        ASSERT_EQ(lines[0].compare(0, 5, "unix:"), 0) << lines[0];
        EXPECT_EQ(lines[0].size() - lines[0].find(' ') - 1, 64u) << lines[0];
        seen.insert(lines[0]);
    }
    EXPECT_EQ(seen.size(), 2u);
}

TEST(Run, TheKeyIsSealed)
{
    Command c(run_args({"-n", "1"}, "echo x >/dev/fd/$TWILL_KEY_FD"));
    EXPECT_NE(c.finish(), 0);
}

TEST(Run, SetsVariables)
{
    Command c(run_args({"-n", "2", "-x", "A_B=c d", "-x", "E="}, "echo \"$A_B|${E-unset}\""));
    EXPECT_EQ(c.finish(), 0);
    EXPECT_EQ(c.out, "c d|\nc d|\n");
}

TEST(Run, ReturnsTheFirstFailingRanksStatusAndNamesIt)
{
    Command c(
        run_args({"-n", "3", "--grace", "0.1"}, "[ $TWILL_RANK = 1 ] && exit 7; exec sleep 1000"));
    EXPECT_EQ(c.finish(), 7);
    std::vector<std::string> lines = Command::split(c.err);
    ASSERT_EQ(lines.size(), 2u) << c.err;
    EXPECT_EQ(lines[0], "twill-run: rank 1 exited with status 7");
    EXPECT_EQ(lines[1], "twill-run: sent SIGTERM to ranks 0, 2");
}

TEST(Run, LetsTheOthersEndByThemselves)
{
    /* rank 1 ends only after rank 0 is gone, within the grace */
    Command c(run_args({"-n", "2", "--grace", "30"},
                       "if [ $TWILL_RANK = 0 ]; then exit 3; fi; exec sleep 0.2"));
    EXPECT_EQ(c.finish(), 3);
    EXPECT_EQ(c.err, "twill-run: rank 0 exited with status 3\n");
}

TEST(Run, NamesTheSignalThatEndedARank)
{
    Command c(run_args({"-n", "2", "--grace", "0"},
                       "ulimit -c 0; [ $TWILL_RANK = 0 ] && kill -SEGV $$; exec sleep 1000"));
    EXPECT_EQ(c.finish(), 128 + SIGSEGV);
    EXPECT_TRUE(contains(c.err, "rank 0 was ended by SIGSEGV (Segmentation fault)")) << c.err;
}

TEST(Run, KillsWhatIgnoresTerm)
{
    Command c(run_args({"-n", "2", "--grace", "0.1"},
                       "[ $TWILL_RANK = 0 ] && exit 9; trap '' TERM; sleep 1000; sleep 1000"));
    EXPECT_EQ(c.finish(), 9);
    EXPECT_TRUE(contains(c.err, "sent SIGTERM to rank 1\n")) << c.err;
    EXPECT_TRUE(contains(c.err, "sent SIGKILL to rank 1\n")) << c.err;
}

TEST(Run, TimeoutNamesTheRanksStillRunning)
{
    Command c(run_args({"-n", "3", "--timeout", "0.3", "--grace", "1"},
                       "[ $TWILL_RANK = 1 ] && exit 0; exec sleep 1000"));
    EXPECT_EQ(c.finish(), 124);
    EXPECT_TRUE(contains(c.err, "timeout of 0.3 s: still running: ranks 0, 2\n")) << c.err;
}

TEST(Run, TagsWholeLinesOfBothStreams)
{
    Command c(run_args({"-n", "2", "--tag"},
                       "printf 'a\\nb'; printf ' c' >&2; echo ' d' >&2; printf 'last'"));
    EXPECT_EQ(c.finish(), 0);
    EXPECT_EQ(sorted_lines(c.out),
              (std::vector<std::string>{"[0] a", "[0] blast", "[1] a", "[1] blast"}));
    EXPECT_EQ(sorted_lines(c.err), (std::vector<std::string>{"[0]  c d", "[1]  c d"}));
    EXPECT_EQ(c.out.back(), '\n');
}

TEST(Run, TagsMuchOutputOfManyRanksWithoutMixing)
{
    const int ranks = 6, lines_each = 3000;
    Command c(
        run_args({"-n", std::to_string(ranks), "--tag"},
                 "i=0; while [ $i -lt 3000 ]; do echo $TWILL_RANK.$i.xxxxxxxxxxxxxxxxxxxxxxxx; "
                 "i=$((i+1)); done"));
    EXPECT_EQ(c.finish(), 0);
    std::vector<int> next(ranks, 0);
    for (const std::string &line : Command::split(c.out)) {
        int tag = -1, rank = -1, number = -1, end = 0;
        ASSERT_EQ(sscanf(line.c_str(), "[%d] %d.%d.xxxxxxxxxxxxxxxxxxxxxxxx%n", &tag, &rank,
                         &number, &end),
                  3)
            << line;
        ASSERT_EQ((size_t)end, line.size()) << line;
        ASSERT_EQ(tag, rank);
        ASSERT_EQ(next[rank]++, number);
    }
    for (int n : next)
        EXPECT_EQ(n, lines_each);
}

TEST(Run, TagsALineLongerThanAPipe)
{
    Command c(run_args({"-n", "2", "--tag"}, "head -c 200000 /dev/zero | tr '\\0' x; echo"));
    EXPECT_EQ(c.finish(), 0);
    std::vector<std::string> lines = sorted_lines(c.out);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], "[0] " + std::string(200000, 'x'));
    EXPECT_EQ(lines[1], "[1] " + std::string(200000, 'x'));
}

TEST(Run, GivesStandardInputToRankZeroOnly)
{
    Command c(run_args({"-n", "2", "--tag"}, "cat; echo end"), "hello\n");
    EXPECT_EQ(c.finish(), 0);
    EXPECT_EQ(sorted_lines(c.out), (std::vector<std::string>{"[0] end", "[0] hello", "[1] end"}));
}

class RunSignal : public ::testing::TestWithParam<int>
{
};

TEST_P(RunSignal, GoesToAllRanks)
{
    std::string name = sigabbrev_np(GetParam());
    Command c(run_args({"-n", "2"}, "trap 'echo got " + name + "; exit 0' " + name +
                                        "; echo ready; while :; do sleep 0.05; done"));
    ASSERT_TRUE(c.read_lines(2));
    kill(c.pid, GetParam());
    EXPECT_EQ(c.finish(), 0) << c.err;
    EXPECT_TRUE(contains(c.out, "got " + name + "\ngot " + name + "\n")) << c.out;
}
INSTANTIATE_TEST_SUITE_P(All, RunSignal, ::testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(Run, ASignalThatEndsTheRanksIsTheStatus)
{
    Command c(run_args({"-n", "2"}, "echo ready; exec sleep 1000"));
    ASSERT_TRUE(c.read_lines(2));
    kill(c.pid, SIGTERM);
    EXPECT_EQ(c.finish(), 128 + SIGTERM);
}

TEST(Run, TheSecondSignalKills)
{
    Command c(
        run_args({"-n", "2"}, "trap 'echo deaf' INT; echo ready; while :; do sleep 0.05; done"));
    ASSERT_TRUE(c.read_lines(2));
    kill(c.pid, SIGINT);
    ASSERT_TRUE(c.read_lines(4)) << c.out << c.err;
    kill(c.pid, SIGINT);
    EXPECT_EQ(c.finish(), 128 + SIGKILL);
    EXPECT_TRUE(contains(c.err, "sent SIGKILL to ranks 0-1")) << c.err;
}

/* Prints the pids of the rank, a child in its group and a child that left group and session. */
const char *kFamily = "echo $$; sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait";

TEST(Run, LeavesNothingBehindWhenItIsKilled)
{
    Command c(run_args({"-n", "2"}, kFamily));
    ASSERT_TRUE(c.read_lines(6));
    kill(c.pid, SIGKILL);
    EXPECT_EQ(c.finish(), 1000 + SIGKILL);
    EXPECT_TRUE(all_gone(pids_of(c.out))) << c.out;
}

TEST(Run, LeavesNothingBehindWhenItsKeeperIsKilled)
{
    Command c(run_args({"-n", "2"}, kFamily));
    ASSERT_TRUE(c.read_lines(6));
    std::vector<pid_t> keeper = children_of(c.pid);
    ASSERT_EQ(keeper.size(), 1u);
    kill(keeper[0], SIGKILL);
    EXPECT_EQ(c.finish(), 128 + SIGKILL);
    EXPECT_TRUE(all_gone(pids_of(c.out))) << c.out;
    EXPECT_TRUE(contains(c.err, "keeper of the ranks was ended by Killed")) << c.err;
}

TEST(Run, EndsWhatTheRanksLeftBehind)
{
    Command c(run_args({"-n", "2"}, "setsid sleep 1000 >/dev/null 2>&1 & echo $!"));
    EXPECT_EQ(c.finish(), 0);
    EXPECT_TRUE(all_gone(pids_of(c.out))) << c.out;
    EXPECT_TRUE(contains(c.err, "ended 2 processes that the ranks left behind")) << c.err;
}

TEST(Run, MoreRanksThanCores)
{
    Command c(run_args({"-n", "64", "--bind", "core"}, "echo $TWILL_RANK"));
    EXPECT_EQ(c.finish(), 0) << c.err;
    EXPECT_EQ(Command::split(c.out).size(), 64u);
}

TEST(Run, BindsToCores)
{
    Command c(run_args({"-n", "1", "--bind", "core"},
                       "grep Cpus_allowed_list /proc/self/status | cut -f2"));
    EXPECT_EQ(c.finish(), 0) << c.err;
    Command numa(run_args({"-n", "2", "--bind", "numa"}, ":"));
    EXPECT_EQ(numa.finish(), 0) << numa.err;
    /* the first allowed CPU is in the first core */
    Command first({"sh", "-c", "grep Cpus_allowed_list /proc/self/status | cut -f2"});
    EXPECT_EQ(first.finish(), 0);
    EXPECT_EQ(std::stoi(c.out), std::stoi(first.out));
    Command none(run_args({"-n", "1", "--bind", "none"},
                          "grep Cpus_allowed_list /proc/self/status | cut -f2"));
    EXPECT_EQ(none.finish(), 0);
    EXPECT_EQ(none.out, first.out);
}

struct Usage {
    std::vector<std::string> args;
    const char *says;
};

TEST(Run, SaysWhatIsWrongWithTheCommandLine)
{
    const Usage cases[] = {
        {{}, "-n N is missing"},
        {{"true"}, "-n N is missing"},
        {{"-n", "2"}, "no command given"},
        {{"-n", "0", "true"}, "not '0'"},
        {{"-n", "-3", "true"}, "not '-3'"},
        {{"-n", "2x", "true"}, "not '2x'"},
        {{"-n", "99999999999999999999", "true"}, "-n takes a number"},
        {{"-n", "2", "--bind", "socket", "true"}, "core, numa or none, not 'socket'"},
        {{"-n", "2", "--timeout", "0", "true"}, "--timeout takes seconds"},
        {{"-n", "2", "--timeout", "nan", "true"}, "--timeout takes seconds"},
        {{"-n", "2", "--grace", "-1", "true"}, "--grace takes seconds"},
        {{"-n", "2", "-x", "NOVALUE", "true"}, "VAR=VALUE, not 'NOVALUE'"},
        {{"-n", "2", "-x", "TWILL_RANK=3", "true"}, "twill-run sets it itself"},
        {{"--frobnicate"}, "--frobnicate"},
        {{"-n"}, "requires an argument"},
    };
    for (const Usage &usage : cases) {
        std::vector<std::string> args = usage.args;
        args.insert(args.begin(), kRun);
        Command c(args);
        EXPECT_EQ(c.finish(), 2) << usage.says;
        EXPECT_TRUE(contains(c.err, usage.says)) << c.err;
        EXPECT_EQ(c.out, "");
    }
}

TEST(Run, SaysWhenTheProgramCannotRun)
{
    Command missing({kRun, "-n", "4", "/nonexistent/program"});
    EXPECT_EQ(missing.finish(), 127);
    EXPECT_EQ(missing.err,
              "twill-run: cannot run '/nonexistent/program' as rank 0: No such file or "
              "directory\n");
    Command folder({kRun, "-n", "4", "/"});
    EXPECT_EQ(folder.finish(), 126);
}

struct Lost {
    const char *command;
    int status;
    const char *says;
};

/* With a standard stream closed or full, the job ends and does not end well. */
TEST(Run, LostOutputIsAFailure)
{
    const Lost cases[] = {
        {"-n 2 --tag echo hi >/dev/full", 1, "cannot write what the ranks have written: No space"},
        {"-n 2 --tag sh -c 'trap \"\" PIPE; echo hi' >&-", 1, "have written: Bad file descriptor"},
        {"-n 2 --tag true <&- >&-", 0, ""},
        {"-n 2 sh -c 'echo hi' >&-", 1, "rank 0 exited with status"},
        {"--help >/dev/full", 1, "standard output could not be written"},
    };
    for (const Lost &lost : cases) {
        Command c({"sh", "-c", std::string(kRun) + " " + lost.command});
        int status = c.finish();
        EXPECT_TRUE(lost.status ? status > 0 && status < 1000 : status == 0)
            << lost.command << ": " << status;
        EXPECT_TRUE(contains(c.err, lost.says)) << lost.command << ": " << c.err;
    }
}

TEST(Run, PassesBinaryOutputOn)
{
    Command c(run_args({"-n", "1", "--tag"}, "printf 'a\\000\\377b\\n'; printf c"));
    EXPECT_EQ(c.finish(), 0);
    EXPECT_EQ(c.out, std::string("[0] a\0\377b\n[0] c\n", 15));
}

TEST(Run, HelpAndVersion)
{
    Command help({kRun, "--help"});
    EXPECT_EQ(help.finish(), 0);
    for (const char *option : {"-n N", "--bind", "--tag", "--timeout", "--grace", "-x VAR"})
        EXPECT_TRUE(contains(help.out, option)) << option;
    Command version({kRun, "--version"});
    EXPECT_EQ(version.finish(), 0);
    EXPECT_EQ(version.out.compare(0, 10, "twill-run "), 0);
}

TEST(Run, LeavesTheProgramsOwnOptionsAlone)
{
    Command c({kRun, "-n", "1", "echo", "-n", "5", "--tag"});
    EXPECT_EQ(c.finish(), 0);
    EXPECT_EQ(c.out, "5 --tag");
}

} // namespace
