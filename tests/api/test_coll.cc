/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what each collective and each send must leave in the buffers, seen through the C API.
 * Never knows: how they get there. */
#include <cstdlib>
#include <random>

#include "data.h"
#include "world.h"

using data::Bytes;

namespace
{

const unsigned char POISON = 0xa5;

enum Kind {
    ALL_REDUCE,
    REDUCE,
    BROADCAST,
    REDUCE_SCATTER,
    ALL_GATHER,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    KINDS
};

bool is_rooted(Kind kind)
{
    return kind == REDUCE || kind == BROADCAST || kind == GATHER || kind == SCATTER;
}

struct Case {
    Kind kind;
    twill_type_t type;
    twill_redop_t op;
    size_t count;
    int root;
    uint64_t in_place; /* bit for each rank; mixes are legal */
    uint64_t seed;
    unsigned misalign; /* bytes off the allocation's start */
};

std::ostream &operator<<(std::ostream &out, const Case &c)
{
    static const char *const names[] = {"all_reduce", "reduce",     "broadcast", "reduce_scatter",
                                        "all_gather", "all_to_all", "gather",    "scatter"};
    return out << names[c.kind] << " type " << c.type << " op " << c.op << " count " << c.count
               << " root " << c.root << " in_place " << c.in_place << " misalign " << c.misalign;
}

/* One rank's buffers of a case: what goes in, what must come out. */
struct Buffers {
    Bytes in, out;
    Bytes want; /* of out; empty: out is not written */
    unsigned char *send, *recv;
};

void lay_out(const Case &c, int rank, int size, Buffers *b)
{
    const size_t block = c.count * data::type_bytes(c.type);
    const size_t all = block * (size_t)size, mine = block * (size_t)rank;
    const bool in_all = c.kind == REDUCE_SCATTER || c.kind == ALL_TO_ALL || c.kind == SCATTER;
    const bool out_all = c.kind == ALL_GATHER || c.kind == ALL_TO_ALL || c.kind == GATHER;
    const size_t in_count = c.count * (in_all ? (size_t)size : 1);
    const size_t out_bytes = out_all ? all : block;
    const bool in_place = (c.in_place >> rank & 1) && (!is_rooted(c.kind) || rank == c.root);
    b->in.assign((in_all ? all : block) + c.misalign, POISON);
    b->out.assign(out_bytes + c.misalign, POISON);
    b->send = b->in.data() + c.misalign;
    b->recv = b->out.data() + c.misalign;
    if (in_place && out_all && !in_all)
        b->send = b->recv + mine;
    else if (in_place && in_all && !out_all)
        b->recv = b->send + mine;
    else if (in_place)
        b->recv = b->send;
    data::fill(b->send, in_count, c.type, c.seed, rank, 0, c.op);
}

Bytes expected(const Case &c, int rank, int size)
{
    const size_t width = data::type_bytes(c.type);
    const size_t block = c.count * width;
    Bytes want;
    switch (c.kind) {
    case ALL_REDUCE:
    case REDUCE:
        if (c.kind == REDUCE && rank != c.root)
            return want;
        want.resize(block);
        data::fill_reduced(want.data(), c.count, c.type, c.op, c.seed, size);
        return want;
    case BROADCAST:
        want.resize(block);
        data::fill(want.data(), c.count, c.type, c.seed, c.root);
        return want;
    case REDUCE_SCATTER:
        want.resize(block);
        data::fill_reduced(want.data(), c.count, c.type, c.op, c.seed, size,
                           c.count * (size_t)rank);
        return want;
    case SCATTER:
        want.resize(block);
        data::fill(want.data(), c.count, c.type, c.seed, c.root, c.count * (size_t)rank);
        return want;
    case GATHER:
        if (rank != c.root)
            return want;
        [[fallthrough]];
    case ALL_GATHER:
    case ALL_TO_ALL:
        want.resize(block * (size_t)size);
        for (int from = 0; from < size; from++)
            data::fill(want.data() + block * (size_t)from, c.count, c.type, c.seed, from,
                       c.kind == ALL_TO_ALL ? c.count * (size_t)rank : 0);
        return want;
    default:
        return want;
    }
}

enum twill_status call(const Case &c, const Buffers &b, twill_comm_t comm, twill_stream_t stream)
{
    switch (c.kind) {
    case ALL_REDUCE:
        return twill_all_reduce(b.send, b.recv, c.count, c.type, c.op, comm, stream);
    case REDUCE:
        return twill_reduce(b.send, b.recv, c.count, c.type, c.op, c.root, comm, stream);
    case BROADCAST:
        return twill_broadcast(b.send, b.recv, c.count, c.type, c.root, comm, stream);
    case REDUCE_SCATTER:
        return twill_reduce_scatter(b.send, b.recv, c.count, c.type, c.op, comm, stream);
    case ALL_GATHER:
        return twill_all_gather(b.send, b.recv, c.count, c.type, comm, stream);
    case GATHER:
        return twill_gather(b.send, b.recv, c.count, c.type, c.root, comm, stream);
    case SCATTER:
        return twill_scatter(b.send, b.recv, c.count, c.type, c.root, comm, stream);
    default:
        return twill_all_to_all(b.send, b.recv, c.count, c.type, comm, stream);
    }
}

void check(const Case &c, const Buffers &b, int rank, int size)
{
    const Bytes want = expected(c, rank, size);
    if (!want.empty() && memcmp(b.recv, want.data(), want.size()) != 0) {
        size_t i = 0;
        while (b.recv[i] == want[i])
            i++;
        FAIL() << c << ": rank " << rank << " of " << size << ": wrong from byte " << i;
    }
    const bool untouched = (c.kind == REDUCE || c.kind == GATHER) && rank != c.root;
    for (size_t i = 0; untouched && i < b.out.size(); i++)
        ASSERT_EQ(b.out[i], POISON) << c << ": rank " << rank << " wrote byte " << i;
    for (size_t i = 0; i < c.misalign; i++)
        ASSERT_EQ(b.out[i], POISON) << c << ": rank " << rank << " wrote before its buffer";
}

void run_case(const Case &c, twill_comm_t comm, int rank, int size)
{
    Buffers b;
    lay_out(c, rank, size, &b);
    ASSERT_OK(call(c, b, comm, nullptr), comm) << c;
    check(c, b, rank, size);
}

const twill_redop_t OPS[] = {TWILL_SUM,  TWILL_MAX,  TWILL_MIN, TWILL_AVG,
                             TWILL_PROD, TWILL_BAND, TWILL_BOR, TWILL_BXOR};

bool reduces(Kind kind) { return kind == ALL_REDUCE || kind == REDUCE || kind == REDUCE_SCATTER; }

/* The same on every rank: cases come from a seed. */
Case random_case(std::mt19937_64 &random, int size)
{
    static const size_t counts[] = {0, 1, 2, 3, 5, 16, 17, 255, 1000, 4096, 10007, 70000, 300001};
    Case c;
    c.kind = (Kind)(random() % KINDS);
    c.type = (twill_type_t)(random() % reference::type_count);
    c.op = OPS[random() % 8];
    c.op = reduces(c.kind) && reference::has_op(c.type, c.op) ? c.op : TWILL_SUM;
    c.count = counts[random() % 13];
    if (random() % 2)
        c.count = random() % 3000;
    c.root = (int)(random() % (uint64_t)size);
    c.in_place = random();
    c.seed = random();
    c.misalign = random() % 3 ? 0 : 1 + (unsigned)(random() % 7);
    return c;
}

/* Every kind, type and op once, small; some ranks in place, none, all. */
std::vector<Case> every_case(int size)
{
    static const uint64_t places[] = {0, ~(uint64_t)0, 0x5555, 0x6db6};
    std::vector<Case> all;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int type = 0; type < reference::type_count; type++) {
            for (const twill_redop_t op : OPS) {
                const bool served = reduces((Kind)kind) ? reference::has_op((twill_type_t)type, op)
                                                        : op == TWILL_SUM;
                if (served)
                    all.push_back({(Kind)kind, (twill_type_t)type, op, 37,
                                   (int)(all.size() % (size_t)size), places[all.size() / 3 % 4],
                                   all.size(), 0});
            }
        }
    }
    return all;
}

void every_and_random(twill_comm_t comm, int rank, int size, uint64_t seed, double until_s)
{
    for (const Case &c : every_case(size)) {
        run_case(c, comm, rank, size);
        if (::testing::Test::HasFatalFailure())
            return;
    }
    std::mt19937_64 random(seed);
    for (int i = 0;; i++) {
        /* Rank 0's clock decides for all when it is enough. */
        unsigned char more = world::now_s() < until_s && i < 20000;
        ASSERT_OK(twill_broadcast(&more, &more, 1, TWILL_UINT8, 0, comm, nullptr), comm);
        if (!more)
            return;
        run_case(random_case(random, size), comm, rank, size);
        if (::testing::Test::HasFatalFailure())
            return;
    }
}

class Coll : public ::testing::TestWithParam<int>
{
};

TEST_P(Coll, ProcessesGetTheRightBytes)
{
    const int size = GetParam();
    const double until_s = world::now_s() + world::budget_s() / 36;
    world::run_all(size, [&](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        every_and_random(comm, rank.rank, size, 11, until_s);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST_P(Coll, ThreadsGetTheRightBytes)
{
    const int size = GetParam();
    const double until_s = world::now_s() + world::budget_s() / 36;
    world::run_alone([&] {
        std::vector<twill_comm_t> comms((size_t)size);
        ASSERT_OK(twill_comm_init_all(comms.data(), size, nullptr, nullptr), nullptr);
        world::threads(size, [&](int rank) {
            every_and_random(comms[(size_t)rank], rank, size, 12, until_s);
            EXPECT_OK(twill_comm_destroy(comms[(size_t)rank]), nullptr);
        });
    });
}

TEST_P(Coll, OneThreadRunsAllRanksInAGroup)
{
    const int size = GetParam();
    world::run_alone([&] {
        std::vector<twill_comm_t> comms((size_t)size);
        ASSERT_OK(twill_comm_init_all(comms.data(), size, nullptr, nullptr), nullptr);
        for (const Case &c : every_case(size)) {
            std::vector<Buffers> buffers((size_t)size);
            ASSERT_OK(twill_group_start(), nullptr);
            for (int rank = 0; rank < size; rank++) {
                lay_out(c, rank, size, &buffers[(size_t)rank]);
                ASSERT_OK(call(c, buffers[(size_t)rank], comms[(size_t)rank], nullptr),
                          comms[(size_t)rank]);
            }
            ASSERT_OK(twill_group_end(), nullptr) << c;
            for (int rank = 0; rank < size; rank++)
                check(c, buffers[(size_t)rank], rank, size);
        }
        for (int rank = 0; rank < size; rank++)
            EXPECT_OK(twill_comm_destroy(comms[(size_t)rank]), nullptr);
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Coll, ::testing::Range(1, 10));

TEST(CollMany, SixteenRanksOnFewCpus)
{
    world::run_all(16, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        for (const size_t count : {(size_t)1, (size_t)1000, (size_t)50000}) {
            run_case({ALL_REDUCE, TWILL_FLOAT32, TWILL_SUM, count, 0, 0, count, 0}, comm, rank.rank,
                     16);
            run_case({ALL_TO_ALL, TWILL_INT32, TWILL_SUM, count / 16, 0, 0, count, 0}, comm,
                     rank.rank, 16);
            run_case({BROADCAST, TWILL_INT32, TWILL_SUM, count, 5, 0, count, 0}, comm, rank.rank,
                     16);
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* A rank leaves a barrier only after every rank has come to it. */
TEST(Barrier, HoldsUntilAllHaveCome)
{
    world::run_all(4, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        int *come = world::shared()->words;
        for (int round = 0; round < 50; round++) {
            __atomic_fetch_add(&come[round], 1, __ATOMIC_ACQ_REL);
            ASSERT_OK(twill_barrier(comm, nullptr), comm);
            ASSERT_EQ(world::get(&come[round]), 4) << "round " << round;
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* ---- point to point ---------------------------------------------------------------------------
 */

TEST(SendRecv, PingPongOfManySizes)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        for (const size_t count : {(size_t)0, (size_t)1, (size_t)63, (size_t)64, (size_t)65,
                                   (size_t)4097, (size_t)1000003}) {
            Bytes mine(count + 1), theirs(count + 1, POISON), want(count + 1, POISON);
            data::fill(mine.data(), count, TWILL_UINT8, count, rank.rank);
            data::fill(want.data(), count, TWILL_UINT8, count, 1 - rank.rank);
            for (int turn = 0; turn < 2; turn++) {
                const enum twill_status status =
                    turn == rank.rank
                        ? twill_send(mine.data(), count, TWILL_UINT8, 1 - rank.rank, comm, nullptr)
                        : twill_recv(theirs.data(), count, TWILL_UINT8, 1 - rank.rank, comm,
                                     nullptr);
                ASSERT_OK(status, comm);
            }
            ASSERT_EQ(theirs, want) << count;
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Sends of a pair arrive in order, mixed with collectives whose plans lay the same links out
 * differently. */
TEST(SendRecv, MixedWithCollectives)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        std::mt19937_64 random(5);
        for (int round = 0; round < 100; round++) {
            const int from = (int)(random() % 3), to = (from + 1 + (int)(random() % 2)) % 3;
            const size_t count = random() % 20000;
            Bytes buffer(count), want(count);
            data::fill(want.data(), count, TWILL_UINT8, (uint64_t)round, from);
            if (rank.rank == from) {
                ASSERT_OK(twill_send(want.data(), count, TWILL_UINT8, to, comm, nullptr), comm);
            }
            if (rank.rank == to) {
                ASSERT_OK(twill_recv(buffer.data(), count, TWILL_UINT8, from, comm, nullptr), comm);
                ASSERT_EQ(buffer, want) << "round " << round;
            }
            run_case(random_case(random, 3), comm, rank.rank, 3);
            if (HasFatalFailure())
                return;
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

} // namespace
