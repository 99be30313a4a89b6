/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-info says of GPUs of described machines. Never knows: this host. */
#include "config.h"

#include "graphs.hh"

#include <stdio.h>

#include "command.h"

extern "C" {
#include "info.h"
#include "topo/discover.h"
}

namespace
{

using Show = enum twill_status (*)(FILE *, const struct tw_topo_graph *);

std::string shown(Show show, const struct tw_topo_graph *graph)
{
    char *text = nullptr;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    EXPECT_EQ(show(out, graph), TWILL_OK) << tw_fail_text();
    fclose(out);
    std::string all(text, bytes);
    free(text);
    return all;
}

TEST(InfoGpus, ShowsASwitch)
{
    Graph graph("nvswitch-8gpu");
    const std::string text = shown(info_gpus_print, graph.g);
    EXPECT_EQ(text.compare(0, 14, "\nbetween GPUs\n"), 0) << text;
    EXPECT_TRUE(contains(text, "  gpu0  synthetic GPU with NVLink, NUMA node 0, nearest NIC nic0\n"
                               "        NVLink: 18 links to NVSwitch, 390 GB/s\n"))
        << text;
    EXPECT_TRUE(
        contains(text, "  gpu7  synthetic GPU with NVLink, NUMA node 1, nearest NIC nic7\n"))
        << text;
    EXPECT_TRUE(contains(text, "\n  ring gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu6 gpu7, 390 GB/s\n"))
        << text;
}

TEST(InfoGpus, ShowsDirectLinks)
{
    Graph four("nvlink-4gpu"), pairs("nvpair-8gpu");
    EXPECT_TRUE(contains(shown(info_gpus_print, four.g),
                         "        NVLink: 4 links to gpu1, 87 GB/s, 4 links to gpu2, 87 GB/s, "
                         "4 links to gpu3, 87 GB/s\n"))
        << shown(info_gpus_print, four.g);
    const std::string text = shown(info_gpus_print, pairs.g);
    EXPECT_TRUE(contains(text, "  gpu2  synthetic GPU with NVLink, NUMA node 0, nearest NIC nic0\n"
                               "        NVLink: 12 links to gpu0, 260 GB/s\n"))
        << text;
    EXPECT_TRUE(contains(text, "\n  ring gpu0 gpu1 gpu3 gpu4 gpu6 gpu7 gpu5 gpu2, 50 GB/s\n"));
}

TEST(InfoGpus, ShowsPciAlone)
{
    Graph graph("pcie-4gpu");
    const std::string text = shown(info_gpus_print, graph.g);
    EXPECT_FALSE(contains(text, "NVLink:")) << text;
    EXPECT_TRUE(contains(text, "  ring gpu0 gpu1 gpu2 gpu3, 25 GB/s\n")) << text;
    Graph none("intel-2s");
    EXPECT_EQ(shown(info_gpus_print, none.g), "");
}

/* A real host: no name of a GPU is known, nor a NIC's rate, and NVLink is not asked. */
TEST(InfoGpus, ShowsWhatIsUnknown)
{
    Graph graph;
    const struct tw_topo_source source = {SOURCE_DIR "/tests/topo/machines/h200-2gpu.xml", nullptr,
                                          nullptr, TW_TOPO_SCOPE_PROCESS, nullptr};
    ASSERT_EQ(tw_topo_discover_from(&graph.g, &source), TWILL_OK) << tw_fail_text();
    const std::string text = shown(info_gpus_print, graph.g);
    EXPECT_TRUE(contains(text, "\n  0000:00:07.0  10de:2335, NUMA node 0, nearest NIC eth0\n"))
        << text;
    EXPECT_TRUE(contains(text, "\n  ring 0000:00:06.0 0000:00:07.0, 53.56 GB/s\n")) << text;
    EXPECT_TRUE(contains(text, "\n  note: NVLink: unknown")) << text;
    EXPECT_FALSE(contains(text, "note: nic")) << text;
    /* the host that is measured has a link, whose count is not known */
    Graph measured;
    ASSERT_EQ(tw_topo_xml_load(&measured.g, SOURCE_DIR "/data/topologies/h200-2gpu.xml"), TWILL_OK);
    EXPECT_TRUE(
        contains(shown(info_gpus_print, measured.g), "        NVLink: to 0000:00:07.0, 392 GB/s\n"))
        << shown(info_gpus_print, measured.g);
}

std::string shown(void (*show)(FILE *, int, const enum tw_gap *),
                  const std::vector<enum tw_gap> &gaps, int count)
{
    char *text = nullptr;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    show(out, count, gaps.data());
    fclose(out);
    std::string all(text, bytes);
    free(text);
    return all;
}

TEST(InfoGpus, SaysWhichReachEachOther)
{
    EXPECT_EQ(shown(info_reach_print, std::vector<enum tw_gap>(4, TW_GAP_NONE), 2),
              "  GPU 0 reaches GPU 1\n  GPU 1 reaches GPU 0\n");
    EXPECT_EQ(shown(info_reach_print, {TW_GAP_NONE}, 1), "");
    EXPECT_EQ(shown(info_reach_print, std::vector<enum tw_gap>(9, TW_GAP_OFF), 3),
              "  GPU 0 does not reach GPU 1, 2: TWILL_P2P=0\n"
              "  GPU 1 does not reach GPU 0, 2: TWILL_P2P=0\n"
              "  GPU 2 does not reach GPU 0, 1: TWILL_P2P=0\n");
    EXPECT_EQ(
        shown(info_reach_print,
              {TW_GAP_NONE, TW_GAP_NONE, TW_GAP_NO_PATH, /**/ TW_GAP_WRITES_LOST, TW_GAP_NONE,
               TW_GAP_READS_OTHER, /**/ TW_GAP_NONE, TW_GAP_NONE, TW_GAP_NONE},
              3),
        "  GPU 0 reaches GPU 1\n"
        "  GPU 0 does not reach GPU 2: there is no peer access\n"
        "  GPU 1 does not reach GPU 2: the self-test's reads find other bytes than are there\n"
        "  GPU 1 does not reach GPU 0: the self-test's writes are lost\n"
        "  GPU 2 reaches GPU 0, 1\n");
}

TEST(InfoGpus, SaysInJsonWhichReachEachOther)
{
    if (!have_tool("python3"))
        GTEST_SKIP() << "python3 is missing";
    Command python(
        {"python3", "-c",
         "import json, sys\n"
         "assert json.load(sys.stdin) == [\n"
         "    {'from': 0, 'to': 1, 'reaches': False, 'reason': 'there is no peer access'},\n"
         "    {'from': 1, 'to': 0, 'reaches': True, 'reason': ''}]\n"},
        shown(info_reach_json, {TW_GAP_NONE, TW_GAP_NO_PATH, TW_GAP_NONE, TW_GAP_NONE}, 2));
    EXPECT_EQ(python.finish(), 0) << python.err;
}

TEST(InfoGpus, JsonSaysTheSame)
{
    if (!have_tool("python3"))
        GTEST_SKIP() << "python3 is missing";
    Graph pairs("nvpair-8gpu"), none("intel-2s");
    Command python({"python3", "-c",
                    "import json, sys\n"
                    "d = json.load(sys.stdin)\n"
                    "assert [g['name'] for g in d['gpus']] == ['gpu%d' % i for i in range(8)]\n"
                    "assert d['gpus'][5]['numa_node'] == 1 and d['gpus'][5]['nic'] == 'nic1'\n"
                    "assert d['gpus'][5]['nvlink'] == [{'to': 'gpu7', 'links': 12, "
                    "'bytes_per_s': 260000000000}]\n"
                    "assert d['ring'] == ['gpu%d' % i for i in (0, 1, 3, 4, 6, 7, 5, 2)]\n"
                    "assert d['ring_bytes_per_s'] == 50000000000 and d['notes'] == []\n"},
                   shown(info_gpus_json, pairs.g));
    EXPECT_EQ(python.finish(), 0) << python.err << shown(info_gpus_json, pairs.g);
    Command empty({"python3", "-c",
                   "import json, sys\n"
                   "d = json.load(sys.stdin)\n"
                   "assert d == {'gpus': [], 'ring': [], 'ring_bytes_per_s': 0, 'notes': []}\n"},
                  shown(info_gpus_json, none.g));
    EXPECT_EQ(empty.finish(), 0) << empty.err;
}

} // namespace
