/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a measurement of this host must and must not do. Never knows: this host's shape. */
#include "graphs.hh"

#include <dirent.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <thread>

#include "command.h"

extern "C" {
#include "base/time.h"
#include "topo/line.h"
#include "topo/probe.h"
}

namespace
{

const uint64_t kEnough = 20000000000; /* on a host that others keep busy */

bool nothing(const struct tw_topo_measured &m)
{
    struct tw_topo_measured none = {};
    return memcmp(&m, &none, sizeof(m)) == 0;
}

bool play(void *court, int side, uint64_t *turn, uint64_t ns, uint64_t *ps)
{
    return tw_topo_line_play((struct tw_topo_court *)court, side, turn, tw_now_ns() + ns, ps);
}

unsigned threads_here()
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count;
}

struct Here : Graph {
    Here() { EXPECT_EQ(tw_topo_discover(&g, TW_TOPO_SCOPE_PROCESS), TWILL_OK) << tw_fail_text(); }
};

TEST(Probe, MeasuresAndLeavesNothingBehind)
{
    Here here;
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    std::thread([] {}).join(); /* the first may bring one of a sanitizer's along */
    unsigned threads = threads_here();
    struct tw_topo_measured m;
    bool complete = false;
    ASSERT_EQ(tw_topo_probe(here.g->machines, kEnough, &m, &complete), TWILL_OK);
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    /* the kernel forgets a thread a little after it has been joined */
    EXPECT_TRUE(comes_true([&] { return threads_here() <= threads; }));
    EXPECT_TRUE(complete);
    EXPECT_GT(m.copy_bytes_per_s[TW_TOPO_COPY_L1], 100000000u);
    EXPECT_EQ(m.copy_bytes[TW_TOPO_COPY_MEMORY] != 0, m.copy_bytes_per_s[TW_TOPO_COPY_MEMORY] != 0);
    uint64_t lines = 0;
    for (uint64_t ps : m.line_ps)
        lines += ps != 0;
    /* one CPU has nobody to pass a line to */
    EXPECT_EQ(lines > 0, CPU_COUNT(&before) > 1);
    for (uint64_t ps : m.line_ps)
        EXPECT_TRUE(ps == 0 || (ps > 100 && ps < 1000000000)) << ps;
    EXPECT_GT(m.switch_ps, 10000u);
    EXPECT_LT(m.switch_ps, 1000000000u);
    EXPECT_EQ(m.cma_call_ps != 0, m.cma_bytes_per_s != 0);
    uint8_t bytes[TW_TOPO_MEASURED_BYTES];
    tw_topo_measured_pack(&m, bytes);
    EXPECT_EQ(tw_topo_measured_unpack(&m, bytes), TWILL_OK) << tw_fail_text();
    ASSERT_EQ(tw_topo_measured_apply(&m, here.g->machines), TWILL_OK);
    EXPECT_EQ(tw_topo_graph_seal(here.g), TWILL_OK) << tw_fail_text();
}

TEST(Probe, KeepsToTheAffinityOfItsCaller)
{
    Here here;
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_ZERO(&one);
    CPU_SET(here.g->machines[0].nodes[here.nth(TW_NODE_PU, 0)].os_index, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    struct tw_topo_measured m;
    bool complete = false;
    enum twill_status status = tw_topo_probe(here.g->machines, kEnough, &m, &complete);
    ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
    ASSERT_EQ(status, TWILL_OK);
    EXPECT_TRUE(complete);
    for (uint64_t ps : m.line_ps)
        EXPECT_EQ(ps, 0u);
    EXPECT_NE(m.switch_ps, 0u) << "one CPU is enough";
    EXPECT_NE(m.copy_bytes_per_s[TW_TOPO_COPY_L1], 0u);
}

/* Two processes that share pages: ranks that are bound to a CPU each measure so. */
TEST(Line, IsPlayedBetweenProcesses)
{
    void *pages = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    uint64_t turn = 0, first = 0, second = 0;
    pid_t child = fork();
    if (child == 0) {
        uint64_t ps = 0;
        bool played = play(pages, 1, &turn, kEnough, &ps) && play(pages, 1, &turn, kEnough, &ps);
        _exit(played && ps > 0 ? 0 : 1);
    }
    EXPECT_TRUE(play(pages, 0, &turn, kEnough, &first));
    EXPECT_TRUE(play(pages, 0, &turn, kEnough, &second));
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_GT(first, 100u);
    EXPECT_GT(second, 100u);
    munmap(pages, 4096);
}

TEST(Line, EndsWithoutAnother)
{
    alignas(256) unsigned char pages[4096] = {};
    uint64_t turn = 0, ps = 77;
    EXPECT_FALSE(play(pages, 0, &turn, 1000000, &ps));
    EXPECT_EQ(ps, 77u);
    /* and for the one that comes later, at once */
    turn = 0;
    EXPECT_FALSE(play(pages, 1, &turn, kEnough, &ps) && play(pages, 1, &turn, kEnough, &ps));
    EXPECT_EQ(ps, 77u);
}

TEST(Probe, EndsWhenItsTimeDoes)
{
    Here here;
    struct tw_topo_measured m;
    bool complete = true;
    memset(&m, 1, sizeof(m));
    ASSERT_EQ(tw_topo_probe(here.g->machines, 0, &m, &complete), TWILL_OK);
    EXPECT_FALSE(complete);
    EXPECT_TRUE(nothing(m));
    /* CPU time is what the bound can be seen in on a busy host: two threads, 10 ms, and what a
       sanitizer adds to starting them */
    struct rusage before, after;
    ASSERT_EQ(getrusage(RUSAGE_SELF, &before), 0);
    ASSERT_EQ(tw_topo_probe(here.g->machines, TW_TOPO_PROBE_NS, &m, &complete), TWILL_OK);
    ASSERT_EQ(getrusage(RUSAGE_SELF, &after), 0);
    auto us = [](const struct rusage &r) {
        return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec +
               r.ru_stime.tv_usec;
    };
    EXPECT_LT(us(after) - us(before), 60000);
}

TEST(Probe, SurvivesAMachineThatIsNotThisOne)
{
    /* its CPUs are not there, or are others: pinning fails, or nearness is another */
    Graph other("amd-2s-nps4");
    struct tw_topo_measured m;
    ASSERT_EQ(tw_topo_probe(other.g->machines, TW_TOPO_PROBE_NS, &m, nullptr), TWILL_OK);
    other.machine().nodes[other.nth(TW_NODE_PU, 5)].os_index = TW_TOPO_NONE;
    other.machine().nodes[other.nth(TW_NODE_PU, 6)].os_index = 4000000000u;
    ASSERT_EQ(tw_topo_probe(other.g->machines, TW_TOPO_PROBE_NS, &m, nullptr), TWILL_OK);
}

} // namespace
