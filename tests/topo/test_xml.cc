/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a topology's text, and text that is none. Never knows: this host. */
#include "graphs.hh"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <random>

namespace
{

const char *kMachines[] = {
    "amd-2s-nps4",    "intel-2s",     "nvswitch-8gpu",
    "pcie-4gpu",      "nvlink-4gpu",  "nvpair-8gpu",
    "arm-64c",        "container-1c", "nvswitch-8gpu:hosts=64,leaf=16,oversub=2",
    "arm-64c:hosts=3"};

TEST(Xml, GraphTextGraphTextIsTheSame)
{
    for (const char *name : kMachines) {
        Graph graph(name), read;
        std::string text = xml_of(graph.g);
        ASSERT_EQ(tw_topo_xml_read(&read.g, name, text.data(), text.size()), TWILL_OK)
            << tw_fail_text();
        EXPECT_TRUE(tw_topo_graph_equal(graph.g, read.g)) << name;
        EXPECT_EQ(xml_of(read.g), text) << name;
        EXPECT_EQ(tw_topo_graph_hash(read.g), tw_topo_graph_hash(graph.g));
    }
}

/* The least that is a topology, and what each fact of it looks like. */
const char *kSmall =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!-- by hand -->\n"
    "<twill-topology version='1' name='a &lt;b&gt; &amp; &quot;c&apos; &#65;&#x42;'>\n"
    "  <machine name='m' origin='system' l1d_bytes='18446744073709551615'>\n"
    "    <node kind='host'/> <node kind=\"core\" parent=\"0\" os_index='3'></node>\n"
    "    <node id='2' kind='pu' parent='1' os_index='007'/>\n"
    "    <resource node='1' bytes_per_s='10'/>\n"
    "    <link from='1' to='0' origin='measured' latency_ps='1' back_latency_ps='2'\n"
    "          bytes_per_s='9' back_bytes_per_s='10' resource='0' back_resource='0'/>\n"
    "    <link from='2' to='1' origin='estimate' latency_ps='0' back_latency_ps='0'\n"
    "          bytes_per_s='1' back_bytes_per_s='1' resource='0' back_resource='0'/>\n"
    "  </machine>\n"
    "  <hosts machine='0' count='1'/>\n"
    "</twill-topology>\n";

enum twill_status read(struct tw_topo_graph **graph, const std::string &text)
{
    return tw_topo_xml_read(graph, "t.xml", text.data(), text.size());
}

TEST(Xml, ReadsWhatPeopleWrite)
{
    Graph graph;
    ASSERT_EQ(read(&graph.g, kSmall), TWILL_OK) << tw_fail_text();
    EXPECT_STREQ(graph.g->name, "a <b> & \"c' AB");
    EXPECT_EQ(graph.machine().l1d_bytes, UINT64_MAX);
    EXPECT_EQ(graph.machine().nodes[2].os_index, 7u);
    EXPECT_EQ(graph.machine().nodes[0].os_index, TW_TOPO_NONE);
    EXPECT_EQ(graph.machine().nodes[1].uplink, 0u);
    EXPECT_EQ(graph.machine().links[0].latency_ps[1], 2u);
    EXPECT_EQ(graph.machine().links[0].bytes_per_s[0], 9u);
    EXPECT_EQ(graph.machine().links[0].origin, TW_TOPO_MEASURED);
    EXPECT_EQ(graph.machine().links[0].count, 0u);
    Graph cables;
    std::string text = kSmall;
    text.insert(text.find("back_resource"), "count='18' ");
    ASSERT_EQ(read(&cables.g, text), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(cables.machine().links[0].count, 18u);
    EXPECT_FALSE(tw_topo_graph_equal(cables.g, graph.g));
}

/* One change of the text above each, and what the error says. */
TEST(Xml, RefusesWithLineAndCause)
{
    const struct {
        const char *from, *to, *sentence;
    } faults[] = {
        {"<twill-topology", "<topology", "line 3: no topology of twill: it must begin with"},
        {"version='1' name", "name", "line 3: twill-topology has no attribute version"},
        {"version='1' name", "version='2' name", "line 3: version 2, not 1"},
        {"version='1' name", "version='' name", "not a number"},
        {"version='1' name", "version='1' colour='red' name", "not known: colour"},
        {"version='1' name", "version='1' version='1' name", "two attributes version"},
        {"version='1' name", "version='1'name", "does not end"},
        {"version='1' name", "version=1 name", "does not begin with a quotation mark"},
        {"version='1' name", "version '1' name", "'=' is missing"},
        {"&lt;b", "&b;", "an entity that is not known"},
        {"&lt;b", "&#10;", "a reference to no printable"},
        {"&lt;b", "&#xfff;", "a reference to no printable"},
        {"&lt;b", "&#;", "a reference to no printable"},
        {"&lt;b", "<", "a control character or '<'"},
        {"&lt;b", "\t", "a control character or '<'"},
        {"<!-- by hand -->", "<!-- by hand >", "a comment does not end"},
        {"<!-- by hand -->", "<!DOCTYPE x>", "a name is missing"},
        {"<!-- by hand -->", "<?php ?>", "a name is missing"},
        {"<!-- by hand -->", "hello", "line 2: text where an element is expected"},
        {"?>", "", "the declaration does not end"},
        {"kind='host'", "kind='toast'", "line 5: node kind=\"toast\": no such kind"},
        {"kind='host'", "kind='host' id='1'", "node id=\"1\": out of order, expected 0"},
        {"<node kind='host'/>", "", "line 6: node id=\"2\": out of order, expected 1"},
        {"<node kind='host'/>", "<node kind='core'/>", "must be the host"},
        {"kind='pu' parent='1'", "kind='pu' parent='4294967295'", "not a number from 0 to"},
        {"kind='pu' parent='1'", "kind='pu' parent='-1'", "not a number from 0 to"},
        {"kind='pu' parent='1'", "kind='pu' parent='2'", "does not stand before it"},
        {"<resource", "<resources", "no element resources may stand in machine"},
        {"bytes_per_s='10'", "bytes_per_s='99999999999999999999'", "not a number from 0 to"},
        {"bytes_per_s='10'", "bytes_per_s='1e9'", "not a number from 0 to"},
        {"bytes_per_s='9'", "bytes_per_s='11'", "above that of its resource"},
        {"origin='measured'", "origin='Measured'", "no such origin"},
        {"back_resource='0'", "back_resource='1'", "no such resource"},
        {"back_resource='0'", "back_resource='0' count='4097'", "not a number from 0 to 4096"},
        {"</node>", "</core>", "the end of core, not of node"},
        {"</node>", "<node kind='pu'/></node>", "an element that must be empty is not"},
        {"  </machine>\n", "", "no element hosts may stand in machine"},
        {"  </machine>\n  <hosts machine='0' count='1'/>\n", "",
         "the end of twill-topology inside machine"},
        {"count='1'", "count='0'", "0 hosts"},
        {"count='1'", "count='65537'", "not a number from 0 to 65536"},
        {"machine='0'", "machine='1'", "no machine 1"},
        {"</twill-topology>\n", "", "twill-topology does not end"},
        {"</twill-topology>\n", "</twill-topology>\n<x/>", "something behind the topology"},
        {"</twill-topology>\n", "<fabric><tier down='1' latency_ps='1'/></fabric></twill-topology>",
         "no net node for the fabric"},
        {"</twill-topology>\n", "<fabric rails='2'/></twill-topology>", "not a number from 0 to 1"},
    };
    for (const auto &fault : faults) {
        std::string text = kSmall;
        size_t at = text.find(fault.from);
        ASSERT_NE(at, std::string::npos) << fault.from;
        text.replace(at, strlen(fault.from), fault.to);
        struct tw_topo_graph *graph = nullptr;
        EXPECT_EQ(read(&graph, text), TWILL_ERR_INVALID) << fault.to;
        EXPECT_EQ(graph, nullptr);
        EXPECT_NE(std::string(tw_fail_text()).find(fault.sentence), std::string::npos)
            << fault.from << " -> " << fault.to << ": " << tw_fail_text();
    }
}

TEST(Xml, RefusesMoreThanItsBounds)
{
    struct tw_topo_graph *graph = nullptr;
    std::string start = "<twill-topology version='1' name='x'>";
    EXPECT_EQ(read(&graph, "<twill-topology version='1' name='" + std::string(600, 'x')),
              TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "a value of more than 511 bytes"), nullptr);
    EXPECT_EQ(read(&graph, "<twill-topology version='1' name='" + std::string(200, 'x') + "'>"),
              TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "more than 95 bytes"), nullptr) << tw_fail_text();
    EXPECT_EQ(read(&graph, "<" + std::string(50, 'x')), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "is too long"), nullptr) << tw_fail_text();
    std::string many = "<x";
    for (int i = 0; i < 20; i++)
        many += " a" + std::to_string(i) + "=''";
    EXPECT_EQ(read(&graph, many + "/>"), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "more than 16 attributes"), nullptr) << tw_fail_text();
    std::string tiers = start + "<fabric>";
    for (int i = 0; i < 5; i++)
        tiers += "<tier down='1' latency_ps='1'/>";
    EXPECT_EQ(read(&graph, tiers), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "more than 4 tiers"), nullptr) << tw_fail_text();
    std::string hosts = start + "<hosts machine='0' count='65536'/><hosts machine='0' count='1'/>";
    EXPECT_EQ(read(&graph, hosts), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "more than 65536 hosts"), nullptr) << tw_fail_text();
    EXPECT_EQ(read(&graph, ""), TWILL_ERR_INVALID);
    EXPECT_EQ(read(&graph, std::string("\0\0\0", 3)), TWILL_ERR_INVALID);
}

/* Every beginning of a topology is none. */
TEST(Xml, RefusesEveryBeginning)
{
    std::string all = kSmall;
    size_t end = all.find("</twill-topology>") + strlen("</twill-topology>");
    for (size_t bytes = 0; bytes < end; bytes++) {
        struct tw_topo_graph *graph = nullptr;
        EXPECT_EQ(read(&graph, all.substr(0, bytes)), TWILL_ERR_INVALID) << bytes;
        EXPECT_EQ(graph, nullptr);
    }
}

/* Bytes changed at random: an error, or a topology that is whole and reads as it is written. */
TEST(Xml, SurvivesChangedBytes)
{
    Graph source("pcie-4gpu:hosts=3,leaf=2");
    std::string all = xml_of(source.g);
    /* bytes that matter to the form, and a few that do not */
    const std::string bytes("<>/='\"&;# 0194-az\0\n\x80\xff", 22);
    std::mt19937 random(20261130);
    unsigned whole = 0;
    for (int turn = 0; turn < 400; turn++) {
        std::string text = turn % 2 ? std::string(kSmall) : all;
        for (unsigned change = 0; change <= random() % 3; change++)
            text[random() % text.size()] = bytes[random() % bytes.size()];
        Graph graph;
        enum twill_status status = read(&graph.g, text);
        if (status != TWILL_OK) {
            EXPECT_EQ(status, TWILL_ERR_INVALID);
            EXPECT_EQ(graph.g, nullptr);
            continue;
        }
        whole++;
        Graph again;
        std::string written = xml_of(graph.g);
        ASSERT_EQ(read(&again.g, written), TWILL_OK) << tw_fail_text();
        EXPECT_TRUE(tw_topo_graph_equal(graph.g, again.g));
    }
    EXPECT_GT(whole, 0u);
    EXPECT_LT(whole, 400u);
}

/* The page's example is in the form that is written, and whole. */
TEST(Xml, IsAsThePageShowsIt)
{
    std::ifstream in(SOURCE_DIR "/docs/topology.md");
    std::string page(std::istreambuf_iterator<char>(in), {});
    size_t start = page.find("```xml\n"), end = page.find("```\n", start + 7);
    ASSERT_NE(end, std::string::npos);
    std::string example = page.substr(start + 7, end - start - 7);
    Graph graph;
    ASSERT_EQ(read(&graph.g, example), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(xml_of(graph.g), example);
}

TEST(Xml, LoadsFiles)
{
    char path[] = "/tmp/twill-topo-XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    Graph source("arm-64c"), loaded, none;
    std::string text = xml_of(source.g);
    ASSERT_EQ(write(fd, text.data(), text.size()), (ssize_t)text.size());
    EXPECT_EQ(tw_topo_xml_load(&loaded.g, path), TWILL_OK) << tw_fail_text();
    EXPECT_TRUE(loaded.g && tw_topo_graph_equal(source.g, loaded.g));
    ASSERT_EQ(ftruncate(fd, (off_t)TW_TOPO_XML_BYTES_MOST + 1), 0);
    EXPECT_EQ(tw_topo_xml_load(&none.g, path), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "more than 64 MiB"), nullptr) << tw_fail_text();
    close(fd);
    unlink(path);
    EXPECT_EQ(tw_topo_xml_load(&none.g, path), TWILL_ERR_SYSTEM);
    EXPECT_NE(strstr(tw_fail_text(), "cannot be opened"), nullptr);
    EXPECT_EQ(tw_topo_xml_load(&none.g, "/tmp"), TWILL_ERR_SYSTEM);
    EXPECT_NE(strstr(tw_fail_text(), "cannot be read"), nullptr) << tw_fail_text();
    EXPECT_EQ(none.g, nullptr);
}

} // namespace
