/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-perf does on GPUs and with NCCL's library, by fakes of both (perf_fake,
 * fake_nccl). Never knows: CUDA. */
#include <gtest/gtest.h>
#include <math.h>
#include <stdlib.h>

#include "command.h"

namespace
{

const char *kFake = BUILD_DIR "/tests/tools/perf_fake";
const std::string kNccl = "--peer=nccl=" BUILD_DIR "/tests/tools/.libs/fake_nccl.so";

using Words = std::vector<std::string>;

Words words(const std::string &line)
{
    Words out;
    std::istringstream in(line);
    for (std::string word; in >> word;)
        out.push_back(word);
    return out;
}

Words perf(const std::string &arguments)
{
    Words all = {kFake, "--device", "cuda", kNccl};
    for (const std::string &word : words(arguments))
        all.push_back(word);
    return all;
}

std::vector<Words> rows(const std::string &text)
{
    std::vector<Words> out;
    for (const std::string &line : Command::split(text))
        if (!line.empty() && line[0] != '#')
            out.push_back(words(line));
    return out;
}

const char kOps[] = "all_reduce reduce broadcast reduce_scatter all_gather all_to_all send_recv";

/* One rank a device, and several on each; on streams and in graphs. */
TEST(PerfGpu, EveryOperationOfThePeerIsRight)
{
    for (const char *how : {"-g 1 -G 0", "-g 2 -G 0", "-g 2 -G 3", "-g 4", "-g 5 -G 2"}) {
        Command c(perf(std::string(kOps) + " -b 8 -e 64K -f 16 -n 3 -w 2 -c 2 " + how));
        EXPECT_EQ(c.finish(), 0) << how << c.out << c.err;
        EXPECT_TRUE(contains(c.out, "# twill-perf, NCCL 2.99.4: ")) << c.out;
        EXPECT_TRUE(contains(c.out, "cuda (fake 0, 2 visible), ")) << c.out;
        EXPECT_TRUE(contains(c.out, "# wrong elements : 0 OK\n")) << c.out;
        EXPECT_TRUE(contains(c.err, "fake cuda: nothing is left")) << c.err;
        std::vector<Words> table = rows(c.out);
        EXPECT_EQ(table.size(), 7u * 4);
        for (const Words &row : table) {
            ASSERT_EQ(row.size(), 13u);
            EXPECT_EQ(row[8], "0") << how;
            EXPECT_TRUE(row[12] == "0" || row[12] == "N/A") << how;
        }
    }
}

TEST(PerfGpu, SaysWhichModeItMeasures)
{
    Command graph(perf("all_reduce -g 2 -G 7 -e 8 -n 2 -c 0"));
    EXPECT_EQ(graph.finish(), 0) << graph.err;
    EXPECT_TRUE(contains(graph.out, "2 ranks in 1 process, ")) << graph.out;
    EXPECT_TRUE(contains(graph.out, "graph replayed 7 times\n")) << graph.out;
    EXPECT_TRUE(contains(graph.out, "mean of the calls in replayed graphs")) << graph.out;
    Command stream(perf("all_reduce -g 2 -e 8 -n 2 -c 0 -R 2"));
    EXPECT_EQ(stream.finish(), 0) << stream.err;
    EXPECT_TRUE(contains(stream.out, "stream, registered memory of the library\n")) << stream.out;
    EXPECT_TRUE(contains(stream.out, "# time: mean of back-to-back calls on a stream"));
    EXPECT_TRUE(contains(stream.err, "fake nccl: 0 windows are left")) << stream.err;
}

/* Without checks inputs are a tile that is doubled, here beyond one tile and to no power of two. */
TEST(PerfGpu, UncheckedInputsOfAnySizeAndManyCalls)
{
    Command c(perf("all_reduce all_gather -g 2 -n 1500 --sizes 8,5000000 --volume 20M -c 0 -w 0"));
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    EXPECT_EQ(rows(c.out).size(), 4u);
    EXPECT_TRUE(contains(c.out, "not checked")) << c.out;
}

TEST(PerfGpu, WhatIsWrongIsCounted)
{
    Command library(perf("all_reduce -g 3 -b 64 -e 64 -n 2 -G 2"), "", {"FAKE_NCCL=wrong"});
    EXPECT_EQ(library.finish(), 1) << library.err;
    EXPECT_EQ(rows(library.out).at(0).at(8), "48") << library.out; /* 16 elements of 3 ranks */
    Command injected(perf("reduce -r 1 -g 3 -b 400 -e 400 -n 2 --inject 7"));
    EXPECT_EQ(injected.finish(), 1) << injected.err;
    EXPECT_EQ(rows(injected.out).at(0).at(8), "7") << injected.out;
}

TEST(PerfGpu, WhatThePeerDoesNotHaveIsLeftOutOrSaid)
{
    Command all(perf("all -g 2 -e 8 -n 1 -o sum"));
    EXPECT_EQ(all.finish(), 0) << all.err;
    EXPECT_EQ(rows(all.out).size(), 7u);
    EXPECT_FALSE(contains(all.out, "all_gather_v")) << all.out;
    struct {
        const char *arguments;
        int status;
        const char *says;
    } const cases[] = {
        {"barrier", 2, "--peer nccl: it is not asked for barrier"},
        {"all_reduce -d int32 -o band", 2, "it is not asked for all_reduce with band"},
        {"all_reduce -R 1", 3, "has no ncclCommRegister"},
        {"all_reduce --peer nccl=/nonexistent.so", 3, "/nonexistent.so"},
        {"all_reduce -g 2 -r 2 -e 8", 2, "-r 2: there are 2 ranks"},
        {"all_reduce -d half -e 8 -n 1", 3, "NCCL: all_reduce: fake error"},
    };
    for (const auto &each : cases) {
        Command c(perf(each.arguments));
        EXPECT_EQ(c.finish(), each.status) << each.arguments << c.err;
        EXPECT_TRUE(contains(c.err, each.says)) << each.arguments << ": " << c.err;
    }
}

/* ---- --overlap --------------------------------------------------------------------------------
 */

double number(const std::string &text)
{
    char *end;
    double value = strtod(text.c_str(), &end);
    EXPECT_TRUE(end != text.c_str() && !*end) << text;
    return value;
}

/* What the made-up devices do is done one after the other, so nothing is said of how much is lost.
 */
TEST(PerfGpu, CallsAndProductsAreMeasuredBesideEachOther)
{
    for (const char *how : {"-g 1", "-g 2", "-g 2 -R 2 --overlap=first", "-g 5 -c 0"}) {
        Command c(perf(std::string("all_reduce send_recv --overlap --sizes 40,80K -n 3 ") + how));
        EXPECT_EQ(c.finish(), 0) << how << c.out << c.err;
        EXPECT_TRUE(contains(c.out, "# overlap: beside products of 8192 x 1024 by 1024 x 4096 "))
            << c.out;
        EXPECT_EQ(contains(c.out, "of lower priority"), contains(how, "first")) << c.out;
        EXPECT_EQ(contains(c.out, "of the same priority"), !contains(how, "first")) << c.out;
        EXPECT_TRUE(contains(c.err, "fake cuda: nothing is left")) << c.err;
        std::vector<Words> table = rows(c.out);
        ASSERT_EQ(table.size(), 4u) << c.out;
        for (const Words &row : table) {
            ASSERT_EQ(row.size(), 14u) << c.out;
            EXPECT_EQ(row[5], "-"); /* nobody knows a peer's blocks */
            for (int i : {6, 7, 9, 10})
                EXPECT_GT(number(row[(size_t)i]), 0);
            EXPECT_NEAR(number(row[8]), (number(row[7]) / number(row[6]) - 1) * 100,
                        1 + 0.01 * fabs(number(row[8])));
            EXPECT_NEAR(number(row[12]),
                        number(row[6]) / number(row[7]) + number(row[9]) / number(row[10]), 0.02);
            EXPECT_GE(number(row[9]), 50);
            EXPECT_EQ(row[13], contains(how, "-c 0") ? "N/A" : "0");
        }
    }
}

/* A call of many products' length, and so many calls that none lasts for a product. */
TEST(PerfGpu, LapsOfAnyLengthEnd)
{
    Command c(perf("all_reduce --overlap -g 2 --sizes 8,8M -n 500 --volume 32M -c 0 -w 1"));
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    EXPECT_EQ(rows(c.out).size(), 2u) << c.out;
}

/* Products that end before the calls do: the lap is made again with more of them, until none is
 * left to make. */
TEST(PerfGpu, ProductsLastAsLongAsCalls)
{
    const std::string what = "all_reduce --overlap=first -g 1 --sizes 8 -n 5 -c 0";
    Command late(perf(what), "", {"FAKE_CUDA_LATE_US=5000"});
    EXPECT_EQ(late.finish(), 0) << late.out << late.err;
    EXPECT_EQ(rows(late.out).size(), 1u) << late.out;
    Command never(perf(what), "", {"FAKE_CUDA_LATE_US=1e9"});
    EXPECT_EQ(never.finish(), 3) << never.out;
    EXPECT_TRUE(
        contains(never.err, "--overlap: a call of 8 bytes beside products lasts longer than 512"))
        << never.err;
}

TEST(PerfGpu, OverlapInFilesAndInTheScriptsTable)
{
    if (!have_tool("python3"))
        GTEST_SKIP() << "python3 is missing";
    std::string command =
        "d=$(mktemp -d); set -e\n" + std::string(kFake) +
        " all_reduce --device cuda --overlap=first -g 2 --sizes 1M -n 2 " + kNccl +
        " --csv $d/gpu-overlap-one-first-nccl-R0.csv --json $d/out.json\n"
        "python3 '" SOURCE_DIR "/perf/overlap.py' $d\n"
        "cat $d/*.csv; python3 -c 'import json,sys\n"
        "d = json.load(open(sys.argv[1])); r = d[\"results\"][0]\n"
        "assert d[\"overlap\"] == \"first\" and d[\"product\"] == [8192, 1024, 4096]\n"
        "assert abs(r[\"time_beside_us\"] / r[\"time_us\"] - 1 - "
        "r[\"time_loss_percent\"] / 100) < 0.01\n"
        "assert abs(r[\"product_beside_us\"] / r[\"product_us\"] - 1 - "
        "r[\"product_loss_percent\"] / 100) < 0.01\n"
        "assert r[\"together\"] > 0' $d/out.json\nrm -r $d\n";
    Command c({"sh", "-c", command});
    EXPECT_EQ(c.finish(), 0) << c.out << c.err;
    EXPECT_TRUE(contains(c.out, "## one, calls on the stream that goes first")) << c.out;
    EXPECT_TRUE(contains(c.out, "| all_reduce | 1 MiB | nccl-R0 | - | ")) << c.out;
    EXPECT_TRUE(contains(c.out, ",channels,lib,overlap,time_beside_us,time_loss_percent,product_us,"
                                "product_beside_us,product_loss_percent,together\n"))
        << c.out;
    EXPECT_TRUE(contains(c.out, ",,,,nccl,first,")) << c.out;
}

TEST(PerfGpu, AWrongProductEndsTheRun)
{
    Command c(perf("all_reduce --overlap -g 2 -e 8"), "", {"FAKE_CUDA=wrong"});
    EXPECT_EQ(c.finish(), 3) << c.out;
    EXPECT_TRUE(contains(c.err, "the matrix product on device 0 has 1 wrong elements")) << c.err;
    EXPECT_TRUE(contains(c.err, "fake cuda: nothing is left")) << c.err;
    EXPECT_EQ(rows(c.out).size(), 0u) << c.out;
}

/* The script that makes the ratios, on two sweeps of two rounds. */
TEST(PerfGpu, RatiosAreOfMediansAndOfTheFasterRegistration)
{
    if (!have_tool("python3"))
        GTEST_SKIP() << "python3 is missing";
    Command c({"sh", "-c",
               "d=$(mktemp -d) && head=op,size_bytes,inplace,time_us\n"
               "row() { printf '%s\\nall_reduce,2048,0,%s\\nall_reduce,2048,1,%s\\n' $head $2 $3 "
               ">$d/gpu-one-graph-$1.csv; }\n"
               "row twill-R0-1 2 3; row twill-R0-2 2 3; row twill-R0-3 90 90\n"
               "row nccl-R0-1 9 9; row nccl-R0-2 9 9; row nccl-R0-3 9 9\n"
               "row nccl-R2-1 5 5; row nccl-R2-2 5 5; row nccl-R2-3 1 1\n"
               "python3 '" SOURCE_DIR "/perf/ratios.py' $d; rc=$?; rm -r $d; exit $rc"});
    EXPECT_EQ(c.finish(), 0) << c.err;
    EXPECT_TRUE(contains(c.out, "## one, graph, twill -R 0")) << c.out;
    EXPECT_TRUE(contains(c.out, "| 2 KiB | **2.50** (2; 5 R2) |")) << c.out;
    EXPECT_TRUE(contains(c.out, "| 2 KiB | 1.50 |")) << c.out;
}

} // namespace
