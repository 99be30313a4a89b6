/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what makes a graph whole. Never knows: where it came from. */
#ifndef TW_TOPO_CHECK_H
#define TW_TOPO_CHECK_H

#include "topo/graph.h"

#define TW_TOPO_NODES_MOST 65536u
#define TW_TOPO_HOSTS_MOST 65536u
#define TW_TOPO_LATENCY_PS_MOST 1000000000000ull /* a second */
#define TW_TOPO_RESOURCES_MOST 1000000000u       /* of a graph */

/** As tw_topo_graph_seal, without the numbering. */
enum twill_status tw_topo_graph_check(const struct tw_topo_graph *graph);

/** Switches of a tier (tier < ntiers), a rail's counted each. */
uint32_t tw_topo_tier_switches(const struct tw_topo_graph *graph, uint32_t tier);

#endif
