/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-sim and twill-tune promise, by their output. Never knows: the model. */
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "command.h"

namespace
{

const char *kSim = BUILD_DIR "/tools/twill-sim";
const char *kTune = BUILD_DIR "/tools/twill-tune";
const char *kMachine = "arm-64c"; // looking at this host is test_topo's
const char *kChain = SOURCE_DIR "/docs/plans/chain.plan";

using Words = std::vector<std::string>;

class Sim : public testing::Test
{
  protected:
    std::string folder_;
    std::vector<std::string> files_;

    void SetUp() override
    {
        char name[] = "/tmp/twill-sim-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        folder_ = name;
    }
    void TearDown() override
    {
        for (const std::string &file : files_)
            unlink(file.c_str());
        rmdir(folder_.c_str());
    }
    std::string file(const std::string &name, const std::string &text)
    {
        files_.push_back(folder_ + "/" + name);
        std::ofstream(files_.back()) << text;
        return files_.back();
    }
    static std::string out(Words argv)
    {
        Command c(argv);
        EXPECT_EQ(c.finish(), 0) << c.err;
        return c.out;
    }
    static Words rows(const std::string &text)
    {
        Words rows;
        for (const std::string &line : Command::split(text))
            if (!line.empty() && line[0] != '#')
                rows.push_back(line);
        return rows;
    }
};

// All costs are zero and every rate is 1 GB/s: one rank copies in a nanosecond a byte.
TEST_F(Sim, PricesByTheTableThatItIsGiven)
{
    std::string zero = "twill-cost 1\n";
    for (const char *name : {"call", "step", "send", "recv", "signal", "switch"})
        zero += std::string("host.") + name + " 0\n";
    for (const char *name : {"near", "mid", "far"})
        zero += std::string("host.copy.") + name + " 1000\n";
    std::string cost = file("cost", zero);
    Words ask = {kSim, "--coll", "all_gather", "-n",      "1",      "-b",   "4K",     "-e", "1M",
                 "-f", "16",     "--machine",  "arm-64c", "--algo", "ring", "--cost", cost};
    Words got = rows(out(ask));
    ASSERT_EQ(got.size(), 3u);
    EXPECT_TRUE(contains(got[0], " 4096 ")) << got[0];
    EXPECT_TRUE(contains(got[0], " 4.096 ")) << got[0];
    EXPECT_TRUE(contains(got[2], " 1048.576 ")) << got[2];
    EXPECT_TRUE(contains(got[2], " 1.000 ")) << got[2];
    EXPECT_TRUE(contains(got[2], "host 0: pu 0 (100 %)")) << got[2];
    // the same by the environment
    ask.resize(ask.size() - 2);
    Command c(ask, "", {"TWILL_COST_FILE=" + cost});
    EXPECT_EQ(c.finish(), 0) << c.err;
    EXPECT_EQ(rows(c.out), got);
}

TEST_F(Sim, ShowsTheCheapestOfAll)
{
    std::string all = out({kSim, "--coll", "all_reduce", "-n", "8", "--machine", "intel-2s"});
    EXPECT_TRUE(contains(all, "# machine synthetic-intel-2s")) << all;
    EXPECT_TRUE(contains(all, "# proven for 8 ranks in")) << all;
    for (const char *algo : {"ring", "recursive_doubling", "two_shot"}) {
        Words one = rows(out({kSim, "--coll", "all_reduce", "-n", "8", "--machine", "intel-2s",
                              "--algo", algo, "--no-check"}));
        Words best = rows(all);
        ASSERT_EQ(one.size(), best.size());
        for (size_t i = 0; i < one.size(); i++) {
            auto time = [](const std::string &row) {
                std::istringstream in(row);
                std::string bytes, count, name;
                double us = 0;
                in >> bytes >> count >> name >> us;
                return us;
            };
            EXPECT_LE(time(best[i]), time(one[i])) << algo;
        }
    }
}

TEST_F(Sim, ReadsPlansAndProvesThem)
{
    std::string json = out({kSim, "--plan", kChain, "--machine", kMachine, "--json", "-e", "1K"});
    Command python({"python3", "-c",
                    "import json, sys\n"
                    "d = json.load(sys.stdin)\n"
                    "assert d['op'] == 'all_reduce' and d['ranks'] == 3, d\n"
                    "assert d['proof'].startswith('proven for 3 ranks'), d\n"
                    "t = [r['time_us'] for r in d['results']]\n"
                    "assert len(t) == 4 and t == sorted(t) and t[0] > 0, t\n"
                    "assert all(r['algo'] == 'chain' and r['limit'] for r in d['results'])\n"},
                   json);
    EXPECT_EQ(python.finish(), 0) << python.err << json;
    std::ifstream in(kChain);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    size_t at = text.rfind("in.0[1] dst out.0[1] final");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, 26, "in.0[1] dst out.0[1]"); // the sum is never finished
    std::string wrong = file("wrong.plan", text);
    Command c({kSim, "--plan", wrong, "--machine", kMachine});
    EXPECT_EQ(c.finish(), 3);
    EXPECT_TRUE(contains(c.err, "plan chain is not a correct all_reduce: ")) << c.err;
    EXPECT_TRUE(
        contains(out({kSim, "--plan", wrong, "--machine", kMachine, "--no-check", "-e", "64"}),
                 "# not proven\n"));
}

/* Whatever the form, what was computed for a machine that nobody has says so. */
TEST_F(Sim, NamesASyntheticMachineInEveryForm)
{
    const std::string name = "synthetic-arm-64c:hosts=2,leaf=2";
    const Words ask = {kSim,
                       "--coll",
                       "all_reduce",
                       "--algo",
                       "ring",
                       "-n",
                       "4",
                       "-b",
                       "8",
                       "-e",
                       "8",
                       "--machine",
                       "arm-64c:hosts=2,leaf=2"};
    const auto in_form = [&](const char *form) {
        Words words = ask;
        words.push_back(form);
        return out(words);
    };
    EXPECT_TRUE(contains(out(ask), "# machine " + name + ","));
    EXPECT_TRUE(contains(in_form("--json"), "\"machine\": \"" + name + "\""));
    const Words table = Command::split(in_form("--csv"));
    ASSERT_GE(table.size(), 2u);
    EXPECT_TRUE(contains(table[0], ",busy,machine"));
    EXPECT_TRUE(contains(table[1], ",\"" + name + "\"")) << table[1];
}

/* GPUs that the machine lists in an order that is no good ring. */
TEST_F(Sim, PutsRanksInTheOrderOfARing)
{
    const auto priced = [&](const char *order, const char *form) {
        return out({kSim, "--coll", "all_reduce", "--algo", "ring", "-n", "8", "-b", "256M", "-e",
                    "256M", "--machine", "nvpair-8gpu", "--order", order, form});
    };
    const std::string text = priced("ring", "--check"), plain = priced("machine", "--check");
    EXPECT_TRUE(contains(text, "# ranks as a ring: 0 1 3 4 6 7 5 2, 50 GB/s\n")) << text;
    EXPECT_FALSE(contains(plain, "ring:")) << plain;
    ASSERT_EQ(rows(text).size(), 1u);
    ASSERT_EQ(rows(plain).size(), 1u);
    const auto time_of = [](const std::string &row) {
        double bytes = 0, count = 0, us = 0;
        char algo[32];
        EXPECT_EQ(sscanf(row.c_str(), "%lf %lf %31s %lf", &bytes, &count, algo, &us), 4) << row;
        return us;
    };
    EXPECT_LT(time_of(rows(text)[0]), time_of(rows(plain)[0])) << text << plain;
    EXPECT_TRUE(contains(priced("ring", "--json"), "\"order\": \"0 1 3 4 6 7 5 2, 50 GB/s\""));
    EXPECT_FALSE(contains(priced("machine", "--json"), "\"order\""));
}

TEST_F(Sim, ThousandsOfRanks)
{
    std::string text =
        out({kSim, "--coll", "all_reduce", "--algo", "recursive_doubling", "-n", "1024",
             "--machine", "nvswitch-8gpu:hosts=128", "-b", "1K", "-e", "1K"});
    EXPECT_TRUE(contains(text, "# not proven now: 1024 ranks")) << text;
    EXPECT_EQ(rows(text).size(), 1u);
}

TEST_F(Sim, ComparesWithSweeps)
{
    // what the model says of itself: no error
    Words ask = {kSim,        "--coll", "reduce_scatter", "-n", "3",
                 "--machine", kMachine, "--csv",          "-e", "64K"};
    std::string csv = out(ask), path = file("a.csv", csv);
    std::string same = out({kSim, "--machine", kMachine, "-n", "3", "--against", path});
    EXPECT_TRUE(contains(same, "# all             median error    0.0 %")) << same;
    // twice as slow in one file, as in the other: of equal cases the least time counts
    std::string slow = csv;
    for (size_t at = slow.find("32,0,0,"); at != std::string::npos;
         at = slow.find("32,0,0,", at + 1))
        slow.insert(at + 7, "9");
    std::string other = file("b.csv", slow);
    EXPECT_TRUE(contains(
        out({kSim, "--machine", kMachine, "-n", "3", "--against", other, "--against", path}),
        "median error    0.0 %"));
    std::string json = out({kSim, "--machine", kMachine, "-n", "3", "--against", other, "--json"});
    Command python({"python3", "-c",
                    "import json, sys\n"
                    "d = json.load(sys.stdin)\n"
                    "assert d['rows'] == len(d['results']) == 7, d\n"
                    "assert 0.5 < d['median_error'] < 1, d\n"
                    "assert all(-1 < r['off'] < -0.5 for r in d['results']), d\n"},
                   json);
    EXPECT_EQ(python.finish(), 0) << python.err << json;
}

TEST_F(Sim, ListsAndPrintsItsTable)
{
    std::string list = out({kSim, "--list"});
    EXPECT_TRUE(contains(list, "recursive_doubling")) << list;
    EXPECT_TRUE(contains(list, "nvswitch-8gpu")) << list;
    std::string table = out({kSim, "--print-cost"});
    EXPECT_TRUE(contains(table, "twill-cost 1\n")) << table;
    std::string path = file("cost", table);
    EXPECT_EQ(out({kSim, "--cost", path, "--print-cost"}), table);
}

TEST_F(Sim, SaysWhatMakesNoSense)
{
    std::string empty = file("empty.csv", ""), words = file("words.csv", "op,time_us\nx,1\n");
    std::string bad =
        file("bad.csv", "op,size_bytes,count,type,root,inplace,time_us,algo,channels\n"
                        "all_reduce,8,2,float32,-1,0,0,ring,1\n");
    std::string cost = file("bad.cost", "twill-cost 1\nhost.step x\n");
    struct Case {
        Words argv;
        int status;
        const char *why;
    } cases[] = {
        {{}, 2, "-n RANKS is missing"},
        {{"-n", "4"}, 2, "--coll COLLECTIVE is missing"},
        {{"--coll", "all_reduce", "-n", "0"}, 2, "-n takes a number from 1 to 65536, not '0'"},
        {{"--coll", "all_reduce", "-n", "4x"}, 2, "to 65536, not '4x'"},
        {{"--coll", "p2p", "-n", "4"}, 2, "no collective 'p2p'"},
        {{"--coll", "all_reduce", "-n", "4", "-b", "1Q"},
         2,
         "-b takes bytes (8, 64K, 1.5M) from 0 to 4T, not '1Q'"},
        {{"--coll", "all_reduce", "-n", "4", "-e", "5T"},
         2,
         "-e takes bytes (8, 64K, 1.5M) from 0 to 4T, not '5T'"},
        {{"--coll", "all_reduce", "-n", "4", "-b", "2", "-e", "1"}, 2, "-b is larger than -e"},
        {{"--coll", "all_reduce", "-n", "4", "-f", "1"},
         2,
         "-f takes a number from 2 to 1048576, not '1'"},
        {{"--coll", "all_reduce", "-n", "4", "-d", "int7"}, 2, "no type 'int7'"},
        {{"--coll", "broadcast", "-n", "4", "-r", "4"}, 2, "root 4 of 4 ranks"},
        {{"--coll", "all_reduce", "-n", "4", "--on", "fpga"}, 2, "neither cpu nor gpu"},
        {{"--coll", "all_reduce", "-n", "4", "--order", "star"}, 2, "neither machine nor ring"},
        {{"--coll", "all_reduce", "-n", "65", "--order", "ring"}, 3, "a ring of 65 places"},
        {{"--coll", "all_reduce", "-n", "4", "extra"}, 2, "'extra' is no option"},
        {{"--plan", "x", "--coll", "all_reduce"}, 2, "--plan says all"},
        {{"--coll", "all_reduce", "-n", "4", "--algo", "pairwise"}, 3, "no algorithm pairwise"},
        {{"--coll", "all_reduce", "-n", "4", "--machine", "toaster"}, 3, "toaster"},
        {{"--coll", "all_reduce", "-n", "4", "--machine", "/nowhere.xml"}, 3, "/nowhere.xml"},
        {{"--coll", "all_reduce", "-n", "999", "--machine", "arm-64c:hosts=2"}, 3, "999"},
        {{"--coll", "all_reduce", "-n", "4", "--machine", "arm-64c", "--on", "gpu"}, 3, "gpu"},
        {{"--coll", "all_reduce", "-n", "4", "--cost", cost}, 3, "2:11: expected host.step"},
        {{"--plan", "/nowhere.plan"}, 3, "cannot read /nowhere.plan"},
        {{"--plan", empty}, 3, "plan text 1:1"},
        {{"--plan", kChain, "-n", "4"}, 3, "is for 3 ranks, not 4"},
        {{"-n", "4", "--against", empty}, 3, "empty.csv is empty"},
        {{"-n", "4", "--against", words}, 3, "words.csv:1: no column size_bytes"},
        {{"-n", "4", "--against", bad}, 3, "bad.csv:2: the time makes no sense"},
        {{"-n", "4", "--against", bad, "--column", "best"}, 3, "no column best"},
    };
    for (const Case &c : cases) {
        Words argv = {kSim, "--machine", kMachine};
        argv.insert(argv.end(), c.argv.begin(), c.argv.end());
        Command command(argv);
        EXPECT_EQ(command.finish(), c.status) << c.why << ": " << command.err;
        EXPECT_TRUE(contains(command.err, c.why)) << c.why << ": " << command.err;
        EXPECT_TRUE(contains(command.err, "twill-sim: ")) << command.err;
    }
}

/* ---- twill-tune ----------------------------------------------------------------------------- */

// Times that some table gives are fitted by a table that gives the same times.
TEST_F(Sim, TuneFindsATableThatExplainsTheTimes)
{
    std::string truth = file("truth", "twill-cost 1\nhost.step 80\nhost.recv 200\nhost.call 900\n"
                                      "host.copy.near 7000\nhost.copy.mid 5000\n"
                                      "host.reduce.near 4000\nshm.latency 400\n");
    Words ask = {kTune, "--machine", kMachine, "-o", folder_ + "/fit", "--column", "time_us"};
    files_.push_back(folder_ + "/fit");
    for (const char *coll : {"all_reduce", "all_gather", "broadcast"})
        for (const char *algo : {"ring", "direct", "recursive_doubling", "binomial"}) {
            Command sim({kSim, "--machine", kMachine, "--coll", coll, "--algo", algo, "-n", "2",
                         "--no-check", "--csv", "--cost", truth, "-e", "8M"});
            if (sim.finish() != 0)
                continue; // that algorithm does not serve it
            std::string csv = file(std::string(coll) + "-" + algo, sim.out);
            ask.insert(ask.end(), {"--from", csv + ":2"});
        }
    Command tune(ask);
    ASSERT_EQ(tune.finish(), 0) << tune.err;
    double median = 100, before = 0;
    size_t at = tune.err.find("all: median error ");
    ASSERT_NE(at, std::string::npos) << tune.err;
    ASSERT_EQ(
        sscanf(tune.err.c_str() + at, "all: median error %lf %% (before %lf %%)", &median, &before),
        2)
        << tune.err;
    EXPECT_GT(before, 10);
    EXPECT_LT(median, 3);
    std::string table = out({kSim, "--cost", folder_ + "/fit", "--print-cost"});
    EXPECT_TRUE(contains(table, "host.switch          1000.000"))
        << table; // nothing was said of it
}

TEST_F(Sim, TuneMeasuresByItself)
{
    Command c({kTune, "--machine", kMachine, "-n", "2", "-e", "64", "--rounds", "1", "--algo",
               "dissemination", "--run", BUILD_DIR "/tools/twill-run", "--perf",
               BUILD_DIR "/perf/twill-perf"});
    ASSERT_EQ(c.finish(), 0) << c.err;
    EXPECT_TRUE(contains(c.err, "round 1 of 1, 2 ranks, dissemination")) << c.err;
    EXPECT_TRUE(contains(c.out, "twill-cost 1\n# fitted by twill-tune to 1 measured cases\n"))
        << c.out;
}

TEST_F(Sim, TuneKeepsItsFilesWhereTheUserSays)
{
    std::string run = file("run", "#!/bin/sh\necho \"$@\" >&2\nexit 1\n");
    ASSERT_EQ(chmod(run.c_str(), 0700), 0);
    std::string place = "TMPDIR=" + folder_;
    Command c({kTune, "--quiet", "--machine", kMachine, "--run", run, "--algo", "linear"}, "",
              {place});
    EXPECT_EQ(c.finish(), 3) << c.err;
    EXPECT_TRUE(contains(c.err, "--csv " + folder_ + "/twill-tune-")) << c.err;
    for (const auto &left : std::filesystem::directory_iterator(folder_))
        EXPECT_EQ(left.path(), run);
}

TEST_F(Sim, TuneMeasuresAllThatAnAlgorithmServes)
{
    Command c({kTune, "--quiet", "--machine", kMachine, "-n", "2", "-e", "8", "--rounds", "1",
               "--algo", "linear", "--run", BUILD_DIR "/tools/twill-run", "--perf",
               BUILD_DIR "/perf/twill-perf"});
    ASSERT_EQ(c.finish(), 0) << c.err;
    // broadcast, reduce, gather, scatter, gather_v, scatter_v, each in and out of place
    EXPECT_TRUE(contains(c.out, "fitted by twill-tune to 12 measured cases\n")) << c.out;
}

// Whoever ends twill-tune ends what it has started.
TEST_F(Sim, TuneEndsWithItsChild)
{
    std::string run = file("run", "#!/bin/sh\necho started $$ >&2\nexec tail -f /dev/null\n");
    ASSERT_EQ(chmod(run.c_str(), 0700), 0);
    Command c({kTune, "--quiet", "--machine", kMachine, "--run", run, "--algo", "dissemination"});
    ASSERT_TRUE(c.read_until([&c] { return contains(c.err, "\n"); }));
    int child = 0;
    ASSERT_EQ(sscanf(c.err.c_str(), "started %d", &child), 1) << c.err;
    kill(c.pid, SIGTERM);
    EXPECT_EQ(c.finish(), 3);
    EXPECT_TRUE(contains(c.err, "twill-tune: ended by signal 15")) << c.err;
    pid_t parent = 0;
    EXPECT_EQ(process_state(child, &parent), 'X');
}

TEST_F(Sim, LostOutputIsAFailure)
{
    for (const char *line : {" --list >/dev/full", " --print-cost >&-", " --help >/dev/full"}) {
        Command c({"sh", "-c", std::string(kSim) + line});
        EXPECT_EQ(c.finish(), 3) << line;
        EXPECT_TRUE(contains(c.err, "twill-sim: standard output could not be written")) << c.err;
    }
    Command tune({"sh", "-c", std::string(kTune) + " --help >/dev/full"});
    EXPECT_EQ(tune.finish(), 3);
}

TEST_F(Sim, TuneSaysWhatMakesNoSense)
{
    struct Case {
        Words argv;
        int status;
        const char *why;
    } cases[] = {
        {{"-n", "1"}, 2, "'1' is not a number of ranks from 2"},
        {{"-n", "2,,x"}, 2, "'x' is not"},
        {{"--from", "a.csv"}, 2, "'a.csv' is not FILE:RANKS"},
        {{"--rounds", "0"}, 2, "--rounds takes a number from 1 to 1000, not '0'"},
        {{"-e", "1"}, 2, "-e takes bytes (8, 64K, 1.5M) from 8 to 4G, not '1'"},
        {{"--algo", "magic"}, 2, "no algorithm 'magic'"},
        {{"more"}, 2, "'more' is no option"},
        {{"--from", "/nowhere.csv:2"}, 3, "cannot open /nowhere.csv"},
        {{"--from", "/:2"}, 3, "cannot read /: Is a directory"},
        {{"--from", "/dev/null:2"}, 3, "/dev/null is empty"},
        {{"--run", "/nowhere/run", "--algo", "dissemination"}, 3, "cannot start /nowhere/run"},
        {{"--run", "/bin/false", "--algo", "dissemination"}, 3, "/bin/false ended with status 1"},
    };
    for (const Case &c : cases) {
        Words argv = {kTune, "--quiet", "--machine", kMachine};
        argv.insert(argv.end(), c.argv.begin(), c.argv.end());
        Command command(argv);
        EXPECT_EQ(command.finish(), c.status) << c.why << ": " << command.err;
        EXPECT_TRUE(contains(command.err, c.why)) << c.why << ": " << command.err;
    }
}

} // namespace
