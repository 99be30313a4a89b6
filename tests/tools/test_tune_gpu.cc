/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-tune promises of calls on devices, by sweeps that are made up. Never knows: the
 * fit, devices. */
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "command.h"

namespace
{

const char *kTune = BUILD_DIR "/tools/twill-tune";
const char kHead[] =
    "op,size_bytes,count,type,redop,root,inplace,time_us,time_us_min,time_us_median,"
    "time_us_p99,time_us_max,algbw_gbs,busbw_gbs,wrong,algo,proto,channels,lib\n";

using Words = std::vector<std::string>;

class TuneGpu : public testing::Test
{
  protected:
    std::string folder_;

    void SetUp() override
    {
        char name[] = "/tmp/twill-tune-test-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string file(const std::string &name, const std::string &text)
    {
        std::ofstream(folder_ + "/" + name) << text;
        return folder_ + "/" + name;
    }
    static std::string row(const std::string &op, uint64_t bytes, const std::string &proto,
                           int blocks, double us, int in_place = 0)
    {
        std::ostringstream line;
        line << op << "," << bytes << "," << bytes / 4 << ",float,sum,-1," << in_place << "," << us
             << "," << us << ",0,0,0,1,1,,any," << proto << "," << blocks << ",twill\n";
        return line.str();
    }
    static double value(const std::string &table, const std::string &row)
    {
        const size_t at = table.find("\n" + row + " ");
        EXPECT_NE(at, std::string::npos) << row << " in " << table;
        return at == std::string::npos ? 0 : strtod(table.c_str() + at + row.size() + 1, nullptr);
    }
};

/* Two ranks: reads of 7 us and 300 GB/s, of which a block does 15; lines of 3 us, 100 and 2; moves
 * right into outputs of 5 us and 280; copies of 12 us and 380. */
TEST_F(TuneGpu, FindsTheRowsThatTimesAreOf)
{
    std::string csv = kHead;
    for (uint64_t bytes = 64; bytes <= (uint64_t)256 << 20; bytes *= 4) {
        const double b = (double)bytes;
        for (int blocks : {4, 64}) {
            const double rate = std::min(300e3, blocks * 15e3);
            csv += row("reduce_scatter", bytes, "direct", blocks, 7 + b / rate);
            csv += row("all_reduce", bytes, "direct", blocks, 7 + b / rate);
            csv += row("all_reduce", bytes, "direct", blocks, 900, 1); /* in place */
        }
        csv += row("all_gather", bytes, "rings", 64, 5 + b / 280e3);
        csv += row("all_gather", bytes, "copy", 1, 12 + b / 380e3);
        csv += row("all_reduce", bytes, "rings", 64, 3000); /* half of it is not by rings */
        if (bytes <= 512 << 10) {
            const int blocks = (int)((bytes + 3839) / 3840);
            csv += row("all_reduce", bytes, "lines", blocks, 3 + b / std::min(100e3, blocks * 2e3));
        }
    }
    csv += row("all_gather_v", 4096, "rings", 64, 1e6) + "send_recv,8,2,float,none,-1,0,1,1,1,1,1,"
                                                         "1,1,,,,,twill\n";
    const std::string fit = folder_ + "/fit";
    Command c({kTune, "--device", "cuda", "-o", fit, "--from", file("a.csv", csv) + ":2"});
    ASSERT_EQ(c.finish(), 0) << c.err;
    EXPECT_TRUE(contains(c.err, "cuda.rings: not measured, rows as they were\n")) << c.err;
    EXPECT_TRUE(contains(c.err, "cuda.reads: 48 cases, median error 0.")) << c.err;
    std::ifstream in(fit);
    const std::string table((std::istreambuf_iterator<char>(in)), {});
    const struct {
        const char *row;
        double value, within;
    } wanted[] = {{"cuda.reads.start", 7000, 0.03},   {"cuda.reads.rate", 300000, 0.03},
                  {"cuda.reads.block", 15000, 0.03},  {"cuda.lines.start", 3000, 0.03},
                  {"cuda.lines.rate", 100000, 0.15},  {"cuda.lines.block", 2000, 0.05},
                  {"cuda.writes.start", 5000, 0.03},  {"cuda.writes.rate", 280000, 0.03},
                  {"cuda.copies.start", 12000, 0.03}, {"cuda.copies.rate", 380000, 0.03},
                  {"cuda.rings.start", 7100, 0},      {"cuda.reads.grain", 8192, 0},
                  {"pinned.lines.start", 5270, 0}};
    for (const auto &one : wanted)
        EXPECT_NEAR(value(table, one.row), one.value, one.within * one.value) << one.row;
    EXPECT_FALSE(contains(table, "host.step")) << "what is measured at init counts";
    Command again({BUILD_DIR "/tools/twill-sim", "--cost", fit, "--print-cost"});
    EXPECT_EQ(again.finish(), 0) << "the library takes it: " << again.err;
}

TEST_F(TuneGpu, KeepsWhatTheFileSaysThatItBeginsWith)
{
    const std::string csv = kHead + row("all_reduce", 64, "lines", 1, 3);
    const std::string cost = file("cost", "twill-cost 1\nhost.step 77\ncuda.far-copies.rate 5\n");
    Command c({kTune, "--device", "cuda", "--cost", cost, "--from", file("a.csv", csv) + ":2"});
    ASSERT_EQ(c.finish(), 0) << c.err;
    EXPECT_EQ(value(c.out, "host.step"), 77) << c.out;
    EXPECT_EQ(value(c.out, "cuda.far-copies.rate"), 5) << c.out;
    EXPECT_FALSE(contains(c.out, "host.recv")) << c.out;
}

/* A sweep's rows say what ran: a program that goes by the file that it is given. */
const char kPerf[] = R"(#!/bin/sh
ops=
for word; do case $word in -*) break ;; esac; ops="$ops $word"; done
while [ $# -gt 0 ]; do
    case $1 in --csv) csv=$2 ;; --max-sms) sms=$2 ;; -g) g=$2 ;; esac
    shift
done
free=$(awk '$2 == "1.000" { print $1 }' "$TWILL_COST_FILE")
echo "perf:$ops on $g bound $sms: $free P2P=$TWILL_P2P copies=$TWILL_COPY_ENGINE" >&2
case $free in *lines*) proto=lines ;; *reads*) proto=direct ;; *copies*) proto=copy ;; *) proto=rings ;; esac
[ "$sms" = 0 ] && sms=64
HEAD
for op in $ops; do
    for k in 1 4 16 64 256; do
        us=$(awk "BEGIN { print 9 + $k * 4096 / 50000 }")
        echo "$op,1,$((k * 1024)),float,sum,-1,0,$us,$us,0,0,0,1,1,,any,$proto,$sms,twill" >>"$csv"
    done
done
)";

class TuneGpuMeasures : public TuneGpu
{
  protected:
    std::string perf(const std::string &last = "")
    {
        std::string text = kPerf;
        const std::string head(kHead, sizeof kHead - 2);
        text.replace(text.find("HEAD"), 4, "echo " + head + " >\"$csv\"");
        const std::string made = file("perf", text + last);
        EXPECT_EQ(chmod(made.c_str(), 0700), 0);
        return made;
    }
};

TEST_F(TuneGpuMeasures, EveryProtocolInTurn)
{
    Command c({kTune, "--device", "cuda", "-n", "2", "--rounds", "2", "--perf", perf()}, "",
              {"TMPDIR=" + folder_, "TWILL_ALGO=ring", "TWILL_COPY_ENGINE=off"});
    ASSERT_EQ(c.finish(), 0) << c.err;
    for (const char *said :
         {"perf: all_reduce all_gather reduce_scatter on 2 bound 0: cuda.lines.start P2P=1",
          "perf: reduce_scatter reduce on 2 bound 16: cuda.rings.start P2P=1",
          "perf: all_reduce reduce_scatter on 2 bound 4: cuda.reads.start P2P=1",
          "perf: all_gather all_to_all broadcast on 2 bound 0: cuda.writes.start P2P=1",
          "perf: all_gather all_to_all on 2 bound 0: cuda.copies.start P2P=1 copies=auto",
          "perf: all_reduce all_gather on 2 bound 0: pinned.lines.start P2P=0",
          "perf: reduce_scatter all_gather on 2 bound 4: pinned.rings.start P2P=0",
          "round 2 of 2, 2 devices, rings of pinned memory, bound 4",
          "cuda.far-copies: not measured"})
        EXPECT_TRUE(contains(c.err, said)) << said << " in " << c.err;
    for (const char *proto : {"cuda.lines", "cuda.rings", "cuda.reads", "cuda.writes",
                              "cuda.copies", "pinned.lines", "pinned.rings"}) {
        EXPECT_NEAR(value(c.out, std::string(proto) + ".start"), 9000, 900) << proto << c.out;
    }
    for (const auto &left : std::filesystem::directory_iterator(folder_))
        EXPECT_EQ(left.path().filename(), "perf") << "what it has made is gone";
}

TEST_F(TuneGpuMeasures, AnErrorIsAnError)
{
    Command failing({kTune, "--quiet", "--device", "cuda", "-n", "2", "--perf", perf("exit 7\n")},
                    "", {"TMPDIR=" + folder_});
    EXPECT_EQ(failing.finish(), 3);
    EXPECT_TRUE(contains(failing.err, "perf ended with status 7")) << failing.err;
    EXPECT_EQ(failing.out, "") << "no table";
    /* nothing that it measured was of a call on devices */
    Command empty({kTune, "--device", "cuda", "--from", file("empty.csv", kHead) + ":2"});
    EXPECT_EQ(empty.finish(), 3);
    EXPECT_TRUE(contains(empty.err, "no row was measured of a call on devices")) << empty.err;
}

TEST_F(TuneGpu, WhatIsWrongIsSaid)
{
    const std::string one = kHead + row("all_reduce", 64, "lines", 1, 3);
    const std::string bad = kHead + row("all_reduce", 64, "lines", 0, 3);
    const struct {
        Words argv;
        int status;
        const char *why;
    } cases[] = {
        {{"--device", "gpu"}, 2, "--device takes host or cuda, not 'gpu'"},
        {{"--device", "cuda", "-n", "2,4"}, 2, "-n takes one number"},
        {{"--device", "cuda", "--algo", "ring"}, 2, "are of the host"},
        {{"--device", "cuda", "--from", file("bad.csv", bad) + ":2"},
         3,
         "bad.csv:2: the channels makes no sense"},
        {{"--device", "cuda", "--from", file("none.csv", "a,b\n") + ":2"},
         3,
         "none.csv:1: no column"},
        {{"--device", "cuda", "--from", folder_ + "/missing:2"}, 3, "cannot open"},
        {{"--device", "cuda", "-o", "/nowhere/cost", "--from", file("one.csv", one) + ":2"},
         3,
         "cannot write cost table /nowhere/cost"},
    };
    for (const auto &c : cases) {
        Words argv = {kTune};
        argv.insert(argv.end(), c.argv.begin(), c.argv.end());
        Command command(argv);
        EXPECT_EQ(command.finish(), c.status) << c.why << ": " << command.err;
        EXPECT_TRUE(contains(command.err, c.why)) << c.why << ": " << command.err;
    }
}

/* Where there are devices, none of them is seen. */
TEST_F(TuneGpu, WithoutDevicesItSaysSo)
{
    Command c({kTune, "--device", "cuda"}, "", {"CUDA_VISIBLE_DEVICES="});
    EXPECT_EQ(c.finish(), 3);
    EXPECT_TRUE(contains(c.err, "twill-tune: ")) << c.err;
    EXPECT_TRUE(contains(c.err, "CUDA")) << c.err;
    EXPECT_EQ(c.out, "");
}

} // namespace
