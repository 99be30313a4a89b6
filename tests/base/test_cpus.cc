/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/cpus.c. Never knows: whose CPUs they are. */
#include <sched.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "base/cpus.h"
}

namespace
{

struct tw_cpus set_of(const std::vector<int> &cpus)
{
    struct tw_cpus set = {};
    for (const int cpu : cpus)
        set.words[cpu / 64] |= UINT64_C(1) << cpu % 64;
    return set;
}

bool crowded(const std::vector<std::vector<int>> &bound, int quota = 0)
{
    std::vector<struct tw_cpus> sets;
    std::vector<const struct tw_cpus *> at;
    for (const auto &cpus : bound)
        sets.push_back(set_of(cpus));
    for (const auto &set : sets)
        at.push_back(&set);
    return tw_cpus_crowded(at.data(), (int)at.size(), quota);
}

TEST(Cpus, FollowTheAffinityOfTheThread)
{
    struct tw_cpus all;
    tw_cpus_get(&all);
    EXPECT_GE(tw_cpus_count(&all), 1);
    std::thread([&all] {
        cpu_set_t set;
        ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
        int last = 0;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            last = CPU_ISSET(cpu, &set) ? cpu : last;
        CPU_ZERO(&set);
        CPU_SET(last, &set);
        ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
        struct tw_cpus one;
        tw_cpus_get(&one);
        EXPECT_EQ(tw_cpus_count(&one), 1);
        EXPECT_TRUE(tw_cpus_within(&one, &all));
        EXPECT_NE(one.words[last / 64] >> last % 64 & 1, 0u);
    }).join();
}

TEST(Cpus, WithinAndTogether)
{
    const struct tw_cpus a = set_of({0, 70}), b = set_of({0, 70, 1023});
    EXPECT_TRUE(tw_cpus_within(&a, &b));
    EXPECT_TRUE(tw_cpus_within(&a, &a));
    EXPECT_FALSE(tw_cpus_within(&b, &a));
    struct tw_cpus sum = a;
    const struct tw_cpus more = set_of({3, 70, 1023});
    tw_cpus_add(&sum, &more);
    EXPECT_EQ(tw_cpus_count(&sum), 4);
}

TEST(Cpus, CrowdedWhereThreadsOutnumberThem)
{
    EXPECT_FALSE(crowded({{0, 1}, {0, 1}}));
    EXPECT_TRUE(crowded({{0, 1}, {0, 1}, {0, 1}}));
    EXPECT_FALSE(crowded({{0}, {1}})) << "each is bound to a CPU of its own";
    EXPECT_FALSE(crowded({{500}}));
    EXPECT_TRUE(crowded({{0}, {0}}));
    EXPECT_TRUE(crowded({{0}, {0}, {1, 2, 3}})) << "there is room, but not for the first";
    EXPECT_FALSE(crowded({{1, 2, 3}, {0}, {0}})) << "the others are, the first is not";
    EXPECT_TRUE(crowded({{0}, {1}, {0, 1}}));
    EXPECT_FALSE(crowded({{0, 1, 2, 3}, {0, 1, 2, 3}}, 2));
    EXPECT_TRUE(crowded({{0, 1, 2, 3}, {0, 1, 2, 3}}, 1));
    EXPECT_FALSE(crowded({{0}, {1}}, 8)) << "a quota gives no CPUs";
}

} // namespace
