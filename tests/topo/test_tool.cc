/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-topo promises. Never knows: how it finds out. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "command.h"
#include "graphs.hh"

namespace
{

const char *kTopo = BUILD_DIR "/tools/twill-topo";

struct Ran {
    int rc;
    std::string out, err;
};

Ran run(std::vector<std::string> arguments, const std::string &input = "")
{
    arguments.insert(arguments.begin(), kTopo);
    Command c(arguments, input);
    int rc = c.finish();
    return {rc, c.out, c.err};
}

/* Python's parser is the judge of whether something is XML; elements by name, counted. */
void expect_xml(const std::string &text, const std::string &check)
{
    if (!have_tool("python3")) {
        GTEST_SKIP() << "python3 is missing";
    }
    Command python({"python3", "-c",
                    "import sys, xml.etree.ElementTree as t, collections\n"
                    "r = t.fromstring(sys.stdin.buffer.read())\n"
                    "n = collections.Counter(e.tag.split('}')[-1] for e in r.iter())\n" +
                        check},
                   text);
    int rc = python.finish();
    EXPECT_EQ(rc, 0) << python.err;
}

TEST(Tool, ShowsThisHost)
{
    Ran r = run({});
    EXPECT_EQ(r.rc, 0) << r.err;
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(r.out.compare(0, 9, "topology "), 0) << r.out;
    EXPECT_TRUE(contains(r.out, "(system)\n")) << r.out;
    EXPECT_TRUE(contains(r.out, " core")) << r.out;
    EXPECT_TRUE(contains(r.out, "; estimate]")) << r.out;
    EXPECT_TRUE(contains(r.out, "note: numbers whose origin is estimate")) << r.out;
    EXPECT_EQ(run({"--all"}).rc, 0);
}

TEST(Tool, ShowsDescribedMachinesAndSaysThatTheyAre)
{
    Ran r = run({"--machine", "nvswitch-8gpu:hosts=64,leaf=16,oversub=2"});
    EXPECT_EQ(r.rc, 0) << r.err;
    EXPECT_TRUE(contains(r.out,
                         "topology synthetic-nvswitch-8gpu:hosts=64,leaf=16,oversub=2: 64 hosts\n"
                         "  tier 0: a switch for each NIC number joins 16 hosts, 300 ns, 400 "
                         "GB/s up and 400 GB/s down\n"
                         "  tier 1: a switch joins 4 switches, 300 ns\n"
                         "machine synthetic-nvswitch-8gpu (synthetic)\n"))
        << r.out;
    EXPECT_TRUE(
        contains(r.out, "        48 cores, CPU 0-47 + 96-143  [24 ns, 13 GB/s; synthetic]\n"))
        << r.out;
    EXPECT_TRUE(contains(r.out, "      memory 1 1 TiB  [45 ns, 250 GB/s both ways together; "))
        << r.out;
    EXPECT_TRUE(
        contains(r.out, "gpu gpu7 (synthetic GPU with NVLink) 141 GiB at 4 TB/s  [100 ns, "))
        << r.out;
    EXPECT_TRUE(
        contains(r.out, "    gpu gpu7 - nvswitch  [18 cables, 400 ns, 390 GB/s; synthetic]\n"))
        << r.out;
    r = run({"--list"});
    EXPECT_EQ(r.rc, 0);
    for (const char *name :
         {"amd-2s-nps4", "intel-2s", "nvswitch-8gpu", "pcie-4gpu", "arm-64c", "container-1c"}) {
        EXPECT_TRUE(contains(r.out, name)) << r.out;
        EXPECT_TRUE(contains(run({"--machine", name}).out, std::string("synthetic-") + name));
    }
}

TEST(Tool, XmlGoesRoundByteByByte)
{
    for (const char *name : {"amd-2s-nps4", "nvswitch-8gpu:hosts=4"}) {
        Ran first = run({"--machine", name, "--xml"});
        EXPECT_EQ(first.rc, 0) << first.err;
        Ran second = run({"--load", "-", "--xml"}, first.out);
        EXPECT_EQ(second.rc, 0) << second.err;
        EXPECT_EQ(first.out, second.out);
        Graph graph(name);
        EXPECT_EQ(first.out, xml_of(graph.g));
    }
    Ran recorded = run({"--hwloc", SOURCE_DIR "/tests/topo/machines/two-gpus.xml", "--xml"});
    EXPECT_EQ(recorded.rc, 0) << recorded.err;
    EXPECT_EQ(run({"--load", "-", "--xml"}, recorded.out).out, recorded.out);
    expect_xml(recorded.out, "assert r.tag == 'twill-topology' and r.get('name') == 'two<gpus'\n"
                             "assert len(r.findall('machine/node[@kind=\"gpu\"]')) == 2\n");
}

TEST(Tool, SvgIsAPictureOfAllParts)
{
    Ran r = run({"--machine", "nvswitch-8gpu:hosts=64,leaf=16", "--svg"});
    EXPECT_EQ(r.rc, 0) << r.err;
    /* 2 packages, 2 NUMA nodes, memories and caches, 96 cores, 4 roots and switches, 8 NICs and
       GPUs, 2 bars, the host and the page; 4 leaves, a spine and 32 of the hosts above */
    expect_xml(r.out, "assert r.tag.endswith('svg')\n"
                      "assert n['rect'] == 8 + 96 + 8 + 16 + 2 + 1 + 1 + 4 + 1 + 32, n\n"
                      "assert n['line'] == 16 + 4 + 32, n\n"
                      "w, h = int(r.get('width')), int(r.get('height'))\n"
                      "for e in r.iter():\n"
                      "    if e.tag.endswith('rect') and e.get('x'):\n"
                      "        assert 0 <= int(e.get('x')) <= w - int(e.get('width')), e.attrib\n"
                      "        assert 0 <= int(e.get('y')) <= h - int(e.get('height')), e.attrib\n"
                      "t = [e.text for e in r.iter() if e.tag.endswith('text')]\n"
                      "assert 'gpu gpu7 141 GiB' in t and 'core 95' in t and '... 64 hosts' in t\n"
                      "assert any('synthetic' in x for x in t)\n");
    r = run({"--hwloc", SOURCE_DIR "/tests/topo/machines/two-gpus.xml", "--svg"});
    EXPECT_EQ(r.rc, 0) << r.err;
    expect_xml(r.out, "assert n['line'] == 4, n\n");
    expect_xml(run({"--svg"}).out, "assert n['rect'] > 3, n\n");
}

TEST(Tool, MeasuresThisHost)
{
    Ran r = run({"--measure"});
    EXPECT_EQ(r.rc, 0) << r.err;
    EXPECT_TRUE(contains(r.out, "\nmeasured\n")) << r.out;
    EXPECT_TRUE(contains(r.out, "\n  hash ")) << r.out;
    r = run({"--measure", "--xml"});
    EXPECT_EQ(r.rc, 0) << r.err;
    EXPECT_EQ(run({"--load", "-", "--xml"}, r.out).out, r.out);
}

TEST(Tool, WritesIntoAFile)
{
    char path[] = "/tmp/twill-topo-out-XXXXXX";
    close(mkstemp(path));
    Ran r = run({"--machine", "arm-64c", "--xml", "--output", path});
    EXPECT_EQ(r.rc, 0) << r.err;
    EXPECT_EQ(r.out, "");
    std::ifstream in(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}),
              run({"--machine", "arm-64c", "--xml"}).out);
    EXPECT_EQ(run({"--load", path}).rc, 0);
    unlink(path);
    r = run({"--output", "/nowhere/at/all"});
    EXPECT_EQ(r.rc, 1);
    EXPECT_TRUE(contains(r.err, "/nowhere/at/all cannot be opened: No such file")) << r.err;
    r = run({"--output", "/dev/full"});
    EXPECT_EQ(r.rc, 1);
    EXPECT_TRUE(contains(r.err, "/dev/full cannot be written: No space left")) << r.err;
}

TEST(Tool, SaysOnceWhatIsWrong)
{
    const struct {
        std::vector<std::string> arguments;
        int rc;
        const char *sentence;
    } faults[] = {
        {{"--bogus"}, 2, "twill-topo: unknown option '--bogus' (twill-topo --help)\n"},
        {{"--machine"}, 2, "twill-topo: no argument behind '--machine' (twill-topo --help)\n"},
        {{"here"}, 2, "twill-topo: unknown argument 'here' (twill-topo --help)\n"},
        {{"--load", "a", "--machine", "b"},
         2,
         "twill-topo: one of --machine, --load and --hwloc is enough (twill-topo --help)\n"},
        {{"--machine", "arm-64c", "--measure"},
         2,
         "twill-topo: --all and --measure are for this host (twill-topo --help)\n"},
        {{"--load", "/nowhere"},
         1,
         "twill-topo: topology /nowhere cannot be opened: No such file or directory\n"},
        {{"--machine", "vax"},
         1,
         "twill-topo: no described machine 'vax'; there are amd-2s-nps4, intel-2s, nvswitch-8gpu, "
         "pcie-4gpu, nvlink-4gpu, nvpair-8gpu, arm-64c, container-1c\n"},
        {{"--hwloc", "/etc/passwd"},
         1,
         "twill-topo: hwloc cannot read /etc/passwd as a topology of its own\n"},
    };
    for (const auto &fault : faults) {
        Ran r = run(fault.arguments);
        EXPECT_EQ(r.rc, fault.rc) << fault.sentence;
        EXPECT_EQ(r.err, fault.sentence);
        EXPECT_EQ(r.out, "");
    }
    Ran garbage = run({"--load", "-"}, "garbage");
    EXPECT_EQ(garbage.rc, 1);
    EXPECT_EQ(garbage.err, "twill-topo: topology -, line 1: text where an element is expected\n");
}

/* hwloc 2.9 ends the process over a set of CPUs that lacks its complete set; others may read it. */
TEST(Tool, OutlivesHwloc)
{
    std::ifstream in(SOURCE_DIR "/tests/topo/machines/two-gpus.xml");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    char path[] = "/tmp/twill-topo-XXXXXX";
    ASSERT_GE(mkstemp(path), 0);
    for (const char *name : {"complete_cpuset", "complete_nodeset"}) {
        std::string broken = text;
        broken.replace(text.find(name), strlen(name) - 1, std::string(strlen(name) - 1, 'x'));
        std::ofstream(path) << broken;
        Ran r = run({"--hwloc", path});
        EXPECT_TRUE(r.rc == 0 || r.rc == 1) << r.rc;
        EXPECT_EQ(r.rc == 1, contains(r.err, std::string("twill-topo: hwloc cannot read ") + path +
                                                 " as a topology of its own"))
            << r.err;
    }
    unlink(path);
}

TEST(Tool, HelpAndVersion)
{
    Ran r = run({"--help"});
    EXPECT_EQ(r.rc, 0);
    for (const char *option : {"--machine", "--load", "--hwloc", "--all", "--measure", "--text",
                               "--xml", "--svg", "--output", "--list"})
        EXPECT_TRUE(contains(r.out, option)) << option;
    r = run({"--version"});
    EXPECT_EQ(r.rc, 0);
    EXPECT_EQ(r.out.compare(0, 11, "twill-topo "), 0);
}

} // namespace
