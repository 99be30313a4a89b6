/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sums of two ranks that push, chunk by chunk, with chunks so short that little data has
 * many; and that they do, where neither is in place, or of an all_reduce both.
 * Never knows: how a call is made and judged (gpu/run.h). */
extern "C" {
#include "comm/gpu.h"
}

#include "device/reference.h"
#include "emu/small.h"
#include "emu/work.h"
#include "gpu/run.h"

namespace emu
{

using namespace gpu;

namespace
{

const uint32_t CHUNK = 144;
const uint32_t LINES = 16; /* bytes of a block that goes by lines, at most */
const unsigned BOTH = 3;   /* ranks, as bits */
/* Those that go by pushes. */
const struct {
    Kind kind;
    unsigned places;
} sums[] = {{ALL_REDUCE, 0}, {REDUCE_SCATTER, 0}, {ALL_REDUCE, BOTH}};

Shape shape_of(Way way, int placement, uint32_t start = 0)
{
    Shape shape;

    shape.way = way;
    shape.placement = placement;
    shape.line_bytes = LINES;
    shape.chunk_bytes = CHUNK;
    shape.cheap = TW_COST_PROTO_READS;
    shape.start = start;
    return shape;
}

/* places: bit r: rank r is in place */
Case sum(Kind kind, twill_type_t type, int op, size_t count, unsigned places = 0)
{
    Case c;

    c.seed = count * 64 + (size_t)kind * 32 + (size_t)type * 4 + places;
    c.size = 2;
    c.kind = kind;
    c.type = type;
    c.op = op;
    c.count = count;
    c.ranks.resize(2);
    for (unsigned r = 0; r < 2; r++)
        c.ranks[r].in_place = places >> r & 1;
    return c;
}

/* Chunks that all blocks of a rank have pushed so far. */
uint32_t pushed(Small *small, int rank)
{
    uint32_t all = 0;

    for (uint32_t count : small->world().rank(rank).comm->gpu->state->pushed)
        all += count;
    return all;
}

/* Chunks that a call has for each rank, from what the protocol says. */
uint32_t chunks_of(const Case &c, uint32_t chunk)
{
    const size_t bytes = c.count * reference::bytes(c.type);
    const size_t units = c.kind == ALL_REDUCE ? ((bytes + 15) / 16 + 1) / 2 : (bytes + 15) / 16;

    return (uint32_t)((units * 16 + chunk - 1) / chunk);
}

/* @param pushes  does it go that way, as all ranks see it? */
void run_one(const Case &c, Small *small, bool pushes, uint32_t chunk_bytes = CHUNK)
{
    const uint32_t before = pushed(small, 0);

    step(text(c));
    try {
        run_case(c, &small->world());
    } catch (const std::exception &e) {
        FAIL() << e.what() << "\n" << text(c);
    }
    const uint32_t chunks = pushes ? (uint32_t)c.rounds * chunks_of(c, chunk_bytes) : 0;
    EXPECT_EQ(pushed(small, 0) - before, chunks) << text(c);
    EXPECT_EQ(pushed(small, 1), pushed(small, 0)) << text(c);
}

void run_way(Way way, int placement, const std::function<void(Small *)> &body)
{
    Small small(shape_of(way, placement));

    body(&small);
    small.destroy();
}

} // namespace

TEST(Pushes, EveryTypeAndOperation)
{
    run_way(DIRECT, 0, [](Small *small) {
        for (const auto &[kind, places] : sums)
            for (int type = 0; type < reference::type_count; type++)
                for (int op = 0; op < reference::redop_count; op++) {
                    if (!reference::has_op((twill_type_t)type, (twill_redop_t)op))
                        continue;
                    for (Bits bits : {WILD, SPECIAL}) {
                        Case c = sum(kind, (twill_type_t)type, op,
                                     1301 / reference::bytes((twill_type_t)type), places);

                        c.bits = bits;
                        run_one(c, small, true);
                        if (::testing::Test::HasFatalFailure())
                            return;
                    }
                }
    });
}

/* A rank's scalar is known to it alone. */
TEST(Pushes, NoCreatedSums)
{
    run_way(DIRECT, 1, [](Small *small) {
        for (const auto &[kind, places] : sums)
            run_one(sum(kind, TWILL_FLOAT32, PREMUL_VALUE, 700, places), small, false);
    });
}

/* Shares that end in, at and behind the end of a chunk; the second share may have a chunk less. */
TEST(Pushes, AroundChunks)
{
    for (Way way : {DIRECT, REGISTERED})
        run_way(way, way == DIRECT, [](Small *small) {
            for (const auto &[kind, places] : sums)
                for (size_t chunks : {1, 2, 3, 4, 5, 8, 9, 10, 17, 33})
                    for (int more : {-17, -16, -1, 0, 1, 16, 17}) {
                        const size_t bytes =
                            chunks * CHUNK * (kind == ALL_REDUCE ? 2 : 1) + (size_t)more;
                        Case c = sum(kind, TWILL_INT8, TWILL_SUM, bytes, places);

                        c.ranks[0].out_shift = bytes % 3;
                        run_one(c, small, true);
                        if (::testing::Test::HasFatalFailure())
                            return;
                    }
        });
}

/* All threads of a block have several units each; the last ones have some, or a part of one. */
TEST(Pushes, LongChunks)
{
    const uint32_t CHUNK_BYTES = 32768;
    Shape shape = shape_of(DIRECT, 0);

    shape.chunk_bytes = CHUNK_BYTES;
    Small small(shape);
    for (const auto &[kind, places] : sums)
        for (twill_type_t type : {TWILL_FLOAT32, TWILL_FLOAT8E5M2})
            for (size_t bytes : {300001, 393216, 409600, 100}) {
                const Case c = sum(kind, type, TWILL_SUM, bytes / reference::bytes(type), places);

                run_one(c, &small, true, CHUNK_BYTES);
            }
    small.destroy();
}

/* Each rank knows only of itself whether it is in place. */
TEST(Pushes, InPlaceBothOrNeither)
{
    for (Way way : {DIRECT, REGISTERED})
        run_way(way, way != DIRECT, [](Small *small) {
            for (Kind kind : {ALL_REDUCE, REDUCE_SCATTER})
                for (unsigned places = 0; places <= BOTH; places++) {
                    Case c = sum(kind, TWILL_BFLOAT16, TWILL_AVG, 1111, places);

                    c.rounds = 2;
                    run_one(c, small, places == 0 || (kind == ALL_REDUCE && places == BOTH));
                }
        });
}

/* Of a reduce the root alone takes. */
TEST(Pushes, NoReduce)
{
    run_way(DIRECT, 0, [](Small *small) {
        run_one(sum(REDUCE, TWILL_FLOAT32, TWILL_SUM, 900), small, false);
    });
}

TEST(Pushes, AnyAlignment)
{
    run_way(DIRECT, 0, [](Small *small) {
        for (const auto &[kind, places] : sums)
            for (twill_type_t type : {TWILL_UINT8, TWILL_FLOAT16, TWILL_FLOAT32, TWILL_FLOAT64})
                for (size_t i = 0; i < 12; i++) {
                    Case c = sum(kind, type, TWILL_MAX, 500 + i, places);

                    for (size_t r = 0; r < 2; r++) {
                        c.ranks[r].in_shift = (3 * i + 5 * r) % 16;
                        c.ranks[r].out_shift = (i + 7 * r) % 16;
                    }
                    run_one(c, small, true);
                }
    });
}

TEST(Pushes, ReplaysAndCallsInTurn)
{
    for (Way way : {DIRECT, REGISTERED})
        run_way(way, 0, [](Small *small) {
            for (How how : {GRAPH, MIXED, PLAIN})
                for (size_t count : {700, 40, 2100}) {
                    const auto &one = sums[(count / 20 + how) % 3];
                    Case c = sum(one.kind, TWILL_FLOAT32, TWILL_SUM, count, one.places);

                    c.how = how;
                    c.rounds = 4;
                    c.threads = count == 700;
                    run_one(c, small, true);
                }
        });
}

/* Both ranks' counts go over the end of their 32 bits, and over the middle. */
TEST(Pushes, CountersWrap)
{
    for (uint32_t start : {0xfffffff0u, 0x7fffffe0u, 0xffffffffu})
        for (Way way : {DIRECT, REGISTERED}) {
            Small small(shape_of(way, 0, start));

            for (size_t call = 0; call < 8; call++) {
                const auto &one = sums[call % 3];
                Case c = sum(one.kind, TWILL_INT32, TWILL_SUM, 300 + 170 * call,
                             call == 4 ? 1 : one.places);

                c.rounds = 2;
                c.threads = call % 3 == 0;
                run_one(c, &small, call != 4);
            }
            small.destroy();
        }
}

/* The last block of either rank begins when the others have long given and taken all of theirs. */
TEST(Pushes, LateBlock)
{
    for (int rank = 0; rank < 2; rank++)
        run_way(DIRECT, 0, [rank](Small *small) {
            late(rank, 20);
            for (size_t call = 0; call < 12; call++) {
                const auto &one = sums[call / 2 % 3];
                Case c = sum(one.kind, TWILL_FLOAT16, TWILL_SUM, 1500, one.places);

                c.threads = true;
                run_one(c, small, true);
            }
            late(rank, 0);
        });
}

/* On the same devices, at once: no stream of either waits for the other's. */
TEST(Pushes, TwoCommunicators)
{
    const int ROUNDS = 4;
    Small first(shape_of(DIRECT, 0)), second(shape_of(DIRECT, 0));
    World *const worlds[] = {&first.world(), &second.world()};
    Case c[] = {sum(ALL_REDUCE, TWILL_FLOAT64, TWILL_SUM, 500),
                sum(REDUCE_SCATTER, TWILL_BFLOAT16, TWILL_SUM, 900)};

    c[0].rounds = c[1].rounds = ROUNDS;
    Prepared both[] = {{c[0], worlds[0]}, {c[1], worlds[1]}};
    const auto each = [&](void (Prepared::*what)(size_t, int, cudaStream_t), int round) {
        for (int i = 0; i < 2; i++)
            for (size_t r = 0; r < 2; r++)
                (both[i].*what)(r, round, *worlds[i]->rank((int)r).own[0]);
    };
    for (int round = 0; round < ROUNDS; round++) {
        each(&Prepared::upload, round);
        grouped([&] { each(&Prepared::call, round); });
        each(&Prepared::download, round);
    }
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 2; r++)
            wait(worlds[i]->rank(r).device, *worlds[i]->rank(r).own[0]);
    for (Prepared &one : both)
        EXPECT_EQ(one.judge(), "");
    EXPECT_EQ(pushed(&first, 0), ROUNDS * chunks_of(c[0], CHUNK));
    EXPECT_EQ(pushed(&second, 1), ROUNDS * chunks_of(c[1], CHUNK));
    first.destroy();
    second.destroy();
}

static enum twill_status call(World *world, int r, size_t count, bool in_place)
{
    Local &local = world->rank(r);
    char *at = local.arena.take_device((size_t)32 << 10);

    return twill_all_reduce(at, at + (in_place ? 0 : 16 << 10), count, TWILL_INT32, TWILL_SUM,
                            local.comm, *local.own[0]);
}

/* One rank has an element more, and as many chunks. */
static void mismatch(bool in_place)
{
    Small small(shape_of(DIRECT, 0));
    World &world = small.world();

    on_threads(2, [&](int r) {
        const enum twill_status status = call(&world, r, 2000 + (size_t)r, in_place);

        EXPECT_TRUE(status == TWILL_OK || status == TWILL_ERR_MISMATCH);
    });
    for (int r = 0; r < 2; r++) {
        enum twill_status status = TWILL_OK;

        EXPECT_TRUE(within(10, [&] {
            return twill_comm_async_error(world.rank(r).comm, &status) == TWILL_OK && status < 0;
        }));
        EXPECT_EQ(status, TWILL_ERR_MISMATCH);
        EXPECT_TRUE(wait_within(world.rank(r).device, *world.rank(r).own[0], 10));
        EXPECT_EQ(pushed(&small, r), 0u);
    }
}
TEST(Pushes, MismatchIsFound) { mismatch(false); }
TEST(Pushes, MismatchInPlaceIsFound) { mismatch(true); }

/* A block waits for chunks of one that has not begun, and is told to end. */
static void abort_one(bool in_place)
{
    Small small(shape_of(DIRECT, 0));
    World &world = small.world();

    late(1, 2000);
    for (int r = 0; r < 2; r++)
        EXPECT_EQ(call(&world, r, 2000, in_place), TWILL_OK);
    EXPECT_FALSE(wait_within(world.rank(0).device, *world.rank(0).own[0], 0.05));
    TWILL(twill_comm_abort(world.rank(0).comm), world.rank(0).comm);
    EXPECT_TRUE(wait_within(world.rank(0).device, *world.rank(0).own[0], 1.5))
        << "before the other rank's block has begun";
    EXPECT_TRUE(wait_within(world.rank(1).device, *world.rank(1).own[0], 10));
    late(1, 0);
}
TEST(Pushes, AbortEndsTheWait) { abort_one(false); }
TEST(Pushes, AbortEndsTheWaitInPlace) { abort_one(true); }

} // namespace emu
