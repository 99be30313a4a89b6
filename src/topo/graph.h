/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: machines and clusters as plain data: nodes, links, what they share, paths, places.
 * Never knows: plans, communicators, how the facts were found. */
#ifndef TW_TOPO_GRAPH_H
#define TW_TOPO_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "twill.h"

/*
 * Model. A graph is a list of hosts, each an instance of a machine, and a fabric between them. A
 * machine is a tree of containment (host > package > NUMA > shared cache > core > PU; PCI roots,
 * switches, NICs and GPUs below the part that they are close to), in which each node has a link to
 * its parent, and further links beside the tree: NVLink, and each NIC's port to the world outside.
 * (The host, that world and an NVSwitch have no parent's link.) Thousands of equal hosts cost one
 * machine.
 *
 * Link. Two directions, each with a latency, the best rate of one flow, and a resource. A resource
 * is what flows contend for: its capacity is the rate of all flows together, and several directions
 * may name the same one (both directions of a memory bus do).
 *
 * Path. What one transfer crosses: the sum of latencies, the best rate of a lone flow, and the
 * resources that it loads, each as often as it crosses it. n flows of b bytes that load resource r
 * k times in all need at least k * b / capacity(r).
 *
 * Units: picoseconds (a hop inside a package is less than a few nanoseconds) and bytes per second,
 * as integers, so that text round-trips and ranks agree bit for bit.
 *
 * Identity. Nodes, links, resources are indices into the machine's arrays; a place is (host, node).
 * In a graph, resources of all hosts and of the fabric are numbered through:
 * host_resource[host] + machine resource, then the fabric's.
 */
#define TW_TOPO_NONE UINT32_MAX
#define TW_TOPO_NAME_BYTES 96
#define TW_TOPO_NOTE_BYTES 256
#define TW_TOPO_CABLES_MOST 4096
#define TW_TOPO_RATE_MOST 1000000000000000ull /* bytes a second; no link or resource has more */

enum tw_topo_kind {
    TW_NODE_HOST, /* node 0 of every machine; joins the packages */
    TW_NODE_PACKAGE,
    TW_NODE_NUMA,   /* the CPUs and the interconnect close to a memory */
    TW_NODE_MEMORY, /* the memory itself: below its NUMA node */
    TW_NODE_CACHE,  /* shared by several cores; private ones are facts of the machine */
    TW_NODE_CORE,
    TW_NODE_PU, /* hardware thread */
    TW_NODE_PCIROOT,
    TW_NODE_PCISWITCH,
    TW_NODE_NIC,
    TW_NODE_NET, /* the world outside, as seen from the host's NICs; at most one a machine */
    TW_NODE_GPU,
    TW_NODE_NVSWITCH, /* all switch chips of the host as one */
    TW_NODE_KIND_COUNT
};
/** "host", "package", ...; NULL past the end. */
const char *tw_topo_kind_name(unsigned kind);

/* Where a number is from. */
enum tw_topo_origin {
    TW_TOPO_ESTIMATE,  /* typical of the kind of part; nobody looked */
    TW_TOPO_SYSTEM,    /* hwloc, sysfs or a driver said so */
    TW_TOPO_MEASURED,  /* by the probe */
    TW_TOPO_SYNTHETIC, /* of a described machine that nobody has */
    TW_TOPO_ORIGIN_COUNT
};
/** "estimate", "system", "measured", "synthetic"; NULL past the end. */
const char *tw_topo_origin_name(unsigned origin);

struct tw_topo_node {
    uint8_t kind;
    uint8_t level;                 /* CACHE: 2, 3, ...; otherwise 0 */
    uint32_t parent;               /* a smaller index; NONE for the host alone */
    uint32_t uplink;               /* the link to the parent; NONE: HOST, NET, NVSWITCH */
    uint32_t os_index;             /* the kernel's number of a PU, core, NUMA node; NONE: none */
    uint64_t memory_bytes;         /* size of a MEMORY, CACHE, GPU's memory; 0: unknown or none */
    uint64_t memory_bytes_per_s;   /* GPU: rate of its own memory; 0: unknown or none */
    char name[TW_TOPO_NAME_BYTES]; /* "eth0", "0000:19:00.0"; "" when the kind and index say all */
    char model[TW_TOPO_NAME_BYTES];
};

struct tw_topo_link {
    uint32_t from, to; /* a tree link goes from child to parent */
    uint8_t origin;
    /* [0] from -> to, [1] to -> from */
    uint64_t latency_ps[2];
    uint64_t bytes_per_s[2]; /* of one flow; > 0 */
    uint32_t resource[2];
    uint32_t count; /* cables that are this one link together (NVLink); 0: unknown, or none */
};

struct tw_topo_resource {
    uint32_t node;        /* whose it is, for people */
    uint64_t bytes_per_s; /* of all flows together; > 0 */
};

struct tw_topo_machine {
    char name[TW_TOPO_NAME_BYTES];
    char cpu_model[TW_TOPO_NAME_BYTES]; /* "" unknown */
    uint8_t origin;
    uint64_t l1d_bytes, l2_bytes, l3_bytes; /* what one core sees; 0 unknown or none */
    uint32_t nnodes, nlinks, nresources, nnotes;
    struct tw_topo_node *nodes; /* owned, as are the others */
    struct tw_topo_link *links;
    struct tw_topo_resource *resources;
    char **notes; /* what is unknown or assumed, a sentence each */
};

/*
 * Fabric: tiers of switches. A switch of tier 0 joins `down` hosts, one of tier t `down` switches
 * of tier t-1; the last tier joins all. rails: tier 0 has a switch for each NIC number (NIC i of
 * all its hosts), so that a path between NICs of different numbers goes through tier 1. The port of
 * a host is its machine's link NIC - NET.
 */
#define TW_TOPO_TIERS_MOST 4
struct tw_topo_tier {
    uint32_t down;
    uint64_t latency_ps;     /* through one switch */
    uint64_t up_bytes_per_s; /* of one switch to the tier above, each direction; top tier: unused */
};
struct tw_topo_fabric {
    uint32_t ntiers; /* 0: one host */
    bool rails;
    struct tw_topo_tier tier[TW_TOPO_TIERS_MOST];
};

struct tw_topo_graph {
    char name[TW_TOPO_NAME_BYTES]; /* "synthetic-..." for what nobody has */
    uint32_t nmachines, nhosts;
    struct tw_topo_machine *machines; /* owned, as are the others */
    uint32_t *host_machine;           /* [nhosts] */
    struct tw_topo_fabric fabric;
    /* filled by tw_topo_graph_seal */
    uint32_t *host_resource; /* [nhosts + 1]: first resource of a host; last: of the fabric */
    uint32_t nresources;
    uint32_t tier_resource[TW_TOPO_TIERS_MOST]; /* first of a tier: up of switch 0, its down, ... */
};

void tw_topo_graph_free(struct tw_topo_graph *graph);

static inline const struct tw_topo_machine *tw_topo_machine_of(const struct tw_topo_graph *graph,
                                                               uint32_t host)
{
    return &graph->machines[graph->host_machine[host]];
}

/** Capacity of a resource, numbered through the graph; bytes a second. resource < nresources. */
uint64_t tw_topo_resource_rate(const struct tw_topo_graph *graph, uint32_t resource);

/** What a resource is, for people: by the first link that loads it, "host 3: gpu gpu1 > pciswitch
 * switch0", or "tier 0 switch 2 up". Cut to fit. */
void tw_topo_resource_text(const struct tw_topo_graph *graph, uint32_t resource, char *text,
                           size_t text_bytes);

/** A node, for people: "core 3", "nic mlx5_0", "pciroot (node 134)". Cut to fit. */
void tw_topo_node_text(const struct tw_topo_machine *machine, uint32_t node, char *text,
                       size_t text_bytes);

/* ---- getting one ---------------------------------------------------------------------------- */

/**
 * A described machine or a cluster of it, by name: "amd-2s-nps4", or with hosts and a fabric,
 * "nvswitch-8gpu:hosts=64,leaf=16,oversub=2,rails=1". The name may begin with "synthetic-"; the
 * graph's does.
 *
 *   hosts    1 (the default) to 65536
 *   leaf     hosts under a switch of tier 0 (default 32); more hosts than that need a second tier
 *   oversub  1 to 64: how much less the uplinks of a leaf carry than its hosts' ports (default 1)
 *   rails    0 or 1, default: 1 where the machine has a NIC for each GPU
 *
 * @param graph  out; owned by the caller; untouched on error
 * @return TWILL_OK; TWILL_ERR_INVALID no such machine (the sentence lists them) or option
 */
enum twill_status tw_topo_synthetic(struct tw_topo_graph **graph, const char *name);
/** Names and descriptions of the machines, from 0 until NULL. */
const char *tw_topo_synthetic_name(unsigned index, const char **text);

/* Which CPUs of this host. */
enum tw_topo_scope {
    TW_TOPO_SCOPE_PROCESS, /* affinity and cgroup of this process */
    TW_TOPO_SCOPE_GROUP    /* the cgroup alone: the same for all ranks of a job on a host, whatever
                              each is bound to */
};
/**
 * This host as a graph of one: what may be used of it, its PCI devices, numbers by estimate where
 * the system does not say. Slow (tens of milliseconds). Two calls need not agree in all (memory is
 * plugged in, a port changes its speed): ranks that must have equal graphs take one rank's.
 *
 * @return TWILL_OK; TWILL_ERR_SYSTEM hwloc failed; TWILL_ERR_NOMEM; TWILL_ERR_INVALID a parameter
 *         does not parse
 */
enum twill_status tw_topo_discover(struct tw_topo_graph **graph, enum tw_topo_scope scope);

/* ---- paths ---------------------------------------------------------------------------------- */

struct tw_topo_place {
    uint32_t host, node; /* node: a PU, GPU or MEMORY of the host's machine */
};

enum tw_topo_via {
    TW_TOPO_VIA_CACHE, /* through the nearest common cache or interconnect: small messages */
    TW_TOPO_VIA_MEMORY /* on one host, to a PU: into the memory close to it and from there, as what
                          caches do not hold; otherwise as above */
};

#define TW_TOPO_PATH_MOST 96
struct tw_topo_path {
    uint64_t latency_ps;
    uint64_t bytes_per_s; /* of a lone flow */
    uint32_t nresources;
    uint32_t resource[TW_TOPO_PATH_MOST]; /* of the graph, in order; twice when crossed twice */
};

/* Shortest paths inside machines, found when first asked for and kept. */
struct tw_topo_routes;

/** @param graph  borrowed; must outlive the routes and not change */
enum twill_status tw_topo_routes_create(struct tw_topo_routes **routes,
                                        const struct tw_topo_graph *graph);
void tw_topo_routes_destroy(struct tw_topo_routes *routes);

/**
 * The path of a transfer: the one that is quickest for 64 KiB, the first in order of links among
 * equals. Nothing passes through a PU, a GPU, a memory or a third host. Between hosts it leaves by
 * the NIC that is quickest from `from` and arrives by the one quickest to `to`; where several are,
 * places of a kind take turns by their number. A place to itself:
 * latency 0 and no resource, at the rate of the core (PU) or of the GPU's memory
 * (TW_TOPO_RATE_MOST when unknown); a PU by way of memory, there and back.
 *
 * @return TWILL_OK; TWILL_ERR_INVALID no such place, or no way (a host without NIC);
 *         TWILL_ERR_NOMEM. Threads: one caller per routes.
 */
enum twill_status tw_topo_path_find(struct tw_topo_routes *routes, struct tw_topo_place from,
                                    struct tw_topo_place to, enum tw_topo_via via,
                                    struct tw_topo_path *path);

/* ---- places --------------------------------------------------------------------------------- */

enum tw_topo_order {
    TW_TOPO_PACKED, /* fill a host, unit by unit, then the next */
    TW_TOPO_CYCLIC  /* one on each host in turn */
};

/**
 * Places of ranks 0 .. ranks-1. kind PU: the first hardware thread of each core before the second
 * ones, cores in order of the machine; kind GPU: GPUs in order. `per_host` ranks go on a host (0:
 * as many as it has units of the kind); more ranks than units share units in turn.
 *
 * @param places  out, [ranks]
 * @return TWILL_OK; TWILL_ERR_INVALID a host without such a unit, or more ranks than places
 *         (hosts * per_host)
 */
enum twill_status tw_topo_place_ranks(const struct tw_topo_graph *graph, enum tw_topo_kind kind,
                                      enum tw_topo_order order, uint32_t per_host, uint32_t ranks,
                                      struct tw_topo_place *places);

/** The node of a kind with the kernel's number (PU, CORE, NUMA). @return TW_TOPO_NONE when there is
 * none */
uint32_t tw_topo_node_find(const struct tw_topo_machine *machine, enum tw_topo_kind kind,
                           uint32_t os_index);
/** How many of a kind, and the index-th of them (TW_TOPO_NONE past the end). */
uint32_t tw_topo_node_count(const struct tw_topo_machine *machine, enum tw_topo_kind kind);
uint32_t tw_topo_node_nth(const struct tw_topo_machine *machine, enum tw_topo_kind kind,
                          uint32_t index);

/* How close two PUs of a machine are: the innermost part that holds both. */
enum tw_topo_near {
    TW_TOPO_NEAR_CORE,
    TW_TOPO_NEAR_L2,
    TW_TOPO_NEAR_L3, /* or an outer cache */
    TW_TOPO_NEAR_NUMA,
    TW_TOPO_NEAR_PACKAGE,
    TW_TOPO_NEAR_HOST,
    TW_TOPO_NEAR_COUNT
};
/** "core", "l2", ...; NULL past the end. */
const char *tw_topo_near_name(unsigned near);
/** Of two different PUs. */
enum tw_topo_near tw_topo_near_of(const struct tw_topo_machine *machine, uint32_t pu_a,
                                  uint32_t pu_b);

/* ---- making one ----------------------------------------------------------------------------- */

/** Empty graph of one empty machine and one host of it; NULL: no memory (tw_fail was called). */
struct tw_topo_graph *tw_topo_graph_create(const char *name);
/** One more machine / host / note. TW_TOPO_NONE or false: no memory (tw_fail was called). */
uint32_t tw_topo_machine_add(struct tw_topo_graph *graph);
bool tw_topo_hosts_add(struct tw_topo_graph *graph, uint32_t machine, uint32_t count);
bool tw_topo_note_add(struct tw_topo_machine *machine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Copies node, link, resource to the end of the machine's list. @return index, or TW_TOPO_NONE: no
 * memory (tw_fail was called). A node's parent must be there; its uplink is set by the link. */
uint32_t tw_topo_node_add(struct tw_topo_machine *machine, const struct tw_topo_node *node);
uint32_t tw_topo_link_add(struct tw_topo_machine *machine, const struct tw_topo_link *link);
uint32_t tw_topo_resource_add(struct tw_topo_machine *machine, uint32_t node, uint64_t bytes_per_s);

/**
 * Check everything (a graph may come from a file) and number the resources. To be called once when
 * all is added, and again after a change.
 *
 * @return TWILL_OK; TWILL_ERR_INVALID with machine, node or link and what is wrong; TWILL_ERR_NOMEM
 */
enum twill_status tw_topo_graph_seal(struct tw_topo_graph *graph);

/** Equal in every value. */
bool tw_topo_graph_equal(const struct tw_topo_graph *a, const struct tw_topo_graph *b);
/** Of a sealed graph; equal graphs have equal hashes, on every host. 0: no memory (tw_fail was
 * called). */
uint64_t tw_topo_graph_hash(const struct tw_topo_graph *graph);

#endif
