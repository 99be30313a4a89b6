/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/case.h"

#include <algorithm>

#include "device/reference.h"
#include "gpu/base.h"

namespace gpu
{

static const char *const kind_names[KINDS] = {
    "all_reduce",   "reduce",   "broadcast", "reduce_scatter",   "all_gather",
    "all_to_all",   "gather",   "scatter",   "reduce_scatter_v", "all_gather_v",
    "all_to_all_v", "gather_v", "scatter_v", "barrier"};

const char *name(Kind kind) { return kind_names[kind]; }
bool varies(Kind kind) { return kind >= REDUCE_SCATTER_V && kind <= SCATTER_V; }
/* The collective with equal blocks. */
static Kind plain(Kind kind)
{
    static const Kind kinds[] = {REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, GATHER, SCATTER};
    return varies(kind) ? kinds[kind - REDUCE_SCATTER_V] : kind;
}

bool reduces(Kind kind)
{
    return kind == ALL_REDUCE || kind == REDUCE || plain(kind) == REDUCE_SCATTER;
}
bool has_root(Kind kind)
{
    return kind == REDUCE || kind == BROADCAST || plain(kind) == GATHER || plain(kind) == SCATTER;
}
bool many_in(Kind kind)
{
    const Kind is = plain(kind);
    return is == REDUCE_SCATTER || is == ALL_TO_ALL || is == SCATTER;
}
bool many_out(Kind kind)
{
    const Kind is = plain(kind);
    return is == ALL_GATHER || is == ALL_TO_ALL || is == GATHER;
}
bool has_in(Kind kind, bool at_root)
{
    return kind != BARRIER && (at_root || (kind != BROADCAST && plain(kind) != SCATTER));
}
bool has_out(Kind kind, bool at_root)
{
    return kind != BARRIER && (at_root || (kind != REDUCE && plain(kind) != GATHER));
}

const char *op_name(int op)
{
    return op == PREMUL_VALUE     ? "premul_sum (value)"
           : op == PREMUL_POINTER ? "premul_sum (pointer)"
                                  : reference::name((twill_redop_t)op);
}

/* ---- where blocks lie --------------------------------------------------------------------------
 */

size_t Case::block(int from, int to) const
{
    if (counts.empty())
        return count;
    if (kind == ALL_TO_ALL_V)
        return counts[(size_t)(from * size + to)];
    return counts[(size_t)(many_in(kind) ? to : from)];
}

size_t Case::in_before(int rank, int to) const
{
    size_t before = 0;
    for (int peer = 0; many_in(kind) && peer < to; peer++)
        before += block(rank, peer);
    return before;
}

size_t Case::in_count(int rank) const
{
    return many_in(kind) ? in_before(rank, size) : block(rank, root);
}

size_t Case::in_first(int rank, int to) const
{
    const std::vector<size_t> &at = ranks[(size_t)rank].in_at;
    return at.empty() ? in_before(rank, to) : at[(size_t)to];
}

size_t Case::out_first(int rank, int from) const
{
    const std::vector<size_t> &at = ranks[(size_t)rank].out_at;
    size_t before = 0;

    if (!at.empty())
        return at[(size_t)from];
    for (int peer = 0; many_out(kind) && peer < from; peer++)
        before += block(peer, rank);
    return before;
}

size_t Case::in_extent(int rank) const
{
    size_t extent = many_in(kind) ? 0 : in_count(rank);
    for (int to = 0; many_in(kind) && to < size; to++)
        if (block(rank, to) != 0)
            extent = std::max(extent, in_first(rank, to) + block(rank, to));
    return extent;
}

size_t Case::out_extent(int rank) const
{
    size_t extent = many_out(kind) ? 0 : block(root, rank);
    for (int from = 0; many_out(kind) && from < size; from++)
        if (block(from, rank) != 0)
            extent = std::max(extent, out_first(rank, from) + block(from, rank));
    return extent;
}

size_t Case::total() const
{
    size_t most = 0;
    for (int rank = 0; rank < size; rank++)
        most = std::max(most, std::max(in_extent(rank), out_extent(rank)));
    return most;
}

/* ---- what is called ----------------------------------------------------------------------------
 */

struct Combination {
    Kind kind;
    twill_type_t type;
    int op;
};

static std::vector<Combination> combine()
{
    std::vector<Combination> all;
    for (int kind = 0; kind < BARRIER; kind++)
        for (int type = 0; type < reference::type_count; type++)
            for (int op = 0; op <= PREMUL_POINTER; op++)
                if (!reduces((Kind)kind)
                        ? op == TWILL_SUM
                        : op >= PREMUL_VALUE ||
                              reference::has_op((twill_type_t)type, (twill_redop_t)op))
                    all.push_back({(Kind)kind, (twill_type_t)type, op});
    all.push_back({BARRIER, TWILL_INT8, TWILL_SUM});
    return all;
}

/* ---- how much ----------------------------------------------------------------------------------
 */

/* What the library gives a peer, as far as sizes near its borders are worth more cases than others.
 * Nothing breaks where it has changed its mind: other sizes are drawn then. */
static size_t peer_bytes(int size)
{
    return std::min<size_t>(4 << 20, (size_t)(16 << 20) / (size_t)std::max(1, size - 1));
}
static size_t line_bytes(int size) { return peer_bytes(size) / 4 / 4096 * 4096 / 2; }

/* A slot of each of the rings that so many blocks have: as many as there are slots for. */
static size_t ring_bytes(int size, size_t blocks, size_t lanes)
{
    const size_t slots = (peer_bytes(size) / 2 - 65536) / 4096;
    return std::min(8 / lanes * blocks, slots / lanes) * 3584;
}

static size_t near(Random *random, size_t middle, size_t around)
{
    return middle + random->below(2 * around + 1) - std::min(around, middle);
}

static size_t draw_small_bytes(Random *random, const Limits &limits)
{
    switch (random->below(6)) {
    case 0:
        return near(random, 8 * random->below(40), 3);
    case 1:
        return near(random, limits.line_bytes, 17);
    case 2:
        return near(random, limits.piece_bytes * (1 + random->below(9)), 17);
    case 3: /* all slots, some times */
        return near(random, limits.piece_bytes * 4 * (1 + random->below(5)), 17);
    default:
        return random->below(limits.buffer_bytes >> random->below(8));
    }
}

static size_t draw_block_bytes(Random *random, int size, const Limits &limits)
{
    static const size_t few[] = {0, 1, 2, 7};
    if (limits.line_bytes != 0)
        return draw_small_bytes(random, limits);
    const size_t lot = random->below(100);

    if (lot < 16)
        return few[random->below(4)] * 8;
    if (lot < 32)
        return near(random, 8 * (1 + random->below(40)), 3);
    if (lot < 44) /* whole warps and blocks of 8-byte units */
        return near(random, 256 * (1 + random->below(20)), 17);
    if (lot < 52)
        return near(random, 4096 * (1 + random->below(4)), 17);
    if (lot < 62)
        return near(random, line_bytes(size), 17);
    if (lot < 74)
        return near(random, (size_t)8192 << random->below(3) << random->below(6), 17);
    if (lot < 86) {
        const size_t ring =
            ring_bytes(size, (size_t)1 << (3 + random->below(4)), 1 + random->below(2));
        return near(random, ring * (1 + random->below(5)), 17);
    }
    if (lot < 97) /* as likely in each octave */
        return ((size_t)1 << random->below(21)) + random->below(1 << 20) % 4099;
    return ((size_t)1 << (20 + random->below(random->one_in(4) ? 7 : 4))) - random->below(300);
}

static size_t draw_count(Random *random, const Case &c, const Limits &limits)
{
    const size_t elem = reference::bytes(c.type);
    const size_t blocks = many_in(c.kind) || many_out(c.kind) ? (size_t)c.size : 1;
    const size_t most = (limits.buffer_bytes >> (c.size > 4)) / elem / blocks;
    /* a share of the whole is what borders are about, in an all_reduce */
    const bool shares = c.kind == ALL_REDUCE && random->one_in(3);
    size_t bytes = draw_block_bytes(random, c.size, limits);

    if (random->one_in(12)) /* elements, not bytes */
        return random->below(8);
    if (shares)
        bytes *= (size_t)c.size;
    return std::min(most, bytes / elem + random->below(2));
}

/* ---- blocks that differ ------------------------------------------------------------------------
 */

/* What a block has where others have `c.count`. */
static size_t draw_block(Random *random, const Case &c, size_t most, const Limits &limits)
{
    switch (random->below(5)) {
    case 0:
        return 0;
    case 1:
        return std::min(most, draw_block_bytes(random, c.size, limits) / reference::bytes(c.type));
    case 2:
        return random->below(c.count + 1);
    default:
        return c.count;
    }
}

/* @param symmetric  each pair gives as much as it takes: ranks may be in place */
static std::vector<size_t> draw_counts(Random *random, const Case &c, const Limits &limits,
                                       bool symmetric)
{
    const size_t size = (size_t)c.size;
    const size_t most = (limits.buffer_bytes >> (c.size > 4)) / reference::bytes(c.type) / size;
    std::vector<size_t> counts(c.kind == ALL_TO_ALL_V ? size * size : size);

    for (size_t &count : counts)
        count = draw_block(random, c, most, limits);
    for (size_t from = 0; c.kind == ALL_TO_ALL_V && symmetric && from < size; from++)
        for (size_t to = 0; to < from; to++)
            counts[from * size + to] = counts[to * size + from];
    return counts;
}

/* Blocks in any order, with gaps. Where a block of nothing begins may be anything, but `own` is
 * used by ranks in place. */
static std::vector<size_t> draw_places(Random *random, const std::vector<size_t> &blocks, int own)
{
    std::vector<size_t> order, at(blocks.size());
    size_t end = random->below(9);

    for (size_t i = 0; i < blocks.size(); i++)
        order.insert(order.begin() + (long)random->below(i + 1), i);
    for (size_t i : order) {
        at[i] = end;
        end += blocks[i] + (random->one_in(2) ? random->below(9) : 0);
        if (blocks[i] == 0 && (int)i != own && random->one_in(3))
            at[i] = SIZE_MAX / 2;
    }
    return at;
}

static void draw_layout(Random *random, Case *c, int rank, bool symmetric)
{
    RankCase &mine = c->ranks[(size_t)rank];
    std::vector<size_t> in, out;

    for (int peer = 0; peer < c->size; peer++) {
        in.push_back(c->block(rank, peer));
        out.push_back(c->block(peer, rank));
    }
    const bool both = many_in(c->kind) && many_out(c->kind);
    if (both && !symmetric)
        mine.in_place = false;
    if (many_in(c->kind) && !random->one_in(3))
        mine.in_at = draw_places(random, in, rank);
    if (many_out(c->kind) && !random->one_in(3))
        mine.out_at = draw_places(random, out, rank);
    if (both && mine.in_place)
        mine.out_at = mine.in_at;
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

static RankCase draw_rank(Random *random, bool aligned)
{
    RankCase rank;
    rank.in_place = random->one_in(3);
    rank.null_ignored = random->one_in(2);
    rank.in_shift = aligned ? 0 : random->below(16);
    rank.out_shift = aligned ? 0 : random->below(16);
    rank.current = (int)random->below(64);
    return rank;
}

static void draw_way(Random *random, Case *c)
{
    static const How hows[] = {PLAIN, PLAIN, PLAIN, GRAPH, GRAPH, MIXED};

    c->threads = random->one_in(2);
    c->first = (int)random->below((size_t)c->size);
    c->one_group = random->one_in(2);
    c->how = hows[random->below(6)];
    c->capture = random->one_in(2) ? THREAD_LOCAL : RELAXED;
    c->streams = (Streams)random->below(4);
    c->await_each = random->one_in(3);
    c->rounds = 1 + (int)random->below(c->how == MIXED ? 4 : 3);
    if (c->how != PLAIN && c->streams == DEFAULT) /* it cannot be captured */
        c->streams = OWN;
    const size_t most = c->total() * reference::bytes(c->type);
    if (most > (size_t)4 << 20)
        c->rounds = std::min(c->rounds, most > (size_t)16 << 20 ? 1 : 2);
}

Case draw(uint64_t seed, const Limits &limits)
{
    static const std::vector<Combination> combinations = combine();
    static const int sizes[] = {1, 2, 3, 4, 8};
    const size_t turn = seed / combinations.size();
    Random random(mix(seed ^ 0x7477696c6cull));
    Case c;

    /* 89 and the number of combinations have no divisor in common: neighbours differ in all */
    const Combination &what = combinations[seed % combinations.size() * 89 % combinations.size()];
    c.seed = seed;
    c.kind = what.kind;
    c.type = what.type;
    c.op = what.op;
    c.size = limits.sizes != 0 ? limits.sizes : sizes[(seed + turn) % 5];
    c.placement = (int)random.below((size_t)limits.placements);
    c.count = c.kind == BARRIER ? 0 : draw_count(&random, c, limits);
    c.root = has_root(c.kind) ? (int)random.below((size_t)c.size) : 0;
    c.bits = (Bits)random.below(3);
    const bool aligned = random.one_in(3);
    for (int r = 0; r < c.size; r++)
        c.ranks.push_back(draw_rank(&random, aligned));
    if (varies(c.kind)) {
        const bool symmetric = random.one_in(2);

        c.counts = draw_counts(&random, c, limits, symmetric);
        for (int r = 0; r < c.size; r++)
            draw_layout(&random, &c, r, symmetric);
    }
    draw_way(&random, &c);
    return c;
}

std::string text(const Case &c)
{
    static const char *const bits[] = {"any bits", "like numbers", "special numbers"};
    static const char *const streams[] = {"own", "default", "shared", "changing"};
    static const char *const hows[] = {"plain", "graph", "mixed"};
    std::string out = format("%s of %zu %s", name(c.kind), c.count, reference::name(c.type));

    for (size_t i = 0; i < c.counts.size(); i++)
        out += format("%s%zu%s", i == 0 ? " (" : " ", c.counts[i],
                      i + 1 == c.counts.size() ? ")" : "");
    if (reduces(c.kind))
        out += format(" %s", op_name(c.op));
    if (has_root(c.kind))
        out += format(" root %d", c.root);
    out += format(", %d ranks, placement %d, %s, %s streams, %s, %d rounds%s, %s; in/out shifts",
                  c.size, c.placement, c.threads ? "threads" : "group", streams[c.streams],
                  hows[c.how], c.rounds, c.await_each ? " awaited" : "", bits[c.bits]);
    for (const RankCase &rank : c.ranks)
        out += format(" %zu/%zu%s%s", rank.in_shift, rank.out_shift, rank.in_place ? "!" : "",
                      rank.in_at.empty() && rank.out_at.empty() ? "" : "+");
    return out;
}

} // namespace gpu
