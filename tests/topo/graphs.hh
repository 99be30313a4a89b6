/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: graphs that end by themselves, and short ways to ask. Never knows: what is right. */
#ifndef TESTS_TOPO_GRAPHS_HH
#define TESTS_TOPO_GRAPHS_HH

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

extern "C" {
#include "base/status.h"
#include "topo/graph.h"
#include "topo/xml.h"
}

struct Graph {
    struct tw_topo_graph *g = nullptr;
    Graph() = default;
    explicit Graph(const char *machine)
    {
        EXPECT_EQ(tw_topo_synthetic(&g, machine), TWILL_OK) << tw_fail_text();
    }
    ~Graph() { tw_topo_graph_free(g); }
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;
    struct tw_topo_machine &machine() { return g->machines[0]; }
    uint32_t nth(enum tw_topo_kind kind, uint32_t index)
    {
        return tw_topo_node_nth(&machine(), kind, index);
    }
    uint32_t cpu(uint32_t number) { return tw_topo_node_find(&machine(), TW_NODE_PU, number); }
};

struct Routes {
    struct tw_topo_routes *r = nullptr;
    explicit Routes(const struct tw_topo_graph *graph) : graph_(graph)
    {
        EXPECT_EQ(tw_topo_routes_create(&r, graph), TWILL_OK);
    }
    ~Routes() { tw_topo_routes_destroy(r); }
    Routes(const Routes &) = delete;
    Routes &operator=(const Routes &) = delete;
    struct tw_topo_path find(struct tw_topo_place from, struct tw_topo_place to,
                             enum tw_topo_via via = TW_TOPO_VIA_CACHE)
    {
        struct tw_topo_path path = {};
        EXPECT_EQ(tw_topo_path_find(r, from, to, via, &path), TWILL_OK) << tw_fail_text();
        return path;
    }
    /* what the path loads, in order */
    std::vector<std::string> loads(const struct tw_topo_path &path)
    {
        std::vector<std::string> names;
        for (uint32_t i = 0; i < path.nresources; i++) {
            char text[256];
            tw_topo_resource_text(graph_, path.resource[i], text, sizeof(text));
            names.push_back(text);
        }
        return names;
    }

  private:
    const struct tw_topo_graph *graph_;
};

inline std::string xml_of(const struct tw_topo_graph *graph)
{
    char *text = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(tw_topo_xml_write(graph, &text, &bytes), TWILL_OK);
    std::string all(text, bytes);
    free(text);
    return all;
}

#endif
