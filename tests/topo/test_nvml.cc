/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a library that stands for NVML, and hosts it speaks of. Never knows: how it is asked. */
#include "graphs.hh"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

extern "C" {
#include "base/time.h"
#include "topo/build.h"
#include "topo/discover.h"
#include "topo/nvml.h"
}

namespace
{

const char *kFake = BUILD_DIR "/tests/topo/.libs/fake_nvml.so";
const char *kTwoGpus = SOURCE_DIR "/tests/topo/machines/two-gpus.xml";
const uint64_t kGB = 1000000000;

/* A host with GPUs below one root, 0000:10:00.0, 0000:11:00.0, ..., and what NVML says of it. */
class Nvml : public testing::Test
{
  protected:
    void SetUp() override
    {
        char path[] = "/tmp/twill-nvml-XXXXXX";
        ASSERT_NE(mkdtemp(path), nullptr);
        folder = path;
        ASSERT_EQ(setenv("FAKE_NVML", (folder + "/says").c_str(), 1), 0);
    }
    void TearDown() override
    {
        unsetenv("FAKE_NVML");
        std::filesystem::remove_all(folder);
    }
    void says(const std::string &text) { std::ofstream(folder + "/says") << text; }

    void host(unsigned gpus, unsigned chips = 0, const char *library = kFake)
    {
        tw_topo_graph_free(graph.g);
        graph.g = tw_topo_graph_create("host");
        ASSERT_NE(graph.g, nullptr);
        ASSERT_EQ(tw_topo_machine_add(graph.g), 0u);
        ASSERT_TRUE(tw_topo_hosts_add(graph.g, 0, 1));
        struct tw_topo_machine *m = &graph.machine();
        uint32_t root = tw_topo_part_add(m, TW_NODE_HOST, TW_TOPO_NONE, TW_TOPO_NONE);
        struct tw_topo_nvidia seen = {};
        seen.nvswitches = chips;
        const uint32_t package = tw_topo_part_add(m, TW_NODE_PACKAGE, root, 0);
        const uint32_t pci = tw_topo_part_add(m, TW_NODE_PCIROOT, package, TW_TOPO_NONE);
        const uint32_t core = tw_topo_part_add(m, TW_NODE_CORE, package, 0);
        const uint32_t pu = tw_topo_part_add(m, TW_NODE_PU, core, 0);
        for (const auto &[from, to] :
             {std::pair{package, root}, {pci, package}, {core, package}, {pu, core}})
            ASSERT_TRUE(tw_topo_wire_add(m, from, to, 1, 200 * kGB, TW_TOPO_ESTIMATE));
        for (unsigned i = 0; i < gpus; i++) {
            const uint32_t gpu = tw_topo_part_add(m, TW_NODE_GPU, pci, TW_TOPO_NONE);
            snprintf(m->nodes[gpu].name, sizeof(m->nodes[gpu].name), "0000:%02x:00.0", 0x10 + i);
            ASSERT_TRUE(tw_topo_wire_add(m, gpu, pci, 1000, 25 * kGB, TW_TOPO_ESTIMATE));
            seen.gpu[seen.ngpus++] = gpu;
        }
        const struct tw_topo_source source = {nullptr, nullptr, nullptr, TW_TOPO_SCOPE_PROCESS,
                                              library};
        ASSERT_TRUE(tw_topo_nvlink_add(m, &source, &seen));
        ASSERT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK) << tw_fail_text();
        EXPECT_EQ(running(), 0) << "what is started must be ended";
    }

    template <typename Function> static Function *fake(const char *name)
    {
        void *library = dlopen(kFake, RTLD_NOW); /* and stays */
        EXPECT_NE(library, nullptr) << dlerror();
        void *found = dlsym(library, name);
        EXPECT_NE(found, nullptr) << name;
        Function *function = nullptr;
        memcpy((void *)&function, &found, sizeof(found));
        return function;
    }
    /* starts of the library that were not ended */
    static int running() { return fake<int()>("fake_nvml_running")(); }
    /* another thread starts it, or ends it */
    static void comes_to(int starts)
    {
        const uint64_t until = tw_now_ns() + 60 * TW_NS_S;
        while (running() != starts && tw_now_ns() < until)
            usleep(1000);
        ASSERT_EQ(running(), starts);
    }
    static void release(bool yes) { fake<void(int)>("fake_nvml_release")(yes); }

    /* the wire between two GPUs, or from a GPU to the NVSwitch (b -1) */
    const struct tw_topo_link *wire(unsigned a, int b)
    {
        const struct tw_topo_machine *m = &graph.machine();
        const uint32_t from = graph.nth(TW_NODE_GPU, a);
        const uint32_t to =
            b < 0 ? graph.nth(TW_NODE_NVSWITCH, 0) : graph.nth(TW_NODE_GPU, (uint32_t)b);
        const struct tw_topo_link *found = nullptr;
        for (uint32_t i = 0; i < m->nlinks; i++) {
            const struct tw_topo_link *link = &m->links[i];
            if ((link->from != from || link->to != to) && (link->from != to || link->to != from))
                continue;
            EXPECT_EQ(found, nullptr) << "two wires";
            found = link;
        }
        return found;
    }
    uint32_t cables(unsigned a, int b) { return wire(a, b) ? wire(a, b)->count : 0; }
    /* wires beside the tree */
    uint32_t wires()
    {
        uint32_t count = 0;
        for (uint32_t i = 0; i < graph.machine().nlinks; i++)
            count += graph.machine().nodes[graph.machine().links[i].from].uplink != i;
        return count;
    }
    std::string notes()
    {
        std::string all;
        for (uint32_t i = 0; i < graph.machine().nnotes; i++)
            all += graph.machine().notes[i] + std::string("\n");
        return all;
    }
    bool noted(const std::string &part) { return notes().find(part) != std::string::npos; }

    std::string folder;
    Graph graph;
};

std::string gpu(unsigned index) { return "gpu 0 " + std::to_string(0x10 + index) + " 0\n"; }

/* so many links to another GPU, of NVLink 4 */
std::string links(unsigned count, unsigned to)
{
    std::string text;
    for (unsigned i = 0; i < count; i++)
        text += "link 0 0 " + std::to_string(0x10 + to) + " 0 6\n";
    return text;
}

std::string repeat(unsigned count, const std::string &line)
{
    std::string text;
    for (unsigned i = 0; i < count; i++)
        text += line;
    return text;
}

/* ---- what is there ------------------------------------------------------------------------- */

TEST_F(Nvml, JoinsTwoGpusDirectly)
{
    says(gpu(0) + links(18, 1) + gpu(1) + links(18, 0));
    host(2);
    ASSERT_NE(wire(0, 1), nullptr);
    EXPECT_EQ(wire(0, 1)->count, 18u);
    /* 18 x 25 GB/s of the data sheet, of which two H200 reached 392 */
    EXPECT_NEAR((double)wire(0, 1)->bytes_per_s[0], 392e9, 1e9);
    EXPECT_EQ(wire(0, 1)->bytes_per_s[0], wire(0, 1)->bytes_per_s[1]);
    EXPECT_EQ(wire(0, 1)->origin, TW_TOPO_SYSTEM);
    EXPECT_EQ(wires(), 1u);
    EXPECT_EQ(notes(), "");
    EXPECT_EQ(tw_topo_node_count(&graph.machine(), TW_NODE_NVSWITCH), 0u);
    Routes routes(graph.g);
    const struct tw_topo_path path =
        routes.find({0, graph.nth(TW_NODE_GPU, 0)}, {0, graph.nth(TW_NODE_GPU, 1)});
    EXPECT_EQ(path.nresources, 1u) << "by NVLink, not by PCI";
}

TEST_F(Nvml, BelievesTheDriversSpeedBeforeAVersion)
{
    /* an H100's links as some drivers show them: version 7 is NVLink 5.0 */
    std::string one = "speed 26562\n" + repeat(18, "link 2 0 0x80 0 7\n");
    says(gpu(0) + one + gpu(1) + one);
    host(2);
    EXPECT_NEAR((double)wire(0, -1)->bytes_per_s[0], 392e9, 1e9);
    /* a speed that is none is not believed */
    says(gpu(0) + "speed 7\n" + repeat(18, "link 2 0 0x80 0 7\n") + gpu(1) + one);
    host(2);
    EXPECT_NEAR((double)wire(0, -1)->bytes_per_s[0], 784e9, 2e9);
}

TEST_F(Nvml, KnowsTheRatesOfGenerations)
{
    const std::pair<int, double> rates[] = {{1, 20}, {2, 25}, {3, 25}, {4, 25},
                                            {5, 25}, {6, 25}, {7, 50}};
    for (const auto &[version, rate] : rates) {
        says(gpu(0) + "link 0 0 0x11 0 " + std::to_string(version) + "\n" + gpu(1) +
             "link 0 0 0x10 0 " + std::to_string(version) + "\n");
        host(2);
        EXPECT_NEAR((double)wire(0, 1)->bytes_per_s[0], rate * 0.87e9, 1e6) << version;
    }
    for (const int version : {0, 8, -1}) {
        says(gpu(0) + "link 0 0 0x11 0 " + std::to_string(version) + "\n" + gpu(1));
        host(2);
        EXPECT_EQ(wires(), 0u);
        EXPECT_TRUE(noted("does not serve: link 0 of 0000:10:00.0 is of a version")) << notes();
    }
}

TEST_F(Nvml, JoinsEightGpusByASwitch)
{
    std::string text;
    for (unsigned i = 0; i < 8; i++)
        text += gpu(i) + repeat(18, "link 2 0 0x80 0 6\n");
    says(text);
    host(8, 4);
    EXPECT_EQ(tw_topo_node_count(&graph.machine(), TW_NODE_NVSWITCH), 1u);
    for (unsigned i = 0; i < 8; i++)
        EXPECT_EQ(cables(i, -1), 18u) << i;
    EXPECT_EQ(wires(), 8u);
    EXPECT_EQ(notes(), "");
}

/* Four V100 of a cube: two links to the neighbours of a square, one across; the rest of their six
 * lead to GPUs that are not here. */
TEST_F(Nvml, JoinsFourGpusOfACube)
{
    std::string text;
    for (unsigned i = 0; i < 4; i++) {
        text += gpu(i);
        for (unsigned j = 0; j < 4; j++)
            if (j != i)
                text +=
                    repeat((i ^ j) == 3 ? 1 : 2, "link 0 0 " + std::to_string(0x10 + j) + " 0 2\n");
        text += "link 0 0 0x40 0 2\n";
    }
    says(text);
    host(4);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned j = i + 1; j < 4; j++) {
            const unsigned count = (i ^ j) == 3 ? 1 : 2;
            ASSERT_EQ(cables(i, (int)j), count) << i << " " << j;
            EXPECT_NEAR((double)wire(i, (int)j)->bytes_per_s[0], count * 25 * 0.87e9, 1e6);
        }
        EXPECT_TRUE(noted("1 links of 0000:1" + std::to_string(i) + ":00.0 lead to no GPU"));
    }
    EXPECT_EQ(wires(), 6u);
}

TEST_F(Nvml, LeavesOutLinksThatAreDown)
{
    says(gpu(0) + links(3, 1) + "down\n" + links(2, 1) + gpu(1) + links(4, 0) + "down\ndown\n");
    host(2);
    /* one end says five, the other four */
    EXPECT_EQ(cables(0, 1), 4u);
    EXPECT_TRUE(noted("1 of 6 links of 0000:10:00.0 are down")) << notes();
    EXPECT_TRUE(noted("2 of 6 links of 0000:11:00.0 are down")) << notes();
    EXPECT_TRUE(noted("0000:10:00.0 has 5 links to 0000:11:00.0, which has 4 back")) << notes();
    says(gpu(0) + repeat(18, "down\n") + gpu(1) + repeat(18, "down\n"));
    host(2);
    EXPECT_EQ(wires(), 0u);
    EXPECT_TRUE(noted("none between these GPUs, says NVML")) << notes();
}

TEST_F(Nvml, DoesNotEstimateWhatNvmlDenies)
{
    says(gpu(0) + gpu(1));
    host(2, 4);
    EXPECT_EQ(wires(), 0u);
    EXPECT_EQ(tw_topo_node_count(&graph.machine(), TW_NODE_NVSWITCH), 0u);
}

TEST_F(Nvml, LeavesOutGpusThatAreCut)
{
    std::string one = repeat(18, "link 2 0 0x80 0 6\n");
    says(gpu(0) + one + gpu(1) + "mig\n" + one + gpu(2) + one);
    host(3, 4);
    EXPECT_EQ(cables(0, -1), 18u);
    EXPECT_EQ(cables(1, -1), 0u);
    EXPECT_EQ(cables(2, -1), 18u);
    EXPECT_TRUE(noted("0000:11:00.0 is cut into instances (MIG)")) << notes();
}

/* A GPU that cannot be cut answers the question with an error. */
TEST_F(Nvml, NeedsNoAnswerAboutMig)
{
    says(gpu(0) + links(1, 1) + gpu(1) + links(1, 0) + "fail nvmlDeviceGetMigMode 3\n");
    host(2);
    EXPECT_EQ(cables(0, 1), 1u);
}

TEST_F(Nvml, SaysWhichGpusItDoesNotKnow)
{
    says(gpu(1) + links(1, 2) + gpu(2) + links(1, 1) + gpu(9));
    host(4);
    EXPECT_EQ(wires(), 1u);
    EXPECT_EQ(cables(1, 2), 1u);
    EXPECT_TRUE(noted("unknown of 2 GPUs")) << notes();
}

/* ---- what is not --------------------------------------------------------------------------- */

TEST_F(Nvml, SaysWhyItDoesNotServe)
{
    const std::string two = gpu(0) + links(2, 1) + gpu(1) + links(2, 0);
    for (const char *call :
         {"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
          "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkVersion",
          "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo_v2"}) {
        for (const int status : {1, 4, 9, 15, 999, -7}) {
            says(two + "fail " + call + " " + std::to_string(status) + "\n");
            host(2, 4);
            /* as without NVML */
            EXPECT_EQ(wires(), 2u) << call;
            EXPECT_EQ(wire(0, -1)->origin, TW_TOPO_ESTIMATE);
            EXPECT_TRUE(noted("NVML does not serve: ")) << call << ": " << notes();
            EXPECT_TRUE(noted((status == 15 ? "GPU is?lost (" : "made up (") +
                              std::to_string(status) + ")"))
                << call << ": " << notes();
            EXPECT_TRUE(noted("4 NVSwitch chips are there"));
        }
    }
    says(two + "nameless\nfail nvmlDeviceGetCount_v2 42\n");
    host(2);
    EXPECT_TRUE(noted("does not serve: number of GPUs: unknown error (42)")) << notes();
    EXPECT_TRUE(noted("neither sysfs nor hwloc shows it"));
    /* what only tells more, or ends it all, may fail */
    says(two + "fail nvmlDeviceGetFieldValues 3\nfail nvmlShutdown 999\n");
    host(2);
    EXPECT_EQ(cables(0, 1), 2u);
}

TEST_F(Nvml, SaysThatItIsNotThere)
{
    host(2, 4, "libtwill-no-such-nvml.so.1");
    EXPECT_EQ(wires(), 2u);
    EXPECT_TRUE(noted("NVML does not serve: libtwill-no-such-nvml.so.1: cannot open")) << notes();
    std::ofstream(folder + "/garbage.so") << "this is no library";
    host(2, 4, (folder + "/garbage.so").c_str());
    EXPECT_EQ(wires(), 2u);
    EXPECT_TRUE(noted("NVML does not serve: ")) << notes();
    /* there, but without a driver: the fake has no file */
    host(2);
    EXPECT_TRUE(noted("NVML does not serve: start: made up (9)")) << notes();
}

/* The fake with one function renamed, as an older library lacks it. */
TEST_F(Nvml, SaysWhatAnOlderOneLacks)
{
    says(gpu(0) + links(1, 1) + gpu(1) + links(1, 0));
    std::ifstream in(kFake, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    int number = 0;
    for (const std::string symbol :
         {"nvmlInit_v2", "nvmlShutdown", "nvmlErrorString", "nvmlDeviceGetCount_v2",
          "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMigMode",
          "nvmlDeviceGetFieldValues", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkVersion",
          "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo_v2"}) {
        std::string bytes = all.str();
        const std::string name = std::string("\0", 1) + symbol + std::string("\0", 1);
        size_t at = bytes.find(name);
        ASSERT_NE(at, std::string::npos) << symbol;
        for (; at != std::string::npos; at = bytes.find(name, at + 1))
            bytes[at + name.size() - 2] = 'X';
        const std::string path = folder + "/old" + std::to_string(number++) + ".so";
        std::ofstream(path, std::ios::binary) << bytes;
        host(2, 4, path.c_str());
        EXPECT_TRUE(noted("it is too old: it has no " + symbol)) << notes();
        EXPECT_EQ(wires(), 2u) << symbol;
    }
}

TEST_F(Nvml, SurvivesGarbage)
{
    /* addresses that are none, of GPUs and behind links; a GPU twice, and one that leads to itself
     */
    says("gpu -1 -1 -1\nlink 0 -1 300 77 6\n" + gpu(0) + gpu(0) + links(2, 0) + gpu(1) +
         "link 0 -1 -1 -1 6\n" + links(1, 1) + "link 1 0 0x10 0 6\n");
    host(2);
    EXPECT_EQ(wires(), 0u) << notes();
    EXPECT_TRUE(noted("3 links of 0000:11:00.0 lead to no GPU or switch")) << notes();
    says("gpu 7 0x10 0\n");
    host(2);
    EXPECT_TRUE(noted("does not serve: it knows none of the 2 GPUs")) << notes();
    for (const char *count : {"65", "4294967295"}) {
        says(gpu(0) + gpu(1) + "count " + count + "\n");
        host(2);
        EXPECT_TRUE(noted(std::string("does not serve: it says that there are ") + count));
    }
    /* fewer than it says */
    says(gpu(0) + gpu(1) + "count 9\n");
    host(2);
    EXPECT_TRUE(noted("does not serve: handle of a GPU: made up (2)")) << notes();
    /* an end of a kind that nobody knows */
    for (const char *type : {"3", "255", "-1"}) {
        says(gpu(0) + "link " + type + " 0 0x11 0 6\n" + gpu(1));
        host(2);
        EXPECT_TRUE(noted("does not serve: it does not know what link 0 of 0000:10:00.0"))
            << notes();
    }
}

/* A driver that is lost may never answer. */
TEST_F(Nvml, IsNotWaitedForWithoutEnd)
{
    says(gpu(0) + gpu(1) + "hang nvmlDeviceGetCount_v2\n");
    auto found = std::make_unique<struct tw_topo_nvml>();
    char why[TW_TOPO_NVML_WHY_BYTES];
    ASSERT_FALSE(tw_topo_nvml_ask(kFake, 50 * TW_NS_MS, found.get(), why));
    EXPECT_STREQ(why, "no answer within 0.05 s");
    found.reset(); /* the thread has its own */
    comes_to(1);
    release(true);
    comes_to(0);
    release(false);
    says(gpu(0) + gpu(1));
    found = std::make_unique<struct tw_topo_nvml>();
    ASSERT_TRUE(tw_topo_nvml_ask(kFake, 60 * TW_NS_S, found.get(), why)) << why;
    EXPECT_EQ(found->ngpus, 2u);
    EXPECT_FALSE(tw_topo_nvml_ask(std::string(2000, 'x').c_str(), TW_NS_S, found.get(), why));
}

/* ---- when it is asked ---------------------------------------------------------------------- */

bool loaded(const std::string &library)
{
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(library) != std::string::npos)
            return true;
    return false;
}

TEST_F(Nvml, IsNotLoadedForFewerThanTwoGpus)
{
    const std::string copy = folder + "/copy.so";
    std::filesystem::copy_file(kFake, copy);
    says(gpu(0) + gpu(1));
    for (const unsigned gpus : {0u, 1u}) {
        host(gpus, 0, copy.c_str());
        EXPECT_FALSE(loaded(copy)) << gpus;
        EXPECT_EQ(notes(), "");
    }
    host(2, 0, copy.c_str());
    EXPECT_TRUE(loaded(copy));
}

TEST_F(Nvml, IsAskedByDiscovery)
{
    says("gpu 0 0x13 0\n" + repeat(4, "link 2 0 0x80 0 6\n") + "gpu 0 0x14 0\n" +
         repeat(4, "link 2 0 0x80 0 6\n"));
    const struct tw_topo_source source = {kTwoGpus, nullptr, nullptr, TW_TOPO_SCOPE_PROCESS, kFake};
    ASSERT_EQ(tw_topo_discover_from(&graph.g, &source), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(cables(0, -1), 4u);
    EXPECT_EQ(cables(1, -1), 4u);
    EXPECT_FALSE(noted("NVSwitch chips are there"));
    std::string text = xml_of(graph.g);
    Graph back;
    ASSERT_EQ(tw_topo_xml_read(&back.g, "here", text.data(), text.size()), TWILL_OK)
        << tw_fail_text();
    EXPECT_TRUE(tw_topo_graph_equal(graph.g, back.g));
}

} // namespace
