/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the rows of the cost table, their names, bounds and built-in values.
 * Never knows: how they are written, how a price is made. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plan/cost.h"

#define PS_OF_NS 1000u
#define TIME_MOST ((uint64_t)1000 * 1000 * 1000 * 1000) /* a second, in ps */
#define RATE_MOST ((uint64_t)100 * 1000 * 1000)         /* 100 TB/s */
#define BYTES_MOST ((uint64_t)1 << 50)
#define COUNT_MOST 65536u

struct exec_row {
    const char *name;
    enum tw_cost_unit unit;
    uint64_t dflt[TW_COST_EXEC_COUNT];
    const char *doc;
};
static const struct exec_row exec_rows[TW_COST_EXEC_FIELDS] = {
#define TW_COST_EXEC_ROW(field, name, unit, host, gpu, doc)                                        \
    {name, TW_COST_UNIT_##unit, {host, gpu}, doc},
#include "plan/cost_param.def"
#undef TW_COST_EXEC_ROW
};
static const char *const exec_names[TW_COST_EXEC_COUNT] = {"host", "gpu"};

struct link_row {
    const char *name;
    enum tw_cost_unit unit;
    const char *doc;
};
static const struct link_row link_rows[TW_COST_LINK_FIELDS] = {
#define TW_COST_LINK_ROW(field, name, unit, doc) {name, TW_COST_UNIT_##unit, doc},
#include "plan/cost_param.def"
#undef TW_COST_LINK_ROW
};

struct link_kind {
    const char *name;
    enum tw_cost_carrier carrier;
    uint64_t dflt[TW_COST_LINK_FIELDS];
};
static const struct link_kind link_kinds[TW_COST_LINK_COUNT] = {
#define TW_COST_LINK_KIND(kind, name, carrier, latency, rate, post, doc)                           \
    {name, TW_COST_##carrier, {latency, rate, post}},
#include "plan/cost_param.def"
#undef TW_COST_LINK_KIND
};

static const struct link_row proto_rows[TW_COST_PROTO_FIELDS] = {
#define TW_COST_PROTO_ROW(field, name, unit, doc) {name, TW_COST_UNIT_##unit, doc},
#include "plan/cost_param.def"
#undef TW_COST_PROTO_ROW
};

struct proto {
    const char *name;
    uint64_t dflt[TW_COST_PROTO_FIELDS];
};
static const struct proto protos[TW_COST_PROTO_COUNT] = {
#define TW_COST_PROTO(kind, name, start, rate, block, grain, blocks)                               \
    [TW_COST_PROTO_##kind] = {name, {start, rate, block, grain, blocks}},
#define TW_COST_COPIES(kind, name, start, rate) [TW_COST_PROTO_##kind] = {name, {start, rate}},
#include "plan/cost_param.def"
#undef TW_COST_PROTO
#undef TW_COST_COPIES
};

/* ---- rows ----------------------------------------------------------------------------------- */

static void row_bounds(struct tw_cost_row *row)
{
    switch (row->unit) {
    case TW_COST_UNIT_NS:
        row->dflt *= PS_OF_NS;
        row->least = 0;
        row->most = TIME_MOST;
        break;
    case TW_COST_UNIT_MBS:
        row->least = 1;
        row->most = RATE_MOST;
        break;
    case TW_COST_UNIT_BYTES:
        row->least = 1;
        row->most = BYTES_MOST;
        break;
    case TW_COST_UNIT_COUNT:
        row->least = 1;
        row->most = COUNT_MOST;
        break;
    }
}

static void row_of_exec(uint32_t index, struct tw_cost_row *row)
{
    const uint32_t exec = index / TW_COST_EXEC_FIELDS;
    const struct exec_row *from = &exec_rows[index % TW_COST_EXEC_FIELDS];
    snprintf(row->name, sizeof(row->name), "%s.%s", exec_names[exec], from->name);
    row->unit = from->unit;
    row->dflt = from->dflt[exec];
    row->doc = from->doc;
}

static void row_of_kind(const char *kind, const struct link_row *from, uint64_t dflt,
                        struct tw_cost_row *row)
{
    snprintf(row->name, sizeof(row->name), "%s.%s", kind, from->name);
    row->unit = from->unit;
    row->dflt = dflt;
    row->doc = from->doc;
}

static void row_of_proto(uint32_t proto, uint32_t field, struct tw_cost_row *row)
{
    row_of_kind(protos[proto].name, &proto_rows[field], protos[proto].dflt[field], row);
}

bool tw_cost_row_get(uint32_t index, struct tw_cost_row *row)
{
    const uint32_t execs = TW_COST_EXEC_COUNT * TW_COST_EXEC_FIELDS;
    const uint32_t copies = TW_COST_PLAN_VALUES + TW_COST_KERNEL_VALUES;
    if (index >= TW_COST_VALUES)
        return false;
    *row = (struct tw_cost_row){.unit = TW_COST_UNIT_NS};
    if (index < execs) {
        row_of_exec(index, row);
    } else if (index < TW_COST_PLAN_VALUES) {
        const struct link_kind *kind = &link_kinds[(index - execs) / TW_COST_LINK_FIELDS];
        const uint32_t field = (index - execs) % TW_COST_LINK_FIELDS;
        row_of_kind(kind->name, &link_rows[field], kind->dflt[field], row);
    } else if (index < copies) {
        const uint32_t at = index - TW_COST_PLAN_VALUES;
        row_of_proto(at / TW_COST_PROTO_FIELDS, at % TW_COST_PROTO_FIELDS, row);
    } else {
        const uint32_t at = index - copies;
        row_of_proto(TW_COST_PROTO_KERNELS + at / TW_COST_COPIES_FIELDS, at % TW_COST_COPIES_FIELDS,
                     row);
    }
    row_bounds(row);
    return true;
}

uint32_t tw_cost_row_find(const char *name)
{
    struct tw_cost_row row;
    for (uint32_t i = 0; tw_cost_row_get(i, &row); i++)
        if (strcmp(row.name, name) == 0)
            return i;
    return TW_COST_NONE;
}

const char *tw_cost_link_name(unsigned kind)
{
    return kind < TW_COST_LINK_COUNT ? link_kinds[kind].name : NULL;
}

enum tw_cost_carrier tw_cost_link_carrier(enum tw_cost_link_kind kind)
{
    return link_kinds[kind].carrier;
}

void tw_cost_table_default(struct tw_cost_table *table)
{
    struct tw_cost_row row;
    for (uint32_t i = 0; tw_cost_row_get(i, &row); i++)
        table->value[i] = row.dflt;
}

uint64_t tw_cost_table_hash(const struct tw_cost_table *table)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a over the values, low byte first */
    for (uint32_t i = 0; i < TW_COST_VALUES; i++)
        for (int shift = 0; shift < 64; shift += 8)
            hash = (hash ^ (table->value[i] >> shift & 0xff)) * 0x100000001b3u;
    return hash ? hash : 1;
}
