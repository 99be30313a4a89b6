/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: described machines and this one. Never knows: ranks. */
#include <gtest/gtest.h>
#include <sched.h>

#include <string>

extern "C" {
#include "base/status.h"
#include "topo/topo.h"
}

namespace
{

struct Topo {
    struct tw_topo *t = nullptr;
    explicit Topo(const char *synthetic) { status = tw_topo_load(&t, synthetic); }
    ~Topo() { tw_topo_free(t); }
    enum twill_status status;
};

const char *kTwoPackages =
    "package:2 [numa(memory=1073741824)] l3:1(size=33554432) l2:2(size=1048576) "
    "l1d:1(size=49152) core:1 pu:2";

std::string cpus(const struct tw_topo *t, enum tw_topo_unit unit, int index)
{
    char list[64];
    return tw_topo_cpu_list(t, unit, index, list, sizeof(list)) == TWILL_OK ? list : "error";
}

TEST(Topo, CountsADescribedMachine)
{
    Topo topo(kTwoPackages);
    ASSERT_EQ(topo.status, TWILL_OK);
    struct tw_topo_info info;
    tw_topo_info_get(topo.t, &info);
    EXPECT_EQ(info.packages, 2);
    EXPECT_EQ(info.numa_nodes, 2);
    EXPECT_EQ(info.cores, 4);
    EXPECT_EQ(info.cpus, 8);
    EXPECT_EQ(info.l1d_bytes, 48u * 1024);
    EXPECT_EQ(info.l2_bytes, 1024u * 1024);
    EXPECT_EQ(info.l3_bytes, 32u * 1024 * 1024);
    EXPECT_STREQ(info.cpu_list, "0-7");
}

TEST(Topo, ListsTheCpusOfAUnit)
{
    Topo topo(kTwoPackages);
    ASSERT_EQ(topo.status, TWILL_OK);
    EXPECT_EQ(tw_topo_count(topo.t, TW_TOPO_CORE), 4);
    EXPECT_EQ(tw_topo_count(topo.t, TW_TOPO_NUMA), 2);
    EXPECT_EQ(cpus(topo.t, TW_TOPO_CORE, 1), "2-3");
    EXPECT_EQ(cpus(topo.t, TW_TOPO_NUMA, 1), "4-7");
}

TEST(Topo, RefusesAnIndexOutsideAndABadDescription)
{
    Topo topo(kTwoPackages);
    ASSERT_EQ(topo.status, TWILL_OK);
    char list[8];
    EXPECT_EQ(tw_topo_cpu_list(topo.t, TW_TOPO_CORE, 4, list, sizeof(list)), TWILL_ERR_INVALID);
    EXPECT_STREQ(tw_fail_text(), "no core 4: this machine has 4");
    EXPECT_EQ(tw_topo_cpu_list(topo.t, TW_TOPO_NUMA, -1, list, sizeof(list)), TWILL_ERR_INVALID);
    EXPECT_EQ(tw_topo_bind(topo.t, TW_TOPO_NUMA, 2), TWILL_ERR_INVALID);
    Topo bad("bogus:zero");
    EXPECT_EQ(bad.status, TWILL_ERR_INVALID);
    EXPECT_EQ(bad.t, nullptr);
}

TEST(Topo, KeepsToTheAffinityOfThisProcess)
{
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    int last = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &before))
            last = cpu;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    {
        Topo topo(nullptr);
        EXPECT_EQ(topo.status, TWILL_OK);
        struct tw_topo_info info;
        tw_topo_info_get(topo.t, &info);
        EXPECT_EQ(info.cpus, 1);
        EXPECT_EQ(std::string(info.cpu_list), std::to_string(last));
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(Topo, BindsThisProcess)
{
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    Topo topo(nullptr);
    ASSERT_EQ(topo.status, TWILL_OK);
    int last = tw_topo_count(topo.t, TW_TOPO_CORE) - 1;
    ASSERT_EQ(tw_topo_bind(topo.t, TW_TOPO_CORE, last), TWILL_OK);
    Topo bound(nullptr);
    ASSERT_EQ(bound.status, TWILL_OK);
    struct tw_topo_info info;
    tw_topo_info_get(bound.t, &info);
    EXPECT_EQ(cpus(topo.t, TW_TOPO_CORE, last), info.cpu_list);
    ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

} // namespace
