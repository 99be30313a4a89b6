/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-perf promises, by its output. Never knows: how it measures or checks. */
#include <gtest/gtest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <fstream>
#include <map>
#include <sstream>

#include "command.h"

namespace
{

const char *kRun = BUILD_DIR "/tools/twill-run";
const char *kPerf = BUILD_DIR "/perf/twill-perf";

using Words = std::vector<std::string>;

Words operator+(Words a, const Words &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Words words(const std::string &line)
{
    Words out;
    std::istringstream in(line);
    for (std::string word; in >> word;)
        out.push_back(word);
    return out;
}

/* Rows of the table: 5 columns of what, 4 out of place, 4 in place. */
std::vector<Words> rows(const std::string &text)
{
    std::vector<Words> out;
    for (const std::string &line : Command::split(text))
        if (!line.empty() && line[0] != '#')
            out.push_back(words(line));
    return out;
}

class TempDir
{
  public:
    TempDir()
    {
        char name[] = "/tmp/twill-test-XXXXXX";
        path = mkdtemp(name);
    }
    ~TempDir()
    {
        for (const std::string &file : files_)
            unlink(file.c_str());
        rmdir(path.c_str());
    }
    std::string file(const std::string &name)
    {
        files_.push_back(path + "/" + name);
        return files_.back();
    }
    std::string path;

  private:
    std::vector<std::string> files_;
};

std::string slurp(const std::string &path)
{
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

const char *const kOps[] = {"all_reduce",       "reduce",       "broadcast",    "reduce_scatter",
                            "all_gather",       "all_to_all",   "gather",       "scatter",
                            "reduce_scatter_v", "all_gather_v", "all_to_all_v", "gather_v",
                            "scatter_v",        "barrier",      "send_recv"};

TEST(Perf, EveryOperationIsRightOnFourProcesses)
{
    Command c(Words{kRun, "-n", "4", kPerf, "all"} + words("-b 8 -e 128K -f 11 -n 3 -w 1 -c 2"));
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    EXPECT_TRUE(contains(c.out, "4 ranks in 4 processes"));
    for (const char *op : kOps)
        EXPECT_TRUE(contains(c.out, "# " + std::string(op) + "\n")) << op;
    std::vector<Words> table = rows(c.out);
    EXPECT_EQ(table.size(), 14u * 5 + 1);
    for (const Words &row : table) {
        ASSERT_EQ(row.size(), 13u);
        EXPECT_EQ(row[8], "0");
        EXPECT_TRUE(row[12] == "0" || row[12] == "N/A");
        EXPECT_GT(atof(row[5].c_str()), 0);
    }
    EXPECT_TRUE(contains(c.out, "# wrong elements : 0 OK\n")) << c.out;
}

TEST(Perf, EveryTypeReductionAndRootIsRightOnThreads)
{
    Command c(Words{kPerf, "all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v"} +
              words("-t 3 -b 996 -e 996 -n 2 -w 1 -d all -o all -r all"));
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    std::map<std::string, int> seen;
    for (const Words &row : rows(c.out)) {
        EXPECT_EQ(row[8], "0");
        EXPECT_EQ(row[12], "0");
        seen[row[2] + " " + row[3]]++;
    }
    const Words floats = {"float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
    const Words integers = {"int8", "uint8", "int32", "uint32", "int64", "uint64"};
    for (const std::string &type : floats)
        for (const char *op : {"sum", "prod", "max", "min", "avg", "mulsum"})
            EXPECT_EQ(seen[type + " " + op], 1 + 3 + 1 + 1) << type << op;
    for (const std::string &type : integers)
        for (const char *op : {"sum", "prod", "max", "min", "avg", "band", "bor", "bxor", "mulsum"})
            EXPECT_EQ(seen[type + " " + op], 1 + 3 + 1 + 1) << type << op;
    EXPECT_EQ(seen.size(), 6u * 6 + 6u * 9);
    EXPECT_FALSE(contains(c.out, "checked to")) << c.out; // three ranks: all is exact
}

TEST(Perf, MovesEveryType)
{
    Command c(Words{kPerf, "broadcast", "all_gather", "all_to_all", "send_recv"} +
              words("-t 2 -b 120 -e 120 -n 2 -w 1 -d all -r -1"));
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    EXPECT_EQ(rows(c.out).size(), 12u * (2 + 1 + 1 + 1));
}

/* Blocks of twice the mean, of none, and those between; each with its own place in a buffer. */
TEST(Perf, UnevenBlocksAreRightForEveryRoot)
{
    Command c(Words{kPerf, "reduce_scatter_v", "all_gather_v", "all_to_all_v", "gather_v",
                    "scatter_v", "gather", "scatter"} +
              words("--uneven -t 4 -b 4 -e 40K -f 100 -n 2 -w 1 -d int32 -r all"));
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    EXPECT_TRUE(contains(c.out, "# uneven: blocks of v-variants fall")) << c.out;
    const std::vector<Words> table = rows(c.out);
    EXPECT_EQ(table.size(), 3u * 3 + 4 * 4 * 3);
    for (const Words &row : table) {
        EXPECT_EQ(row[8], "0");
        EXPECT_EQ(row[12], "0");
    }
}

/* The reference of each new operation sees what is spoilt, on the rank that has an output. */
TEST(Perf, SpoiltBlocksAreCounted)
{
    Command c(Words{kPerf, "reduce_scatter_v", "all_gather_v", "all_to_all_v", "gather_v",
                    "scatter_v", "gather", "scatter"} +
              words("--uneven -t 3 -b 3000 -e 3000 -n 1 -w 0 -d int32 -r 1 --inject 5"));
    EXPECT_EQ(c.finish(), 1) << c.out << c.err;
    const std::vector<Words> table = rows(c.out);
    EXPECT_EQ(table.size(), 7u);
    for (const Words &row : table) {
        EXPECT_EQ(row[8], "5") << row[1];
        EXPECT_EQ(row[12], "5") << row[1];
    }
}

TEST(Perf, ProcessesTimesThreads)
{
    Command c(Words{kRun, "-n", "2", kPerf, "all_reduce"} + words("-t 2 -b 64 -e 64 -n 2 -w 1"));
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    EXPECT_TRUE(contains(c.out, "4 ranks in 2 processes")) << c.out;
    EXPECT_EQ(rows(c.out).size(), 1u);
}

TEST(Perf, AloneIsOneRank)
{
    Command c(Words{kPerf, "all"} + words("-b 64 -e 1K -f 4 -n 2 -w 1"));
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    EXPECT_TRUE(contains(c.out, "1 rank in 1 process,")) << c.out;
    EXPECT_TRUE(contains(c.out, "wrong elements : 0 OK"));
}

TEST(Perf, RegisteredBuffers)
{
    Command c(Words{kRun, "-n", "2", kPerf, "all_reduce", "all_gather"} +
              words("-R 1 -b 4K -e 4K -n 2 -w 1"));
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    EXPECT_TRUE(contains(c.out, "registered"));
}

/* An injected corruption is counted element by element. */
TEST(Perf, CountsInjectedCorruptionExactly)
{
    for (const char *op : kOps) {
        const std::string name = op; /* v-variants: SpoiltBlocksAreCounted */
        if (name == "barrier" || name.compare(name.size() - 2, 2, "_v") == 0)
            continue;
        for (const char *type : {"float", "bfloat16", "uint8"}) {
            Command c(Words{kPerf, op} +
                      words("-t 3 -b 3000 -e 48000 -f 16 -n 2 -w 1 -c 2 --inject 37 -d") +
                      Words{type});
            EXPECT_EQ(c.finish(), 1) << op << c.out << c.err;
            std::vector<Words> table = rows(c.out);
            ASSERT_EQ(table.size(), 2u);
            for (const Words &row : table) {
                EXPECT_EQ(row[8], "37") << op;
                EXPECT_TRUE(row[12] == "37" || row[12] == "N/A") << op;
            }
            EXPECT_TRUE(contains(c.err, "element ")) << c.err;
            EXPECT_TRUE(contains(c.out, "FAILED"));
        }
    }
    Command one(Words{kPerf, "barrier"} + words("-t 3 -n 2 -w 1 --inject 1"));
    EXPECT_EQ(one.finish(), 1);
    EXPECT_EQ(rows(one.out).at(0).at(8), "1");
}

TEST(Perf, InjectionIsCountedAcrossProcesses)
{
    Command c(Words{kRun, "-n", "2", kPerf, "reduce"} +
              words("-r 1 -b 400 -e 400 -n 2 -w 1 --inject 100"));
    EXPECT_EQ(c.finish(), 1) << c.out << c.err;
    ASSERT_EQ(rows(c.out).size(), 1u);
    EXPECT_EQ(rows(c.out)[0][8], "100");
    EXPECT_EQ(rows(c.out)[0][12], "100");
}

TEST(Perf, WithoutCheckingItSaysSo)
{
    Command c(Words{kPerf, "all_reduce"} + words("-t 2 -b 64 -e 64 -n 2 -w 1 -c 0 --inject 5"));
    EXPECT_EQ(c.finish(), 0);
    EXPECT_EQ(rows(c.out).at(0).at(8), "N/A");
    EXPECT_TRUE(contains(c.out, "not checked"));
}

TEST(Perf, FiguresFitTogether)
{
    Command c(Words{kPerf, "all_reduce"} + words("-t 4 -b 64K -e 256K -n 3 -w 1"));
    EXPECT_EQ(c.finish(), 0);
    std::vector<Words> table = rows(c.out);
    ASSERT_EQ(table.size(), 3u);
    for (const Words &row : table) {
        double size = atof(row[0].c_str()), time = atof(row[5].c_str());
        double algbw = atof(row[6].c_str()), busbw = atof(row[7].c_str());
        EXPECT_EQ(size, 4 * atof(row[1].c_str()));
        EXPECT_NEAR(algbw, size / time * 1e-3, 0.01 * algbw + 0.0011);
        EXPECT_NEAR(busbw, algbw * 1.5, 0.0011);
    }
}

TEST(Perf, SizesStepByFactorOrBytes)
{
    Command factor(Words{kPerf, "all_reduce"} + words("-b 1K -e 20K -f 4 -n 1 -w 0"));
    EXPECT_EQ(factor.finish(), 0);
    Words sizes;
    for (const Words &row : rows(factor.out))
        sizes.push_back(row[0]);
    EXPECT_EQ(sizes, (Words{"1024", "4096", "16384"}));
    Command bytes(Words{kPerf, "all_reduce"} + words("-b 8 -e 40 -i 16 -n 1 -w 0"));
    EXPECT_EQ(bytes.finish(), 0);
    sizes.clear();
    for (const Words &row : rows(bytes.out))
        sizes.push_back(row[0]);
    EXPECT_EQ(sizes, (Words{"8", "24", "40"}));
}

const char *const kRowKeys[] = {
    "op",        "size_bytes", "count",       "type",        "redop",       "root",
    "inplace",   "time_us",    "time_us_min", "time_us_max", "time_us_p99", "algbw_gbs",
    "busbw_gbs", "wrong",      "algo",        "proto",       "channels",    "lib"};

TEST(Perf, JsonIsOneObjectWithResults)
{
    TempDir dir;
    std::string json = dir.file("out.json"), csv = dir.file("out.csv");
    Command c(Words{kRun, "-n", "2", kPerf, "all_reduce", "all_to_all", "barrier", "--json", json,
                    "--csv", csv} +
              words("-b 1K -e 4K -n 5 -w 1"));
    ASSERT_EQ(c.finish(), 0) << c.out << c.err;
    std::string text = slurp(json);
    for (const char *key : kRowKeys) {
        std::string quoted = "\"" + std::string(key) + "\": ";
        size_t found = 0;
        for (size_t at = text.find("\"results\""); (at = text.find(quoted, at)) != text.npos; at++)
            found++;
        EXPECT_EQ(found, 2u * 3 * 2 + 1) << key;
    }
    std::vector<std::string> lines = Command::split(slurp(csv));
    ASSERT_EQ(lines.size(), 14u);
    EXPECT_EQ(lines[0].compare(0, 25, "op,size_bytes,count,type,"), 0);
    EXPECT_EQ(lines[1].compare(0, 35, "all_reduce,1024,256,float32,sum,-1,"), 0) << lines[1];
    if (!have_tool("python3"))
        GTEST_SKIP() << "python3 is missing";
    Command python(
        {"python3", "-c",
         "import json, sys\n"
         "d = json.load(sys.stdin)\n"
         "assert d['ranks'] == 2 and d['processes'] == 2 and d['wrong'] == 0\n"
         "assert len(d['results']) == 13\n"
         "for r in d['results']:\n"
         "    assert r['wrong'] == 0 and isinstance(r['inplace'], bool)\n"
         "    assert 0 < r['time_us_min'] <= r['time_us_median'] <= r['time_us_p99'] <= "
         "r['time_us_max']\n"
         "    assert r['algo'] and r['proto'] == 'simple' and r['channels'] >= 1\n"
         "r = d['results'][0]\n"
         "assert (r['op'], r['size_bytes'], r['count'], r['type'], r['redop'], r['root']) == "
         "('all_reduce', 1024, 256, 'float32', 'sum', -1)\n"
         "assert abs(r['algbw_gbs'] - r['size_bytes'] / r['time_us'] * 1e-3) < 1e-3\n"},
        text);
    EXPECT_EQ(python.finish(), 0) << python.err;
}

TEST(Perf, Plots)
{
    if (!have_tool("gnuplot"))
        GTEST_SKIP() << "gnuplot is missing";
    TempDir dir;
    std::string svg = dir.file("it's a plot.svg");
    Command c(Words{kPerf, "all_reduce", "broadcast", "--plot", svg} +
              words("-t 2 -b 1K -e 8K -n 2 -w 1"));
    EXPECT_EQ(c.finish(), 0) << c.err;
    std::string text = slurp(svg);
    EXPECT_TRUE(contains(text, "<svg")) << text.substr(0, 200);
    EXPECT_TRUE(contains(text, "broadcast float32"));
}

TEST(Perf, SaysWhenGnuplotIsMissingAndKeepsTheData)
{
    TempDir dir;
    std::string svg = dir.file("it's a plot.svg"), data = dir.file("it's a plot.svg.csv");
    /* the wrapper script of an uninstalled program needs its tools: only gnuplot is hidden */
    Command without(
        {"sh", "-c",
         "mkdir '" + dir.path +
             "/bin' && for t in sh sed grep cat ls rm mkdir dirname "
             "basename expr test env uname; do p=$(command -v $t) && case $p in /*) ln -s "
             "$p '" +
             dir.path + "/bin/';; esac; done; PATH='" + dir.path + "/bin'; export PATH; " + kPerf +
             " all_reduce -t 2 -b 1K -e 8K -n 2 -w 1 --plot \"$0\"; rc=$?; rm -r '" + dir.path +
             "/bin'; exit $rc",
         svg});
    EXPECT_EQ(without.finish(), 3) << without.err;
    EXPECT_TRUE(contains(without.err, "gnuplot was not found")) << without.err;
    EXPECT_EQ(Command::split(slurp(data)).size(), 9u) << without.err;
}

struct Usage {
    const char *args;
    int status;
    const char *says;
};

TEST(Perf, SaysWhatIsWrongWithTheCommandLine)
{
    const Usage cases[] = {
        {"", 2, "no operation given"},
        {"all_redcue", 2, "unknown operation 'all_redcue'"},
        {"all_reduce -d float12", 2, "unknown type 'float12'"},
        {"all_reduce -o xor", 2, "unknown operation 'xor'"},
        {"all_reduce -o bor", 2, "-o bor is of integers, not of float32"},
        {"all_reduce -d half -o bxor", 2, "-o bxor is of integers, not of float16"},
        {"all_reduce -b 0", 2, "-b must be at least 1"},
        {"all_reduce -b 16 -e 8", 2, "-b 16 is above -e 8"},
        {"all_reduce -b -8", 2, "not '-8'"},
        {"all_reduce -e 8Q", 2, "not '8Q'"},
        {"all_reduce -e 9999T", 2, "the machine has"},
        {"all_reduce -f 1", 2, "-f takes a number"},
        {"all_reduce -i 1 -e 1M", 2, "more than 10000 sizes"},
        {"all_reduce -n 0", 2, "-n takes a number"},
        {"all_reduce -w -1", 2, "-w takes a number"},
        {"all_reduce -c x", 2, "-c takes a number"},
        {"all_reduce -t 0", 2, "-t takes a number"},
        {"all_reduce --seed -4", 2, "--seed takes a number"},
        {"all_reduce --device tpu", 2, "host or cuda, not 'tpu'"},
        {"all_reduce -g 2", 2, "ranks of host memory come from twill-run -n and -t"},
        {"all_reduce -g 0", 2, "-g takes a number"},
        {"all_reduce --device cuda -g x", 2, "-g takes a number"},
        {"all_reduce -G 1", 2, "CUDA graphs"},
        {"all_reduce -G 0", 2, "CUDA graphs"},
        {"all_reduce --device cuda -G 1001", 2, "-G takes a number"},
        {"all_reduce -R 2", 2, "windows are not in this build"},
        {"all_reduce --peer nccl", 2, "it goes with --device cuda"},
        {"all_reduce --peer mpi", 2, "nccl or nccl=FILE, not 'mpi'"},
        {"all_reduce --peer nccl=", 2, "nccl or nccl=FILE, not 'nccl='"},
        {"all_reduce --peer ncclx", 2, "not 'ncclx'"},
        {"all_reduce --sizes 8,4", 2, "--sizes: they ascend, and 4 does not"},
        {"all_reduce --sizes 8,8", 2, "--sizes: they ascend"},
        {"all_reduce --sizes 0", 2, "--sizes: they ascend"},
        {"all_reduce --sizes 8,,16", 2, "not ''"},
        {"all_reduce --sizes ,", 2, "not ''"},
        {"all_reduce --sizes 8,x", 2, "not 'x'"},
        {"all_reduce --volume much", 2, "not 'much'"},
        {"all_reduce --max-sms 16", 2, "--max-sms: kernels are of --device cuda"},
        {"all_reduce --device cuda --max-sms -1", 2, "--max-sms"},
        {"all_reduce --overlap", 2, "--overlap: "}, /* the build says why: SaysWhyThereIsNoGpu */
        {"all_reduce --overlap --device host", 2, "--overlap: "},
        {"all_reduce --overlap=last", 2, "--overlap takes =equal or =first, not 'last'"},
        {"all_reduce --overlap=", 2, "--overlap takes =equal or =first, not ''"},
        {"all_reduce --overlap first", 2, "unknown operation 'first'"},
        {"all_reduce --overlap --device cuda -G 5", 2, "beside products: without -G"},
        {"all_reduce --overlap --device cuda --list", 2, "--list runs nothing: without --overlap"},
        {"all_reduce -R 7", 2, "-R takes a number"},
        {"all_reduce --bogus", 2, "--bogus"},
        {"broadcast -t 2 -r 2 -e 8", 2, "-r 2: there are 2 ranks"},
        {"all_reduce -e 8 --json /nonexistent/out.json", 3, "cannot write /nonexistent/out.json"},
    };
    for (const Usage &usage : cases) {
        Command c(Words{kPerf} + words(usage.args));
        EXPECT_EQ(c.finish(), usage.status) << usage.args;
        EXPECT_TRUE(contains(c.err, usage.says)) << usage.args << ": " << c.err;
    }
}

/* Without GPUs in the build or in the machine: which of both it is, and the status of wrong usage.
 */
TEST(Perf, SaysWhyThereIsNoGpu)
{
    Command c(Words{kPerf} + words("all_reduce --device cuda -g 2 -G 3 -R 2 -e 64 -n 1"), "",
              {"CUDA_VISIBLE_DEVICES="});
    EXPECT_EQ(c.finish(), 2);
    EXPECT_TRUE(contains(c.err, "--device cuda: this build has no GPU support") ||
                contains(c.err, "--device cuda: there is no device here: "))
        << c.err;
    EXPECT_EQ(c.out, "");
    Command overlap(Words{kPerf} + words("all_reduce --overlap=first --device cuda -g 2 -e 64"), "",
                    {"CUDA_VISIBLE_DEVICES="});
    EXPECT_EQ(overlap.finish(), 2);
    EXPECT_TRUE(contains(overlap.err, "--device cuda: this build has no GPU support") ||
                contains(overlap.err, "--device cuda: there is no device here: "))
        << overlap.err;
    Command host(Words{kPerf} + words("all_reduce --overlap"));
    EXPECT_EQ(host.finish(), 2);
    EXPECT_TRUE(contains(host.err, "it goes with --device cuda") ||
                contains(host.err, "this build has no matrix product, since it has no GPU support"))
        << host.err;
}

TEST(Perf, ListedSizesAndFewerCallsOfLargeOnes)
{
    TempDir dir;
    std::string json = dir.file("out.json"), csv = dir.file("out.csv");
    Command c(Words{kPerf, "all_reduce", "--json", json, "--csv", csv} +
              words("-t 2 --sizes 8,3K,1M --volume 2M -n 50 -w 1"));
    ASSERT_EQ(c.finish(), 0) << c.err;
    Words sizes;
    for (const Words &row : rows(c.out))
        sizes.push_back(row[0]);
    EXPECT_EQ(sizes, (Words{"8", "3072", "1048576"}));
    EXPECT_TRUE(contains(c.out, "# fewer calls, but no less than 2, where")) << c.out;
    std::string text = slurp(json);
    for (const char *fact : {"\"device\": \"host\"", "\"gpus\": 0", "\"graph\": 0",
                             "\"lib\": \"twill\"", "\"volume\": 2097152"})
        EXPECT_TRUE(contains(text, fact)) << fact;
    std::vector<std::string> lines = Command::split(slurp(csv));
    ASSERT_EQ(lines.size(), 7u);
    for (const std::string &line : lines)
        EXPECT_TRUE(contains(line, line == lines[0] ? ",channels,lib" : ",twill")) << line;
}

TEST(Perf, AnErrorOfTheLibraryIsSaidAndFails)
{
    Command call(Words{kRun, "-n", "2", "sh", "-c",
                       "exec " + std::string(kPerf) +
                           " all_reduce -e 64 -n 1 -o $(test $TWILL_RANK = 0 && "
                           "echo sum || echo mulsum)"});
    EXPECT_EQ(call.finish(), 3);
    EXPECT_TRUE(contains(call.err, "all_reduce: TWILL_ERR_MISMATCH: ")) << call.err;
    EXPECT_TRUE(contains(call.err, "float32 premul_sum")) << call.err;
    Command parameter(Words{kPerf, "all_reduce"} + words("-e 64 -n 1"), "", {"TWILL_WARN=soon"});
    EXPECT_EQ(parameter.finish(), 3);
    EXPECT_TRUE(contains(parameter.err, "TWILL_WARN")) << parameter.err;
    Command place(Words{kPerf, "all_reduce"} + words("-e 64 -n 1"), "",
                  {"TWILL_RANK=5", "TWILL_SIZE=2", "TWILL_RENDEZVOUS=unix:none"});
    EXPECT_EQ(place.finish(), 3);
    EXPECT_TRUE(contains(place.err, "cannot connect: TWILL_ERR_INVALID: ")) << place.err;
}

TEST(Perf, OneRankThatFailsEndsTheOthers)
{
    Command c(Words{kRun, "-n", "2", kPerf, "all_reduce", "--json", "/nonexistent/x"} +
              words("-e 64 -n 1"));
    EXPECT_EQ(c.finish(), 3);
    EXPECT_TRUE(contains(c.err, "cannot write /nonexistent/x")) << c.err;
}

TEST(Perf, ListsTheChoiceOfEachSize)
{
    Command command(Words{"env", "TWILL_ALGO=ring", kRun, "-n", "3", kPerf} +
                    words("all_reduce send_recv all_gather_v --list -b 8 -e 64 -f 8"));
    ASSERT_EQ(command.finish(), 0) << command.err;
    std::vector<Words> list = rows(command.out);
    ASSERT_EQ(list.size(), 6u) << command.out;
    for (size_t i : {0, 1, 5}) {
        ASSERT_EQ(list[i].size(), 7u) << command.out;
        EXPECT_GT(atof(list[i][6].c_str()), 0) << "a predicted time";
        list[i].pop_back();
    }
    EXPECT_EQ(list[0], (Words{"8", "2", "float32", "ring", "simple", "1"}));
    EXPECT_EQ(list[1], (Words{"64", "16", "float32", "ring", "simple", "1"}));
    EXPECT_EQ(list[3], (Words{"64", "16", "float32", "point", "to", "point"}));
    EXPECT_EQ(list[5], (Words{"60", "5", "float32", "ring", "simple", "1"}));
}

/* A rank is killed in mid-run: the others say so and end by themselves, long before the grace. */
TEST(Perf, AKilledRankEndsTheRun)
{
    Command c(Words{kRun, "-n", "3", "--grace", "60", kPerf, "all_reduce"} +
              words("-b 8 -e 1K -n 1000000 -w 1"));
    ASSERT_TRUE(c.read_until([&] { return contains(c.out, "busbw"); })) << c.err;
    std::vector<pid_t> keeper = children_of(c.pid);
    ASSERT_EQ(keeper.size(), 1u);
    std::vector<pid_t> ranks = children_of(keeper[0]);
    ASSERT_EQ(ranks.size(), 3u);
    kill(ranks[1], SIGKILL);
    EXPECT_EQ(c.finish(), 128 + SIGKILL) << c.err;
    EXPECT_TRUE(contains(c.err, "rank 1 was ended by SIGKILL")) << c.err;
    EXPECT_TRUE(contains(c.err, "twill-perf: rank 0: ")) << c.err;
    EXPECT_TRUE(contains(c.err, "twill-perf: rank 2: ")) << c.err;
    EXPECT_TRUE(contains(c.err, "TWILL_ERR_PEER")) << c.err;
    EXPECT_FALSE(contains(c.err, "sent SIGTERM")) << c.err;
}

TEST(Perf, HelpAndVersion)
{
    Command help({kPerf, "--help"});
    EXPECT_EQ(help.finish(), 0);
    for (const char *option : {"-b BYTES", "-d TYPE", "-t THREADS", "--json", "--plot", "--seed"})
        EXPECT_TRUE(contains(help.out, option)) << option;
    EXPECT_FALSE(contains(help.out, "inject"));
    Command version({kPerf, "--version"});
    EXPECT_EQ(version.finish(), 0);
    EXPECT_EQ(version.out.compare(0, 11, "twill-perf "), 0);
}

} // namespace
