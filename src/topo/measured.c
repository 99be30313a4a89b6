/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a few milliseconds of measuring tell of a host, as plain data.
 * Never knows: how it was measured, how ranks exchange it. */
#include "config.h"

#include "topo/measured.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/status.h"
#include "topo/build.h"
#include "topo/check.h"

#define WIRE_VERSION 2u
#define FIELDS (TW_TOPO_MEASURED_BYTES / 8 - 1)

/* ---- merge ---------------------------------------------------------------------------------- */

static void take_least(uint64_t *into, uint64_t from)
{
    if (from != 0 && (*into == 0 || from < *into))
        *into = from;
}

static void take_most(uint64_t *into, uint64_t from)
{
    if (from > *into)
        *into = from;
}

void tw_topo_measured_merge(struct tw_topo_measured *into, const struct tw_topo_measured *from)
{
    for (int n = 0; n < TW_TOPO_NEAR_COUNT; n++)
        take_least(&into->line_ps[n], from->line_ps[n]);
    for (int c = 0; c < TW_TOPO_COPY_COUNT; c++) {
        /* rate and size stay together; of equal rates the larger size */
        bool better = from->copy_bytes_per_s[c] > into->copy_bytes_per_s[c];
        bool equal = from->copy_bytes_per_s[c] == into->copy_bytes_per_s[c];
        if (better || (equal && from->copy_bytes[c] > into->copy_bytes[c])) {
            into->copy_bytes[c] = from->copy_bytes[c];
            into->copy_bytes_per_s[c] = from->copy_bytes_per_s[c];
        }
    }
    take_least(&into->switch_ps, from->switch_ps);
    take_least(&into->cma_call_ps, from->cma_call_ps);
    take_most(&into->cma_bytes_per_s, from->cma_bytes_per_s);
}

/* ---- wire ----------------------------------------------------------------------------------- */

/* The fields in the order of the wire. */
static void fields_list(struct tw_topo_measured *measured, uint64_t *field[FIELDS],
                        uint64_t most[FIELDS])
{
    size_t n = 0;
    for (int i = 0; i < TW_TOPO_NEAR_COUNT; i++) {
        most[n] = TW_TOPO_LATENCY_PS_MOST;
        field[n++] = &measured->line_ps[i];
    }
    for (int i = 0; i < TW_TOPO_COPY_COUNT; i++) {
        most[n] = UINT64_MAX;
        field[n++] = &measured->copy_bytes[i];
    }
    for (int i = 0; i < TW_TOPO_COPY_COUNT; i++) {
        most[n] = TW_TOPO_RATE_MOST;
        field[n++] = &measured->copy_bytes_per_s[i];
    }
    most[n] = TW_TOPO_LATENCY_PS_MOST;
    field[n++] = &measured->switch_ps;
    most[n] = TW_TOPO_LATENCY_PS_MOST;
    field[n++] = &measured->cma_call_ps;
    most[n] = TW_TOPO_RATE_MOST;
    field[n++] = &measured->cma_bytes_per_s;
}

static void word_put(uint8_t *bytes, uint64_t word)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(word >> (8 * i));
}

static uint64_t word_get(const uint8_t *bytes)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

void tw_topo_measured_pack(const struct tw_topo_measured *measured,
                           uint8_t bytes[TW_TOPO_MEASURED_BYTES])
{
    struct tw_topo_measured copy = *measured;
    uint64_t *field[FIELDS], most[FIELDS];
    fields_list(&copy, field, most);
    word_put(bytes, WIRE_VERSION);
    for (size_t i = 0; i < FIELDS; i++)
        word_put(bytes + 8 * (i + 1), *field[i]);
}

enum twill_status tw_topo_measured_unpack(struct tw_topo_measured *measured,
                                          const uint8_t bytes[TW_TOPO_MEASURED_BYTES])
{
    struct tw_topo_measured got;
    uint64_t *field[FIELDS], most[FIELDS];
    fields_list(&got, field, most);
    if (word_get(bytes) != WIRE_VERSION)
        return tw_fail(TWILL_ERR_PEER, "measurements: version %llu, not %u",
                       (unsigned long long)word_get(bytes), WIRE_VERSION);
    for (size_t i = 0; i < FIELDS; i++) {
        *field[i] = word_get(bytes + 8 * (i + 1));
        if (*field[i] > most[i])
            return tw_fail(TWILL_ERR_PEER, "measurements: field %zu is %llu, more than %llu", i,
                           (unsigned long long)*field[i], (unsigned long long)most[i]);
    }
    *measured = got;
    return TWILL_OK;
}

uint64_t tw_topo_measured_hash(const struct tw_topo_measured *measured)
{
    uint8_t bytes[TW_TOPO_MEASURED_BYTES];
    tw_topo_measured_pack(measured, bytes);
    return tw_hash64(bytes, sizeof(bytes));
}

/* ---- into a machine ------------------------------------------------------------------------- */

/* What the machine has now for each nearness; 0: it has no such part. */
static void lines_now(const struct tw_topo_machine *machine, uint64_t line_ps[TW_TOPO_NEAR_COUNT])
{
    memset(line_ps, 0, TW_TOPO_NEAR_COUNT * sizeof(*line_ps));
    for (uint32_t i = 0; i < machine->nnodes; i++) {
        if (machine->nodes[i].kind != TW_NODE_PU)
            continue;
        uint64_t around_ps = 0;
        for (uint32_t at = i; at != 0; at = machine->nodes[at].parent) {
            const struct tw_topo_link *link = &machine->links[machine->nodes[at].uplink];
            around_ps += link->latency_ps[0] + link->latency_ps[1];
            int near = tw_topo_part_near(&machine->nodes[machine->nodes[at].parent]);
            if (near >= 0 && around_ps > line_ps[near])
                line_ps[near] = around_ps;
        }
    }
}

/* Measured where there is a measurement, else as it was; never falling from inner to outer parts.
 */
static void lines_choose(const struct tw_topo_measured *measured,
                         uint64_t line_ps[TW_TOPO_NEAR_COUNT])
{
    uint64_t bound = UINT64_MAX;
    for (int n = TW_TOPO_NEAR_COUNT - 1; n >= 0; n--) {
        if (measured->line_ps[n] != 0)
            bound = line_ps[n] = measured->line_ps[n];
        else if (line_ps[n] > bound)
            line_ps[n] = bound;
    }
    for (int n = 1; n < TW_TOPO_NEAR_COUNT; n++)
        if (line_ps[n] < line_ps[n - 1])
            line_ps[n] = line_ps[n - 1];
}

static void rate_set(struct tw_topo_machine *machine, uint32_t index, uint64_t bytes_per_s,
                     bool shared)
{
    struct tw_topo_link *link = &machine->links[index];
    for (int d = 0; d < 2; d++) {
        struct tw_topo_resource *resource = &machine->resources[link->resource[d]];
        link->bytes_per_s[d] = bytes_per_s;
        /* a part that many share carries at least what one flow has been seen to get */
        if (!shared || resource->bytes_per_s < bytes_per_s)
            resource->bytes_per_s = bytes_per_s;
    }
    link->origin = TW_TOPO_MEASURED;
}

static void rates_apply(const struct tw_topo_measured *measured, struct tw_topo_machine *machine)
{
    const uint64_t *copy = measured->copy_bytes_per_s;
    uint64_t core = copy[TW_TOPO_COPY_L3]   ? copy[TW_TOPO_COPY_L3]
                    : copy[TW_TOPO_COPY_L2] ? copy[TW_TOPO_COPY_L2]
                                            : copy[TW_TOPO_COPY_L1];
    for (uint32_t i = 1; i < machine->nnodes; i++) {
        const struct tw_topo_node *node = &machine->nodes[i];
        if (core && (node->kind == TW_NODE_PU || node->kind == TW_NODE_CORE))
            rate_set(machine, node->uplink, core, false);
        else if (copy[TW_TOPO_COPY_MEMORY] && node->kind == TW_NODE_MEMORY)
            rate_set(machine, node->uplink, copy[TW_TOPO_COPY_MEMORY], true);
    }
    /* other links may share the resources of those */
    for (uint32_t i = 0; i < 2 * machine->nlinks; i++) {
        const struct tw_topo_link *link = &machine->links[i / 2];
        take_most(&machine->resources[link->resource[i % 2]].bytes_per_s, link->bytes_per_s[i % 2]);
    }
}

enum twill_status tw_topo_measured_apply(const struct tw_topo_measured *measured,
                                         struct tw_topo_machine *machine)
{
    uint64_t line_ps[TW_TOPO_NEAR_COUNT];
    uint64_t *around_ps = calloc((size_t)machine->nnodes + 1, sizeof(*around_ps));
    if (!around_ps)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for %u nodes", machine->nnodes);
    bool lines = false;
    for (int n = 0; n < TW_TOPO_NEAR_COUNT; n++)
        lines |= measured->line_ps[n] != 0;
    lines_now(machine, line_ps);
    lines_choose(measured, line_ps);
    tw_topo_tree_around(machine, line_ps, around_ps);
    for (uint32_t i = 1; i < machine->nnodes && lines; i++) {
        const struct tw_topo_node *node = &machine->nodes[i];
        if (node->kind != TW_NODE_PU && tw_topo_part_near(node) < 0)
            continue;
        uint64_t both_ps = around_ps[node->parent] - around_ps[i];
        struct tw_topo_link *link = &machine->links[node->uplink];
        link->latency_ps[0] = both_ps / 2;
        link->latency_ps[1] = both_ps - both_ps / 2;
        link->origin = TW_TOPO_MEASURED;
    }
    free(around_ps);
    rates_apply(measured, machine);
    return TWILL_OK;
}
