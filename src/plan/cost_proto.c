/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a call on devices takes by each protocol. Never knows: kernels, which protocol can
 * serve a call. */
#include "config.h"

#include "plan/cost.h"

#define PS_OF_US 1000000u /* bytes over MB/s are us */

static uint64_t value_of(const struct tw_cost_table *table, enum tw_cost_proto proto,
                         enum tw_cost_proto_field field)
{
    return table->value[tw_cost_proto_index(proto, field)];
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t time_of(uint64_t bytes, uint64_t rate)
{
    return plus(times(bytes / rate, PS_OF_US), bytes % rate * PS_OF_US / rate);
}

static bool is_lines(enum tw_cost_proto proto)
{
    return proto == TW_COST_PROTO_LINES || proto == TW_COST_PROTO_PINNED_LINES;
}

uint32_t tw_cost_proto_blocks(const struct tw_cost_table *table, enum tw_cost_proto proto,
                              uint64_t bytes)
{
    const uint64_t grain = value_of(table, proto, TW_COST_PROTO_GRAIN);
    const uint64_t most = value_of(table, proto, TW_COST_PROTO_BLOCKS);
    const uint64_t blocks = bytes / grain + (bytes % grain != 0);

    return (uint32_t)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* That the busiest rank sends or takes. An all_reduce by lines sends everything to everybody;
 * otherwise shares go to whoever sums them, and come back. */
static uint64_t wire_bytes(enum tw_cost_proto proto, enum tw_coll coll, uint64_t peers,
                           uint64_t bytes)
{
    if (coll == TW_COLL_ALL_REDUCE && !is_lines(proto))
        return times(2 * peers, bytes / (peers + 1) + (bytes % (peers + 1) != 0));
    return times(peers, bytes);
}

uint64_t tw_cost_proto_price(const struct tw_cost_table *table, enum tw_cost_proto proto,
                             enum tw_coll coll, int nranks, uint64_t bytes, uint32_t blocks)
{
    const uint64_t peers = (uint64_t)nranks - 1;
    const uint64_t wire = wire_bytes(proto, coll, peers, bytes);
    uint64_t start = value_of(table, proto, TW_COST_PROTO_START);
    uint64_t rate = value_of(table, proto, TW_COST_PROTO_RATE);

    if (proto < TW_COST_PROTO_KERNELS) {
        const uint64_t at_once = times(is_lines(proto) && peers > 0 ? peers : 1, blocks);
        const uint64_t all = times(at_once, value_of(table, proto, TW_COST_PROTO_BLOCK));
        rate = all < rate ? all : rate;
    } else {
        start = times(start, peers);
    }
    return plus(start, time_of(wire, rate));
}

/* Each rank sends to the next, round by round; what a root has, or is to have, goes by all ranks
 * once. */
uint64_t tw_cost_ring_price(const struct tw_cost_table *table, enum tw_coll coll, int nranks,
                            uint64_t bytes, uint32_t channels)
{
    const enum tw_cost_proto proto = TW_COST_PROTO_PLANS;
    const uint64_t peers = (uint64_t)nranks - 1;
    const uint64_t wire =
        tw_coll_rule(coll)->rooted ? bytes : wire_bytes(proto, coll, peers, bytes);
    const uint64_t rounds = coll == TW_COLL_ALL_REDUCE ? 2 * peers : peers;
    const uint64_t most = value_of(table, proto, TW_COST_PROTO_BLOCKS);
    const uint64_t blocks = channels < most ? channels : most;
    const uint64_t all = times(blocks, value_of(table, proto, TW_COST_PROTO_BLOCK));
    uint64_t rate = value_of(table, proto, TW_COST_PROTO_RATE);

    rate = all < rate ? all : rate;
    return plus(times(value_of(table, proto, TW_COST_PROTO_START), rounds), time_of(wire, rate));
}
