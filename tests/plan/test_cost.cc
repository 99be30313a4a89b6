// SPDX-License-Identifier: Apache-2.0
// Knows: what small plans cost by hand. Never knows: how the model comes to it.
#include "plan/plans.hh"

extern "C" {
#include "base/log.h"
#include "plan/cost.h"
}

namespace
{

// What is refused is said in a log that nobody wants to see here.
class Cost : public testing::Test
{
  protected:
    void SetUp() override { ASSERT_EQ(tw_log_configure("error", nullptr), TWILL_OK); }
    void TearDown() override { tw_log_configure("warn", nullptr); }
};

const uint64_t kNs = 1000; // in ps

// All zero but the rates, which are 1 GB/s: a byte is a nanosecond.
tw_cost_table byte_is_ns()
{
    tw_cost_table table;
    tw_cost_row row;
    for (uint32_t i = 0; tw_cost_row_get(i, &row); i++)
        table.value[i] = row.unit == TW_COST_UNIT_NS    ? 0
                         : row.unit == TW_COST_UNIT_MBS ? 1000
                                                        : row.most;
    return table;
}

void set(tw_cost_table &table, const char *name, uint64_t value)
{
    uint32_t index = tw_cost_row_find(name);
    ASSERT_NE(index, TW_COST_NONE) << name;
    table.value[index] = value;
}

struct Net {
    tw_cost_net net = {};
    explicit Net(tw_cost_flat flat)
    {
        EXPECT_EQ(tw_cost_flat_open(&flat, &net), TWILL_OK) << tw_fail_text();
    }
    ~Net() { tw_cost_net_close(&net); }
};

tw_cost_flat flat_of(int nranks)
{
    tw_cost_flat flat = {};
    flat.nranks = nranks;
    flat.link = TW_COST_LINK_SHM;
    return flat;
}

Plan parse(const std::string &text)
{
    tw_plan *plan = nullptr;
    EXPECT_EQ(tw_plan_parse(text.data(), text.size(), &plan), TWILL_OK) << tw_fail_text();
    return Plan(plan);
}

tw_cost_call bytes_of(uint64_t count)
{
    tw_cost_call call = {};
    call.count = count;
    call.type_bytes = 1;
    return call;
}

tw_cost_price price_of(const Plan &plan, const tw_cost_flat &flat, const tw_cost_table &table,
                       const tw_cost_call &call)
{
    Net net(flat);
    tw_cost_price price = {};
    EXPECT_EQ(tw_plan_cost(plan.get(), &net.net, &table, &call, &price), TWILL_OK)
        << tw_fail_text();
    return price;
}

uint64_t ns_of(const Plan &plan, const tw_cost_flat &flat, const tw_cost_table &table,
               const tw_cost_call &call)
{
    uint64_t ps = price_of(plan, flat, table, call).time_ps;
    EXPECT_EQ(ps % kNs, 0u);
    return ps / kNs;
}

const char *kSend = "plan send broadcast ranks 2 root 0\n"
                    "facts depth 2 fifos 1 widest 1\n"
                    "part equal groups 1 per 1\n"
                    "rank 0\nlane channel 0\nsend to 1 src in.0[0]\ncopy src in.0[0] dst out.0[0]\n"
                    "rank 1\nlane channel 0\nrecv from 0 dst out.0[0]\n";

TEST_F(Cost, OneMessage)
{
    tw_cost_table table = byte_is_ns();
    set(table, "host.call", 10 * kNs);
    set(table, "host.step", 1 * kNs);
    set(table, "host.send", 2 * kNs);
    set(table, "host.recv", 3 * kNs);
    set(table, "shm.latency", 60 * kNs);
    set(table, "shm.post", 4 * kNs);
    tw_cost_flat flat = flat_of(2);
    flat.latency_ps = 40 * kNs;
    Plan plan = parse(kSend);
    // sent at 10+1+2+4+1000, there 100 later, taken in 1+3+1000; the copy at the root ends before
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(1000)), 2121u);
    // of no byte
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(0)), 121u);
}

TEST_F(Cost, InPlaceTheOwnCopyIsFree)
{
    tw_cost_table table = byte_is_ns();
    Plan plan = gather_plan(2, 1);
    tw_cost_call call = bytes_of(1000);
    EXPECT_EQ(ns_of(plan, flat_of(2), table, call), 3000u);
    call.in_place = true;
    EXPECT_EQ(ns_of(plan, flat_of(2), table, call), 2000u);
}

TEST_F(Cost, RatesOfReduceAndOfPathsBound)
{
    tw_cost_table table = byte_is_ns();
    Plan plan =
        parse("plan add reduce ranks 2 root 1\n"
              "facts depth 1 fifos 1 widest 1\n"
              "part equal groups 1 per 1\n"
              "rank 0\nlane channel 0\nsend to 1 src in.0[0]\n"
              "rank 1\nlane channel 0\nrecv_reduce from 0 src in.0[0] dst out.0[0] final\n");
    tw_cost_flat flat = flat_of(2);
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(1000)), 2000u);
    set(table, "host.reduce.near", 500); // MB/s: 2 ns a byte
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(1000)), 3000u);
    set(table, "shm.rate", 250); // the sender's copy is held up
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(1000)), 6000u);
    flat.bytes_per_s = 200000000; // the path more so
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(1000)), 7000u);
}

TEST_F(Cost, BuffersBeyondCachesPayForTheirShares)
{
    tw_cost_table table = byte_is_ns();
    Plan plan = parse("plan own all_gather ranks 1 root 0\nfacts\npart equal groups 1 per 1\n"
                      "rank 0\nlane channel 0\ncopy src in.0[0] dst out.0[0]\n");
    set(table, "host.near", 1000);
    set(table, "host.mid", 3000);
    set(table, "host.copy.mid", 500);
    set(table, "host.copy.far", 250);
    // buffers of 500+500: all near; 1500+1500: a third near, two thirds mid: (1+2+2)/3 ns a byte
    EXPECT_EQ(ns_of(plan, flat_of(1), table, bytes_of(500)), 500u);
    EXPECT_NEAR((double)price_of(plan, flat_of(1), table, bytes_of(1500)).time_ps, 2500e3, 3);
    // 3000+3000: a sixth near, a third mid, half far
    EXPECT_NEAR((double)price_of(plan, flat_of(1), table, bytes_of(3000)).time_ps, 8500e3, 6);
}

// Slices wait for a free slot: with the receiver four times slower the sender goes at its pace.
TEST_F(Cost, FifosPushBack)
{
    std::string text = "plan many broadcast ranks 2 root 0\nfacts depth 2 fifos 1 widest 1\n"
                       "part equal groups 1 per 8\nrank 0\n";
    std::string sends = "lane channel 0\n", recvs = "rank 1\nlane channel 0\n", own;
    for (int c = 0; c < 8; c++) {
        std::string cell = ".0[" + std::to_string(c) + "]";
        sends += "send to 1 src in" + cell + "\n";
        recvs += "recv from 0 dst out" + cell + "\n";
        own += "copy src in" + cell + " dst out" + cell + "\n";
    }
    tw_cost_table table = byte_is_ns();
    set(table, "host.recv", 300 * kNs);
    set(table, "shm.latency", 50 * kNs);
    // receiver: first message at 150, then 8 * 400 without a gap
    Plan plan = parse(text + sends + recvs);
    EXPECT_EQ(ns_of(plan, flat_of(2), table, bytes_of(800)), 150u + 8 * 400);
    // what the root does afterwards begins when the last slot came free: message 8 is sent into the
    // slot that message 6 gave back at 150 + 6 * 400 + 50
    Plan with_own = parse(text + sends + own + recvs);
    uint64_t last_send = 150 + 6 * 400 + 50 + 100;
    EXPECT_EQ(ns_of(with_own, flat_of(2), table, bytes_of(800)), last_send + 8 * 100);
    // as many slots as messages: nothing holds the root up
    std::string deep = text;
    deep.replace(deep.find("depth 2"), 7, "depth 8");
    set(table, "host.recv", 0);
    EXPECT_EQ(ns_of(parse(deep + sends + own + recvs), flat_of(2), table, bytes_of(800)), 1600u);
}

const char *kChain =
    "plan chain broadcast ranks 3 root 0\nfacts depth 2 slices 4 fifos 1 widest 1\n"
    "part equal groups 1 per 1\n"
    "rank 0\nlane channel 0\nsend to 1 src in.0[0]\n"
    "rank 1\nlane channel 0\nrecv_send from 0 to 2 dst out.0[0] store\n"
    "rank 2\nlane channel 0\nrecv from 1 dst out.0[0]\n";

TEST_F(Cost, SlicesPipelineAndLoopsRepeat)
{
    tw_cost_table table = byte_is_ns();
    set(table, "host.step", 5 * kNs);
    Plan plan = parse(kChain);
    // whole: 1005, 2005 (stores 1000 more, warm), 1005
    EXPECT_EQ(ns_of(plan, flat_of(3), table, bytes_of(1000)), 1005u + 2005 + 1005);
    // four slices of 250: the middle rank is the slowest with 505 a slice
    tw_cost_call call = bytes_of(1000);
    call.shape = {250, 4, 1};
    EXPECT_EQ(ns_of(plan, flat_of(3), table, call), 255u + 4 * 505 + 255);
    // slices that are larger than what there is
    call.shape = {5000, 4, 1};
    uint64_t empty = 3 * 5;
    EXPECT_EQ(ns_of(plan, flat_of(3), table, call), 1005u + 2005 + 1005 + empty);
    // 3 and 100 loops of the same slices: only the middle rank's work grows
    call = bytes_of(3000);
    call.shape = {250, 4, 3};
    EXPECT_EQ(ns_of(plan, flat_of(3), table, call), 255u + 12 * 505 + 255);
    call = bytes_of(100000);
    call.shape = {250, 4, 100};
    EXPECT_EQ(ns_of(plan, flat_of(3), table, call), 255u + 400 * 505 + 255);
}

TEST_F(Cost, DependenciesBySliceAndWhole)
{
    std::string text = "plan dep all_reduce ranks 1 root 0\nfacts slices 2 scratch 2\n"
                       "part equal groups 1 per 1\nrank 0\n"
                       "lane channel 0\ncopy src in.0[0] dst scratch.0[0]\n"
                       "copy src in.0[0] dst scratch.0[0]\n"
                       "lane channel 0\ncopy src in.0[0] dst out.0[0] final after 0:0";
    tw_cost_table table = byte_is_ns();
    tw_cost_flat flat = flat_of(1);
    flat.own_lanes = true;
    tw_cost_call call = bytes_of(200);
    call.shape = {100, 2, 1};
    // lane 0 ends at 400 anyway; lane 1 begins behind its first slice, or behind both
    table.value[tw_cost_row_find("host.call")] = 7 * kNs;
    EXPECT_EQ(ns_of(parse(text), flat, table, call), 407u);
    Plan late = parse(text + " whole\n");
    EXPECT_EQ(ns_of(late, flat, table, call), 407u);
    // with one engine for both lanes the work adds up
    flat.own_lanes = false;
    EXPECT_EQ(ns_of(parse(text), flat, table, call), 607u);
    // a slow second lane shows when it began
    std::string slow = text;
    slow.replace(slow.rfind("copy src"), 8,
                 "copy src in.0[0] dst scratch.0[1] after 0:0\ncopy src");
    flat.own_lanes = true;
    EXPECT_EQ(ns_of(parse(slow), flat, table, call), 7u + 100 + 400);
    slow.replace(slow.find("after 0:0"), 9, "after 0:0 whole");
    EXPECT_EQ(ns_of(parse(slow), flat, table, call), 7u + 200 + 400);
}

TEST_F(Cost, PutsSignalsAndGets)
{
    tw_cost_table table = byte_is_ns();
    set(table, "host.signal", 11 * kNs);
    set(table, "shm.latency", 50 * kNs);
    const std::string head = "plan put all_reduce ranks 2 root 0\n"
                             "facts signals 2 sig_max 1 caps 1 scratch 1\n"
                             "part equal groups 1 per 1\n";
    std::string text = head;
    for (int r = 0; r < 2; r++) {
        std::string me = std::to_string(r), peer = std::to_string(1 - r);
        text += "rank " + me + "\nlane channel 0\nput to " + peer +
                " src in.0[0] dst scratch.0[0]\nsignal to " + peer + " sig " + me +
                ":1\nwait from " + peer + " sig " + peer + ":1\n" +
                "copy src scratch.0[0] dst out.0[0]\n";
    }
    // put 100, signal 11, seen 50 later, wait 11, copy 100
    EXPECT_EQ(ns_of(parse(text), flat_of(2), table, bytes_of(100)), 272u);
    // a get pays the latency itself
    std::string get = "plan get all_reduce ranks 2 root 0\nfacts caps 1 scratch 1\n"
                      "part equal groups 1 per 1\nrank 0\nlane channel 0\n"
                      "get_reduce from 1 src scratch.0[0] dst scratch.0[0]\n"
                      "rank 1\nlane channel 0\ncopy src in.0[0] dst scratch.0[0]\n";
    EXPECT_EQ(ns_of(parse(get), flat_of(2), table, bytes_of(100)), 150u);
    // over a wire the engine hands over and the round trip counts
    tw_cost_flat flat = flat_of(2);
    flat.link = TW_COST_LINK_RDMA;
    set(table, "rdma.latency", 70 * kNs);
    EXPECT_EQ(ns_of(parse(get), flat, table, bytes_of(100)), 100u + 100 + 140);
}

TEST_F(Cost, WiresWorkWhileTheEngineGoesOn)
{
    tw_cost_table table = byte_is_ns();
    tw_cost_flat flat = flat_of(2);
    Plan plan = parse(kSend);
    set(table, "shm.rate", 100);
    set(table, "rdma.rate", 100); // 10 ns a byte
    // by copying: the root's own copy waits for the path
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(100)), 1000u + 100);
    flat.link = TW_COST_LINK_RDMA;
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(100)), 100u + 1000 + 100);
    set(table, "host.recv", 0);
    set(table, "rdma.latency", 5 * kNs);
    set(table, "rdma.post", 3 * kNs);
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(100)), 103u + 1000 + 5 + 100);
}

TEST_F(Cost, RanksThatShareAnEngineTakeTurns)
{
    tw_cost_table table = byte_is_ns();
    Plan plan = parse(kSend);
    tw_cost_flat flat = flat_of(2);
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(1000)), 2000u);
    flat.engines = 1; // send, copy and receive one after another
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(1000)), 3000u);
    set(table, "host.switch", 250 * kNs);
    EXPECT_EQ(ns_of(plan, flat, table, bytes_of(1000)), 3250u);
}

// Rank 0 could take the first message when rank 1 could send the second: rank 1 has the engine and
// goes on, as it would on a CPU that it gives up only when it has to wait.
TEST_F(Cost, ARankKeepsTheEngineThatItHas)
{
    tw_cost_table table = byte_is_ns();
    set(table, "host.switch", 250 * kNs);
    tw_cost_flat flat = flat_of(2);
    flat.engines = 1;
    const std::string text = "plan two broadcast ranks 2 root 1\nfacts depth 2 fifos 1 widest 1\n"
                             "part equal groups 1 per 3\n"
                             "rank 0\nlane channel 0\nrecv from 1 dst out.0[0]\n"
                             "recv from 1 dst out.0[1]\nrecv from 1 dst out.0[2]\n"
                             "rank 1\nlane channel 0\nsend to 0 src in.0[0]\n"
                             "send to 0 src in.0[1]\nsend to 0 src in.0[2]\n";
    // two slots: send, send, switch, receive, receive, switch, send, switch, receive
    EXPECT_EQ(ns_of(parse(text), flat, table, bytes_of(3000)), 6 * 1000u + 3 * 250);
    std::string deep = text;
    deep.replace(deep.find("depth 2"), 7, "depth 3");
    EXPECT_EQ(ns_of(parse(deep), flat, table, bytes_of(3000)), 6 * 1000u + 250);
}

// Two plans that move as much in as many steps: one into two ranks, the other into one.
TEST_F(Cost, ContentionMakesEqualBytesDearer)
{
    auto pairs = [](int a, int b) {
        std::string text =
            "plan pairs reduce ranks 4 root 0\nfacts depth 1 fifos 1 widest 1 scratch 2\n"
            "part equal groups 1 per 1\n";
        for (int r = 0; r < 4; r++) {
            text += "rank " + std::to_string(r) + "\n";
            if (r >= 2)
                text +=
                    "lane channel 0\nsend to " + std::to_string(r == 2 ? a : b) + " src in.0[0]\n";
            for (int peer = 2; peer < 4; peer++)
                if ((peer == 2 ? a : b) == r)
                    text += "lane channel 0\nrecv from " + std::to_string(peer) +
                            " dst scratch.0[" + std::to_string(peer - 2) + "]\n";
        }
        return parse(text);
    };
    tw_cost_table table = byte_is_ns();
    set(table, "rdma.rate", 100000000);
    tw_cost_flat flat = flat_of(4);
    flat.own_lanes = true;
    flat.link = TW_COST_LINK_RDMA;
    flat.port_bytes_per_s = 500000000; // 2 ns a byte
    Plan apart = pairs(0, 1), together = pairs(0, 0);
    EXPECT_EQ(ns_of(apart, flat, table, bytes_of(1000)), 1000u + 2000 + 1000);
    EXPECT_EQ(ns_of(together, flat, table, bytes_of(1000)), 1000u + 4000 + 1000);
    tw_cost_price price = price_of(together, flat, table, bytes_of(1000));
    EXPECT_EQ(price.limit, TW_COST_BY_RESOURCE);
    EXPECT_EQ(price.busy_permille, 666u);
    Net net(flat);
    char name[64];
    tw_cost_limit_name(&net.net, &price, name, sizeof(name));
    EXPECT_STREQ(name, "port into of rank 0");
    // what all share makes them equal again
    flat.port_bytes_per_s = 0;
    flat.shared_bytes_per_s = 500000000;
    EXPECT_EQ(ns_of(apart, flat, table, bytes_of(1000)), 1000u + 4000 + 1000);
    EXPECT_EQ(ns_of(together, flat, table, bytes_of(1000)), 1000u + 4000 + 1000);
}

TEST_F(Cost, LimitIsNamed)
{
    tw_cost_table table = byte_is_ns();
    tw_cost_flat flat = flat_of(2);
    Plan plan = parse(kSend);
    char name[64];
    flat.latency_ps = 100000 * kNs;
    Net net(flat);
    tw_cost_price price = price_of(plan, flat, table, bytes_of(10));
    EXPECT_EQ(price.limit, TW_COST_BY_LATENCY);
    tw_cost_limit_name(&net.net, &price, name, sizeof(name));
    EXPECT_STREQ(name, "latency");
    flat.latency_ps = 0;
    price = price_of(plan, flat, table, bytes_of(10));
    EXPECT_EQ(price.busy_permille, 1000u);
    tw_cost_limit_name(&net.net, &price, name, sizeof(name));
    EXPECT_STREQ(name, "engine 0");
    EXPECT_EQ(price.slices, 3u);
}

TEST_F(Cost, RanksOneByOneCostTheSame)
{
    tw_cost_table table;
    tw_cost_table_default(&table);
    tw_cost_flat flat = flat_of(5);
    flat.engines = 2;
    Net net(flat);
    tw_cost_call call = bytes_of(12345);
    tw_cost_price whole = {}, parts = {};
    Plan plan = gather_plan(5, 3);
    ASSERT_EQ(tw_plan_cost(plan.get(), &net.net, &table, &call, &whole), TWILL_OK);
    tw_cost_prog *prog = nullptr;
    for (int r = 0; r < 5; r++) {
        Plan one = gather_plan(5, 3, r);
        one->depth = plan->depth;
        one->widest = plan->widest;
        if (!prog) {
            ASSERT_EQ(tw_cost_prog_create(one.get(), &net.net, &prog), TWILL_OK);
            EXPECT_EQ(tw_cost_prog_price(prog, &table, &call, &parts), TWILL_ERR_INVALID);
            EXPECT_NE(strstr(tw_fail_text(), "programs of 5 ranks are missing"), nullptr);
        }
        ASSERT_EQ(tw_cost_prog_add(prog, one.get()), TWILL_OK) << tw_fail_text();
        EXPECT_EQ(tw_cost_prog_add(prog, one.get()), TWILL_ERR_INVALID);
    }
    ASSERT_EQ(tw_cost_prog_price(prog, &table, &call, &parts), TWILL_OK);
    EXPECT_EQ(whole.time_ps, parts.time_ps);
    // and again from the same program
    ASSERT_EQ(tw_cost_prog_price(prog, &table, &call, &parts), TWILL_OK);
    EXPECT_EQ(whole.time_ps, parts.time_ps);
    tw_cost_prog_destroy(prog);
}

TEST_F(Cost, MoreBytesAndSlowerPartsNeverCostLess)
{
    tw_cost_table table;
    tw_cost_table_default(&table);
    tw_cost_flat flat = flat_of(6);
    flat.shared_bytes_per_s = 30000000000u;
    Plan plan = gather_plan(6, 2);
    uint64_t last = 0;
    for (uint64_t bytes = 1; bytes <= 1u << 30; bytes *= 2) {
        uint64_t ps = price_of(plan, flat, table, bytes_of(bytes)).time_ps;
        EXPECT_GE(ps, last) << bytes;
        last = ps;
    }
    tw_cost_row row;
    uint64_t base = price_of(plan, flat, table, bytes_of(1 << 20)).time_ps;
    for (uint32_t i = 0; tw_cost_row_get(i, &row); i++) {
        tw_cost_table slow = table;
        slow.value[i] = row.unit == TW_COST_UNIT_NS ? 3 * slow.value[i] + 1000 : slow.value[i] / 3;
        EXPECT_GE(price_of(plan, flat, slow, bytes_of(1 << 20)).time_ps, base) << row.name;
    }
}

void refused(const Plan &plan, const tw_cost_call &call, const char *why)
{
    tw_cost_table table = byte_is_ns();
    Net net(flat_of(plan->nranks));
    tw_cost_price price = {};
    price.time_ps = 42;
    EXPECT_EQ(tw_plan_cost(plan.get(), &net.net, &table, &call, &price), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), why), nullptr) << tw_fail_text();
    EXPECT_EQ(price.time_ps, 42u);
}

TEST_F(Cost, AbsurdCallsAndPlansThatBlockAreErrors)
{
    Plan plan = parse(kChain);
    tw_cost_call call = bytes_of(UINT64_MAX);
    refused(plan, call, "too large");
    call = bytes_of(8);
    call.type_bytes = 0;
    refused(plan, call, "elements of 0 bytes");
    call = bytes_of(8);
    call.shape = {4, 0, 1};
    refused(plan, call, "make no sense");
    call.shape = {4, 1, UINT64_MAX};
    refused(plan, call, "make no sense");
    std::string text = kChain;
    text.resize(text.find("rank 0")); // nobody sends
    text += std::string(strstr(kChain, "rank 1"));
    refused(parse(text), bytes_of(8), "rank 1 lane 0 step 0 waits for ever for a message");
    Plan waits = parse("plan wait barrier ranks 2 root 0\nfacts signals 1 sig_max 2\n"
                       "rank 0\nlane channel 0\nsignal to 1 sig 0:1\n"
                       "rank 1\nlane channel 0\nwait from 0 sig 0:2\n");
    refused(waits, bytes_of(0), "rank 1 waits for signal 0 to be 2, which nobody raises");
    std::string full = "plan full broadcast ranks 2 root 0\nfacts depth 1 fifos 1 widest 1\n"
                       "part equal groups 1 per 1\nrank 0\nlane channel 0\n";
    for (int i = 0; i < 3; i++)
        full += "send to 1 src in.0[0]\n";
    refused(parse(full), bytes_of(8), "rank 0 lane 0 step 2 waits for ever for a free slot");
    Net wrong(flat_of(4));
    tw_cost_prog *prog = nullptr;
    EXPECT_EQ(tw_cost_prog_create(plan.get(), &wrong.net, &prog), TWILL_ERR_INVALID);
    tw_cost_flat flat = flat_of(0);
    EXPECT_EQ(tw_cost_flat_open(&flat, &wrong.net), TWILL_ERR_INVALID);
}

} // namespace
