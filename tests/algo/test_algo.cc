// SPDX-License-Identifier: Apache-2.0
// Knows: what the registry promises. Never knows: how an algorithm keeps it.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "algo/cases.hh"

TEST(Algo, NamesAreUniqueAndFound)
{
    std::set<std::string> names;
    for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++) {
        EXPECT_TRUE(names.insert(algo->name).second) << algo->name;
        EXPECT_GT(strlen(algo->source), 4u);
        EXPECT_EQ(algo->deterministic & ~algo->colls, 0u) << algo->name;
        for (int c = 0; c < TW_COLL_COUNT; c++) {
            const tw_algo *found = tw_algo_find(algo->name, (tw_coll)c);
            EXPECT_EQ(found, algo->colls >> c & 1 ? algo : nullptr) << algo->name << " " << c;
        }
    }
    EXPECT_EQ(names.size(), 21u);
    EXPECT_EQ(tw_algo_at(names.size()), nullptr);
    EXPECT_EQ(tw_algo_find("no_such", TW_COLL_ALL_REDUCE), nullptr);
    EXPECT_EQ(tw_algo_find("ring", TW_COLL_COUNT), nullptr);
}

TEST(Algo, RefusesWhatItDoesNotServe)
{
    for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++)
        for (int c = 0; c < TW_COLL_COUNT; c++)
            for (int nranks : {1, 3, 4}) {
                tw_plan *plan = nullptr;
                tw_algo_args args = {(tw_coll)c, nranks, 0, -1, 1, 0};
                twill_status status = algo->generate(&args, &plan);
                EXPECT_EQ(status, algo->colls >> c & 1 ? TWILL_OK : TWILL_ERR_INVALID)
                    << algo->name << " " << c;
                EXPECT_EQ(plan != nullptr, status == TWILL_OK);
                EXPECT_EQ(plan && plan->deterministic, (algo->deterministic >> c & 1) != 0)
                    << algo->name << " " << c;
                tw_plan_destroy(plan);
            }
}

TEST(Algo, RefusesNonsense)
{
    tw_plan *plan = nullptr;
    for (tw_algo_args args : {tw_algo_args{TW_COLL_ALL_REDUCE, 0, 0, -1, 1, 0},
                              tw_algo_args{TW_COLL_ALL_REDUCE, -4, 0, -1, 1, 0},
                              tw_algo_args{TW_COLL_ALL_REDUCE, 4, 4, -1, 1, 0},
                              tw_algo_args{TW_COLL_ALL_REDUCE, 4, 0, 4, 1, 0},
                              tw_algo_args{TW_COLL_ALL_REDUCE, 1 << 30, 0, 0, 1, 0}})
        for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++)
            EXPECT_EQ(algo->generate(&args, &plan), TWILL_ERR_INVALID) << algo->name;
    EXPECT_EQ(plan, nullptr);
}

// Every reduction has a deterministic form, for every call.
TEST(Algo, EveryReductionHasAnOrderedForm)
{
    for (int c = 0; c < TW_COLL_COUNT; c++) {
        bool found = false;
        for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++)
            found = found || (algo->deterministic >> c & 1 && !algo->caps);
        EXPECT_EQ(found, contract::reduces(c)) << c;
    }
}

// A parameter that is no sense is refused, one that is larger than the job is cut down.
TEST(Algo, ParametersAreBounded)
{
    for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++)
        for (int c = 0; c < TW_COLL_COUNT; c++)
            for (uint32_t param : {1u, 1000000u, ~0u}) {
                if (!(algo->colls >> c & 1))
                    continue;
                tw_plan *plan = nullptr;
                tw_algo_args args = {(tw_coll)c, 6, 0, -1, 1, param};
                bool refused = param == 1 && algo->param && !strcmp(algo->param->name, "radix");
                EXPECT_EQ(algo->generate(&args, &plan), refused ? TWILL_ERR_INVALID : TWILL_OK)
                    << algo->name << " " << param;
                tw_plan_destroy(plan);
            }
}

// docs/algorithms.md speaks of every one.
TEST(Algo, AreDocumented)
{
    const char *folder = getenv("srcdir");
    std::ifstream file(std::string(folder ? folder : ".") + "/docs/algorithms.md");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_GT(text.size(), 0u);
    for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++) {
        EXPECT_NE(text.find(std::string("| ") + algo->name), std::string::npos) << algo->name;
        if (algo->param) {
            EXPECT_NE(text.find(algo->param->name), std::string::npos) << algo->param->name;
        }
    }
}

// Values worth trying make plans of their own: no two rank programs are alike.
TEST(Algo, ParametersMakeADifference)
{
    for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++)
        for (int c = 0; c < TW_COLL_COUNT; c++)
            for (int nranks : {1, 2, 7, 12, 24}) {
                std::set<std::string> texts;
                size_t n = 0;
                uint32_t last = 0, value;
                if (!algo->param || !(algo->colls >> c & 1))
                    continue;
                while ((value = algo->param->value(nranks, n)) != 0) {
                    EXPECT_GT(value, last) << algo->name;
                    last = value;
                    n++;
                    Plan plan = generate(algo, {(tw_coll)c, nranks, 0, -1, 1, value});
                    char *text = nullptr;
                    ASSERT_EQ(tw_plan_print(plan.get(), &text), TWILL_OK);
                    texts.insert(text);
                    free(text);
                }
                EXPECT_EQ(texts.size(), n) << algo->name << " " << nranks;
                EXPECT_EQ(algo->param->value(nranks, n + 1), 0u);
                EXPECT_GE(n, nranks < 12 ? 0u : 3u);
            }
}

// The choice serves the call, needs nothing special, and is there for each collective but p2p.
TEST(Algo, ChoiceServesEveryCall)
{
    for (int c = 0; c < TW_COLL_COUNT; c++)
        for (int nranks : {1, 2, 3, 8, 9, 64, 1000})
            for (uint64_t bytes = 0; bytes < (1ull << 40); bytes = bytes * 2 + 1) {
                const tw_algo *algo = tw_algo_choose((tw_coll)c, nranks, bytes);
                if (c == TW_COLL_P2P) {
                    EXPECT_EQ(algo, nullptr);
                    continue;
                }
                ASSERT_NE(algo, nullptr) << c << " " << nranks << " " << bytes;
                EXPECT_TRUE(algo->colls >> c & 1);
                EXPECT_EQ(algo->caps, 0u);
                algo = tw_algo_choose_ordered((tw_coll)c, nranks, bytes);
                ASSERT_NE(algo, nullptr) << c << " " << nranks << " " << bytes;
                EXPECT_TRUE(algo->colls >> c & 1);
                EXPECT_EQ(algo->caps, 0u);
                EXPECT_EQ(algo->deterministic >> c & 1, (unsigned)contract::reduces(c));
            }
}

// More channels than a pair has FIFOs are cut down, none is taken as one.
TEST(Algo, ChannelsAreBounded)
{
    for (uint32_t channels : {0u, 1u, 2u, 32u, 33u, 1000000u}) {
        uint32_t want = channels < 1                   ? 1
                        : channels > TW_PLAN_FIFOS_MAX ? TW_PLAN_FIFOS_MAX
                                                       : channels;
        Plan plan = generate(tw_algo_find("ring", TW_COLL_ALL_REDUCE),
                             {TW_COLL_ALL_REDUCE, 3, 0, -1, channels, 0});
        EXPECT_EQ(plan->nfifos, want);
        EXPECT_EQ(plan->ranks[1].nlanes, want);
        EXPECT_EQ(plan->parts[0].per, 3 * want);
        EXPECT_EQ(plan->ranks[1].lanes[want - 1].channel, want - 1);
    }
}
