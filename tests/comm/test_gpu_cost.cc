/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that calls on devices are chosen and predicted by the table of costs, alike on all ranks.
 * Never knows: what kernels do. */
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "gpu_ranks.h"

namespace
{

constexpr size_t MIB = (size_t)1 << 20;

class GpuCost : public GpuRanks
{
  protected:
    void TearDown() override
    {
        GpuRanks::TearDown();
        if (!path_.empty())
            (void)remove(path_.c_str());
    }
    /* A file with these rows; the others as built in. */
    std::string file(const std::string &rows)
    {
        path_ = "/tmp/twill-gpu-cost-" + std::to_string(getpid());
        std::ofstream(path_) << "twill-cost 1\n" << rows;
        return path_;
    }
    void begin(const std::vector<int> &devices, const std::string &rows,
               std::vector<std::pair<std::string, std::string>> params = {},
               const struct twill_config *config = nullptr)
    {
        destroy();
        params.emplace_back("COST_FILE", file(rows));
        make(devices, params, config);
    }
    struct twill_choice choice(const std::string &coll, size_t bytes, int rank = 0)
    {
        struct twill_choice choice = TWILL_CHOICE_INIT;
        EXPECT_EQ(
            twill_comm_choice(comms_[(size_t)rank], coll.c_str(), bytes, TWILL_INT8, 0, &choice),
            TWILL_OK)
            << twill_last_error(comms_[(size_t)rank]);
        return choice;
    }
    std::string proto(const std::string &coll, size_t bytes, int rank = 0)
    {
        return choice(coll, bytes, rank).proto;
    }
    template <class Calls> double simulated(const Calls &calls)
    {
        struct twill_simulation simulation = TWILL_SIMULATION_INIT;
        EXPECT_EQ(twill_group_start(), TWILL_OK);
        calls();
        EXPECT_EQ(twill_group_simulate_end(&simulation), TWILL_OK) << twill_last_error(nullptr);
        return simulation.predicted_us;
    }

  private:
    std::string path_;
};

const char *const colls[] = {"all_reduce", "reduce",    "reduce_scatter", "all_gather",
                             "all_to_all", "broadcast", "gather",         "scatter"};

/* Rows that leave one protocol as the cheapest by far. */
std::string only(const std::string &proto)
{
    std::string rows;
    for (const char *name : {"lines", "rings", "reads", "writes", "copies"}) {
        const std::string row = std::string("cuda.") + name;
        rows += row + (proto == name ? ".start 1\n" : ".start 900000000\n");
        if (proto == name)
            rows += row + ".rate 90000000\n";
    }
    return rows;
}

/* Of two devices on NVLink 4, as measured. */
TEST_F(GpuCost, WhatIsBuiltIn)
{
    begin({0, 1}, "");
    for (const char *coll : colls)
        for (size_t bytes : {(size_t)1, (size_t)1000, MIB / 4, MIB / 2})
            EXPECT_EQ(proto(coll, bytes), "lines") << coll << " " << bytes;
    for (const char *coll : colls)
        EXPECT_NE(proto(coll, MIB / 2 + 1), "lines") << coll << ": there is no room";
    EXPECT_EQ(proto("all_gather", 32 * MIB), "rings");
    EXPECT_EQ(proto("all_gather", 64 * MIB), "copy");
    EXPECT_EQ(proto("all_reduce", 32 * MIB), "direct");
    /* perf/results/2026-11-30-gpu-third.md, one process */
    const struct {
        const char *coll;
        size_t bytes;
        double us;
    } measured[] = {{"all_reduce", 8, 2.72},           {"all_reduce", 32 << 10, 3.59},
                    {"all_reduce", 512 << 10, 7.8},    {"all_gather", 256 << 10, 4.45},
                    {"all_reduce", 8 * MIB, 31.9},     {"reduce_scatter", 4 * MIB, 20.4},
                    {"reduce_scatter", 64 * MIB, 209}, {"all_gather", 4 * MIB, 18.0},
                    {"all_gather", 64 * MIB, 193},     {"all_gather", 512 * MIB, 1394},
                    {"all_to_all", 4 * MIB, 18.2},     {"all_reduce", 128 * MIB, 378}};
    for (const auto &one : measured)
        EXPECT_NEAR(choice(one.coll, one.bytes).predicted_us / one.us, 1, 0.15)
            << one.coll << " " << one.bytes;
}

TEST_F(GpuCost, PredictsByTheRows)
{
    const std::string rows = "cuda.rings.start 900000000\ncuda.writes.start 900000000\n"
                             "cuda.lines.start 1000\ncuda.lines.rate 1000\ncuda.lines.block 400\n"
                             "cuda.reads.start 2000\ncuda.reads.rate 100\n";
    begin({0, 1}, rows);
    EXPECT_NEAR(choice("all_gather", 1000).predicted_us, 1 + 1000 / 400.0, 0.01);
    EXPECT_NEAR(choice("all_gather", 40000).predicted_us, 1 + 40000 / 1000.0, 0.01);
    begin({0, 1, 2, 3}, rows);
    EXPECT_NEAR(choice("all_gather", 1000).predicted_us, 1 + 3000 / 1000.0, 0.01);
    EXPECT_NEAR(choice("all_reduce", 4 * MIB).predicted_us, 2 + 1.5 * 4 * (double)MIB / 100, 0.01);
}

TEST_F(GpuCost, BordersMoveWithTheRows)
{
    /* lines 1 + B / 1000, reads 3 + B / 2000 of an all_reduce of two: even at 4000 bytes */
    const std::string rows = "cuda.lines.start 1000\ncuda.lines.rate 1000\ncuda.lines.block 90000\n"
                             "cuda.rings.start 900000000\n"
                             "cuda.reads.start 3000\ncuda.reads.block 90000\ncuda.reads.rate ";
    begin({0, 1}, rows + "2000\n");
    EXPECT_EQ(proto("all_reduce", 4000), "lines");
    EXPECT_EQ(proto("all_reduce", 4002), "direct");
    /* 3 + B / 1250: at 10000 */
    begin({0, 1}, rows + "1250\n");
    EXPECT_EQ(proto("all_reduce", 10000), "lines");
    EXPECT_EQ(proto("all_reduce", 10002), "direct");
    /* of 4 ranks: 1 + 3 B / 1000, 3 + 1.5 B / 1250: at 1111 */
    begin({0, 1, 2, 3}, rows + "1250\n");
    EXPECT_EQ(proto("all_reduce", 1108), "lines");
    EXPECT_EQ(proto("all_reduce", 1116), "direct");
    EXPECT_EQ(proto("barrier", 0), "lines");
}

TEST_F(GpuCost, OneProtocolForWhateverItServes)
{
    const struct {
        const char *name, *sums, *moves; /* NULL: it serves none of these */
    } all[] = {{"lines", "lines", "lines"},
               {"rings", "rings", nullptr}, /* in one process there are outputs to write to */
               {"reads", "direct", nullptr},
               {"writes", nullptr, "rings"},
               {"copies", nullptr, nullptr}};
    for (const auto &one : all) {
        const std::string name = one.name;
        begin({0, 1}, only(name));
        for (size_t bytes : {(size_t)8, (size_t)4096, 300 * (size_t)1024}) {
            if (one.sums != nullptr) {
                EXPECT_EQ(proto("all_reduce", bytes), one.sums) << name << " " << bytes;
                EXPECT_EQ(proto("reduce_scatter", bytes), one.sums) << name << " " << bytes;
            }
            if (one.moves != nullptr) {
                EXPECT_EQ(proto("all_gather", bytes), one.moves) << name << " " << bytes;
            }
        }
        if (name == "writes" || name == "copies") {
            EXPECT_EQ(proto("broadcast", MIB), name == "copies" ? "copy" : "rings");
            EXPECT_EQ(proto("all_to_all", 128 * MIB), name == "copies" ? "copy" : "rings");
        }
        EXPECT_EQ(proto("reduce", 128 * MIB), name == "rings" ? "rings" : "direct");
    }
}

TEST_F(GpuCost, CopiesWhereTheyAreTheCheaperOnes)
{
    /* writes 10 + B / 1000, copies 20 + B / 2000: even at 20000, which lines have no part in */
    begin({0, 1}, "cuda.lines.start 1000000\ncuda.writes.start 10000\ncuda.writes.rate 1000\n"
                  "cuda.copies.start 1000000\ncuda.copies.rate 2000\n");
    EXPECT_EQ(gpu(0)->copy_from, (uint64_t)(2 * 990000));
    EXPECT_EQ(proto("all_gather", 2 * 990000), "copy");
    EXPECT_EQ(proto("all_gather", 2 * 990000 - 1), "rings");
    EXPECT_EQ(gpu(0)->copy_far_from, (uint64_t)19100 - 10 * 1000 + 23 + 1)
        << "19.1 + B / 390000 against 10 + B / 1000";
    begin({0, 1}, "cuda.copies.rate 1000\n");
    EXPECT_EQ(gpu(0)->copy_from, UINT64_MAX) << "never";
    begin({0, 1}, "cuda.copies.rate 1000\n", {{"COPY_ENGINE", "2M"}});
    EXPECT_EQ(proto("all_gather", 2 * MIB), "copy") << "whoever asks for it has it";
}

TEST_F(GpuCost, BlocksAsTheRowsSay)
{
    begin({0, 1}, "cuda.writes.grain 1048576\ncuda.writes.blocks 7\ncuda.lines.grain 1024\n",
          {{"COPY_ENGINE", "off"}});
    EXPECT_EQ(choice("all_gather", MIB).channels, 1);
    EXPECT_EQ(choice("all_gather", MIB + 1).channels, 2);
    EXPECT_EQ(choice("all_gather", 32 * MIB).channels, 7);
    EXPECT_EQ(choice("all_gather", 8192).channels, 8) << "of 128 threads";
    struct twill_config config = TWILL_CONFIG_INIT;
    config.max_sms = 3;
    begin({0, 1}, "cuda.writes.start 6000\ncuda.writes.rate 1000\ncuda.writes.block 100\n",
          {{"COPY_ENGINE", "off"}}, &config);
    EXPECT_EQ(choice("all_gather", 4 * MIB).channels, 3);
    EXPECT_NEAR(choice("all_gather", 4 * MIB).predicted_us, 6 + 4 * (double)MIB / 300, 0.1)
        << "and a bound has its price";
}

TEST_F(GpuCost, DevicesThatDoNotReachEachOther)
{
    begin({0, 1},
          "pinned.lines.start 2000\npinned.lines.rate 100\npinned.lines.block 100\n"
          "pinned.rings.start 40000\npinned.rings.rate 24000\n",
          {{"P2P", "0"}});
    EXPECT_EQ(proto("all_reduce", 1000), "lines");
    EXPECT_NEAR(choice("all_reduce", 1000).predicted_us, 12, 0.01);
    EXPECT_EQ(proto("all_reduce", MIB), "rings");
    EXPECT_NEAR(choice("all_reduce", MIB).predicted_us, 40 + (double)MIB / 24000, 0.1);
}

TEST_F(GpuCost, AllRanksChooseAlike)
{
    for (const char *rows :
         {"", "cuda.lines.rate 100\n", "cuda.reads.start 1\ncuda.copies.start 0\n"})
        for (const std::vector<int> &devices :
             std::vector<std::vector<int>>{{0, 1}, {0, 1, 1, 2, 0}}) {
            begin(devices, rows);
            for (const char *coll : colls)
                for (size_t bytes = 1; bytes < (size_t)1 << 36; bytes = bytes * 5 + 3)
                    for (int rank = 1; rank < (int)devices.size(); rank++) {
                        const struct twill_choice a = choice(coll, bytes),
                                                  b = choice(coll, bytes, rank);
                        ASSERT_STREQ(a.proto, b.proto) << coll << " " << bytes;
                        ASSERT_EQ(a.channels, b.channels) << coll << " " << bytes;
                        ASSERT_EQ(a.predicted_us, b.predicted_us) << coll << " " << bytes;
                    }
        }
}

TEST_F(GpuCost, GroupsAreSimulated)
{
    begin({0, 1}, "cuda.writes.start 6000\ncuda.writes.rate 328000\n");
    char *at = buffer(0, MIB);
    const double one = choice("all_reduce", 4000).predicted_us;
    ASSERT_GT(one, 0);
    EXPECT_NEAR(
        simulated([&] {
            for (int i = 0; i < 3; i++)
                EXPECT_EQ(twill_all_reduce(at, at, 4000, TWILL_INT8, TWILL_SUM, comms_[0], nullptr),
                          TWILL_OK);
        }),
        3 * one, 1e-6)
        << "kernels are not joined";
    EXPECT_NEAR(simulated([&] {
                    EXPECT_EQ(twill_send(at, MIB, TWILL_INT8, 1, comms_[0], nullptr), TWILL_OK);
                    EXPECT_EQ(twill_recv(at, MIB, TWILL_INT8, 1, comms_[0], nullptr), TWILL_OK);
                }),
                6 + (double)MIB / 328000, 0.1);
    EXPECT_TRUE(fake::launches().empty()) << "nothing ran";
    begin({0, 1}, "", {{"ALGO", "all_reduce=ring"}});
    struct twill_simulation simulation = TWILL_SIMULATION_INIT;
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    EXPECT_EQ(sum(0, nullptr), TWILL_OK);
    EXPECT_EQ(twill_group_simulate_end(&simulation), TWILL_ERR_UNSUPPORTED);
    EXPECT_EQ(choice("all_reduce", 4).predicted_us, 0) << "of a plan";
}

} // namespace
