/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what each call with a count for each rank must leave in the buffers, and which arguments
 * are errors, seen through the C API. Never knows: how they get there. */
#include <cstdint>

#include <sys/mman.h>

#include "vcase.h"
#include "world.h"

namespace
{

using vcase::Buffers;
using vcase::Case;

void run_case(const Case &c, twill_comm_t comm, int rank)
{
    Buffers b(c, rank);
    ASSERT_OK(b.call(comm, nullptr), comm) << c.text();
    ASSERT_EQ(b.check(), "");
}

/* Every kind and layout once, on mixes of ranks in place; then drawn ones. */
void every_and_drawn(twill_comm_t comm, int rank, int size, uint64_t seed, int drawn)
{
    uint64_t state = seed;
    for (int kind = 0; kind < vcase::KINDS; kind++) {
        for (int layout = 0; layout < vcase::LAYOUTS; layout++) {
            for (uint64_t mix = 0; mix < 4; mix++) {
                Case c = vcase::draw(&state, size, 300);
                c.kind = (vcase::Kind)kind;
                c.type = (twill_type_t)((kind + 3 * layout + (int)mix) % reference::type_count);
                c.op = TWILL_SUM;
                c.layout = (vcase::Layout)layout;
                c.in_place = mix == 3 ? ~(uint64_t)0 : mix * 0x5555;
                run_case(c, comm, rank);
                if (::testing::Test::HasFatalFailure())
                    return;
            }
        }
    }
    for (int i = 0; i < drawn; i++) {
        run_case(vcase::draw(&state, size, i % 16 ? 2000 : 60000), comm, rank);
        if (::testing::Test::HasFatalFailure())
            return;
    }
}

int drawn_cases(int size) { return (int)(world::budget_s() * 200 / (size * size)); }

class CollV : public ::testing::TestWithParam<int>
{
};

TEST_P(CollV, ProcessesGetTheRightBytes)
{
    const int size = GetParam();
    world::run_all(size, [&](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        every_and_drawn(comm, rank.rank, size, 21, drawn_cases(size));
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

INSTANTIATE_TEST_SUITE_P(Sizes, CollV, ::testing::Range(1, 10));

/* One thread, all ranks; the arrays are gone before the group ends, or the stream runs. */
TEST(CollV, GroupsAndStreamsCopyCounts)
{
    world::run_alone([&] {
        const int size = 3;
        twill_comm_t comms[3];
        twill_stream_t stream;
        ASSERT_OK(twill_comm_init_all(comms, size, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_stream_create(&stream), nullptr);
        uint64_t state = 5;
        for (int i = 0; i < 40; i++) {
            const Case c = vcase::draw(&state, size, 3000), d = vcase::draw(&state, size, 30);
            std::vector<Buffers> all;
            all.reserve(2 * (size_t)size);
            for (int rank = 0; rank < size; rank++) {
                all.emplace_back(c, rank);
                all.emplace_back(d, rank);
            }
            const twill_stream_t on = i % 2 ? stream : nullptr;
            ASSERT_OK(twill_group_start(), nullptr);
            for (size_t k = 0; k < all.size(); k++) {
                ASSERT_OK(all[k].call(comms[k / 2], on), comms[k / 2]);
                all[k].forget();
            }
            ASSERT_OK(twill_group_end(), nullptr);
            ASSERT_OK(twill_stream_synchronize(stream), nullptr);
            for (const Buffers &b : all)
                ASSERT_EQ(b.check(), "");
        }
        ASSERT_OK(twill_stream_destroy(stream), nullptr);
        for (twill_comm_t comm : comms)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(CollV, StreamsOutsideGroupsCopyCounts)
{
    world::run_all(3, [&](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        twill_stream_t stream;
        ASSERT_NE(comm, nullptr);
        ASSERT_OK(twill_stream_create(&stream), nullptr);
        uint64_t state = 6;
        std::vector<Buffers> all;
        all.reserve(40);
        for (int i = 0; i < 40; i++) {
            all.emplace_back(vcase::draw(&state, 3, 3000), rank.rank);
            ASSERT_OK(all.back().call(comm, stream), comm);
            all.back().forget();
        }
        ASSERT_OK(twill_stream_synchronize(stream), nullptr);
        for (const Buffers &b : all)
            ASSERT_EQ(b.check(), "");
        ASSERT_OK(twill_stream_destroy(stream), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* ---- arguments --------------------------------------------------------------------------------
 */

/* Two ranks in one thread; rank 0's faults reach nobody, so nothing else is called. */
class CollVArgs : public ::testing::Test
{
  protected:
    static void with(const std::function<void(twill_comm_t)> &body)
    {
        world::run_alone([&] {
            twill_comm_t comms[2];
            ASSERT_OK(twill_comm_init_all(comms, 2, nullptr, nullptr), nullptr);
            body(comms[0]);
            ASSERT_OK(twill_group_start(), nullptr); /* healthy */
            for (twill_comm_t comm : comms)
                ASSERT_OK(twill_barrier(comm, nullptr), comm);
            ASSERT_OK(twill_group_end(), nullptr);
            for (twill_comm_t comm : comms)
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
        });
    }
    static void invalid(enum twill_status status, twill_comm_t comm, const std::string &part)
    {
        EXPECT_EQ(status, TWILL_ERR_INVALID);
        EXPECT_NE(world::text(comm).find(part), std::string::npos)
            << world::text(comm) << "\nlacks: " << part;
    }
};

TEST_F(CollVArgs, BadCountsAreErrors)
{
    with([](twill_comm_t comm) {
        static unsigned char a[64], b[64];
        const size_t half = SIZE_MAX / 2, huge[2] = {half, half + 2}, some[2] = {4, 4};
        const size_t far[2] = {0, SIZE_MAX - 1}, other[2] = {5, 4}, close[2] = {0, 3};
        const twill_type_t u8 = TWILL_UINT8;
        invalid(twill_all_gather_v(a, b, nullptr, nullptr, u8, comm, nullptr), comm,
                "all_gather_v: counts is NULL");
        invalid(twill_all_gather_v(a, b, huge, nullptr, u8, comm, nullptr), comm,
                "more than memory");
        invalid(twill_all_gather_v(a, b, some, far, u8, comm, nullptr), comm, "more than memory");
        invalid(twill_reduce_scatter_v(a, b, huge, nullptr, u8, TWILL_SUM, comm, nullptr), comm,
                "more than memory");
        invalid(twill_all_to_all_v(a, some, nullptr, b, huge, nullptr, u8, comm, nullptr), comm,
                "sends 4 elements to itself");
        invalid(twill_all_to_all_v(a, some, nullptr, b, other, nullptr, u8, comm, nullptr), comm,
                "sends 4 elements to itself and receives 5");
        invalid(twill_all_to_all_v(a, nullptr, nullptr, b, some, nullptr, u8, comm, nullptr), comm,
                "sendcounts is NULL");
        invalid(twill_all_to_all_v(a, some, nullptr, b, nullptr, nullptr, u8, comm, nullptr), comm,
                "recvcounts is NULL");
        invalid(twill_gather_v(a, 3, b, some, nullptr, u8, 0, comm, nullptr), comm,
                "sendcount is 3, counts[0] of this rank is 4");
        invalid(twill_scatter_v(a, some, nullptr, b, 5, u8, 0, comm, nullptr), comm,
                "recvcount is 5");
        invalid(twill_gather_v(a, 4, b, nullptr, nullptr, u8, 0, comm, nullptr), comm,
                "counts is NULL");
        invalid(twill_all_gather_v(a, b, some, close, u8, comm, nullptr), comm,
                "blocks 0 and 1 of recvbuf overlap");
        invalid(twill_gather_v(a, 4, b, some, nullptr, u8, 2, comm, nullptr), comm, "root 2");
        invalid(twill_all_gather_v(nullptr, b, some, nullptr, u8, comm, nullptr), comm,
                "sendbuf is NULL with 4");
        invalid(twill_all_gather_v(a, nullptr, some, nullptr, u8, comm, nullptr), comm,
                "recvbuf is NULL with 8");
    });
}

TEST_F(CollVArgs, OverlapThatIsNotInPlaceIsAnError)
{
    with([](twill_comm_t comm) {
        static unsigned char a[64];
        const size_t some[2] = {4, 4}, apart[2] = {0, 8}, others[2] = {4, 5};
        const twill_type_t u8 = TWILL_UINT8;
        invalid(twill_all_gather_v(a + 1, a, some, nullptr, u8, comm, nullptr), comm, "overlap");
        invalid(twill_reduce_scatter_v(a, a + 4, some, nullptr, u8, TWILL_SUM, comm, nullptr), comm,
                "overlap"); /* rank 1's block */
        invalid(twill_all_to_all_v(a, some, nullptr, a, some, apart, u8, comm, nullptr), comm,
                "overlap");
        invalid(twill_all_to_all_v(a, some, nullptr, a, others, nullptr, u8, comm, nullptr), comm,
                "overlap");
        invalid(twill_gather_v(a + 4, 4, a, some, nullptr, u8, 0, comm, nullptr), comm, "overlap");
        invalid(twill_scatter_v(a, some, nullptr, a + 7, 4, u8, 0, comm, nullptr), comm, "overlap");
        invalid(twill_gather(a + 4, a, 4, u8, 0, comm, nullptr), comm, "overlap");
        invalid(twill_scatter(a, a + 4, 4, u8, 0, comm, nullptr), comm, "overlap");
        invalid(twill_all_to_all(a, a + 4, 4, u8, comm, nullptr), comm, "overlap");
    });
}

/* Each buffer lies in the other's gaps; an empty block's displacement may be anything. */
TEST(CollV, BuffersMayLieInEachOthersGaps)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        unsigned char bytes[16] = {};
        const size_t counts[2] = {2, 2}, in[2] = {0, 4}, out[2] = {2, 6};
        for (size_t to = 0; to < 2; to++)
            for (size_t i = 0; i < 2; i++)
                bytes[in[to] + i] = (unsigned char)(1 + 100 * (size_t)rank.rank + 10 * to + i);
        ASSERT_OK(
            twill_all_to_all_v(bytes, counts, in, bytes, counts, out, TWILL_UINT8, comm, nullptr),
            comm);
        for (size_t from = 0; from < 2; from++)
            for (size_t i = 0; i < 2; i++)
                EXPECT_EQ(bytes[out[from] + i], 1 + 100 * from + 10 * (size_t)rank.rank + i);
        const size_t one[2] = {0, 3}, wild[2] = {SIZE_MAX, 1};
        unsigned char mine[3] = {7, 8, 9}, all[4] = {};
        ASSERT_OK(twill_all_gather_v(rank.rank ? mine : nullptr, all, one, wild, TWILL_UINT8, comm,
                                     nullptr),
                  comm);
        EXPECT_EQ(memcmp(all + 1, "\x07\x08\x09", 3), 0);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* ---- counts that do not match -----------------------------------------------------------------
 */

/* Ranks call with counts of their own; all of them must hear of it, and of whom. */
void mismatch(int size, const std::function<enum twill_status(int, twill_comm_t)> &call,
              const std::vector<std::string> &parts)
{
    world::run_all(
        size,
        [&](const world::Rank &rank) {
            twill_comm_t comm = rank.init();
            ASSERT_NE(comm, nullptr);
            rank.meet(0); /* a failure may not come while a rank still connects */
            enum twill_status status = call(rank.rank, comm);
            while (status == TWILL_OK) /* a rank that could finish hears of it later */
                status = twill_barrier(comm, nullptr);
            EXPECT_EQ(status, TWILL_ERR_MISMATCH) << world::text(comm);
            for (const std::string &part : parts)
                EXPECT_NE(world::text(comm).find(part), std::string::npos)
                    << world::text(comm) << "\nlacks: " << part;
            rank.meet(1);
            (void)twill_comm_abort(comm);
        },
        {}, 30);
}

TEST(CollVMismatch, APairsCountIsNamedOnAllRanks)
{
    for (const size_t wrong : {(size_t)0, (size_t)4, (size_t)300000}) {
        mismatch(3,
                 [&](int rank, twill_comm_t comm) {
                     static unsigned char in[400000], out[400000];
                     size_t send[3] = {5, 5, 5}, recv[3] = {5, 5, 5};
                     if (rank == 1)
                         send[2] = wrong;
                     return twill_all_to_all_v(in, send, nullptr, out, recv, nullptr, TWILL_UINT8,
                                               comm, nullptr);
                 },
                 {"all_to_all_v #1 uint8 with " + std::to_string(wrong) +
                      " elements to rank 2 and 5 from it",
                  "all_to_all_v #1 uint8 with 5 elements to rank 1 and 5 from it"});
    }
}

TEST(CollVMismatch, GatherAndScatterNameTheRootsCount)
{
    mismatch(3,
             [&](int rank, twill_comm_t comm) {
                 static unsigned char in[64], out[64];
                 const size_t counts[3] = {1, 2, 3};
                 return twill_gather_v(in, rank == 2 ? 4 : counts[rank], out, counts, nullptr,
                                       TWILL_UINT8, 0, comm, nullptr);
             },
             {"rank 2 called gather_v #1 uint8 root 0 with 4 elements to rank 0",
              "rank 0 called gather_v #1 uint8 root 0 with 0 elements to rank 2 and 3 from it"});
    mismatch(3,
             [&](int rank, twill_comm_t comm) {
                 static unsigned char in[64], out[64];
                 const size_t counts[3] = {1, 2, 3};
                 return twill_scatter_v(in, counts, nullptr, out, rank == 1 ? 0 : counts[rank],
                                        TWILL_UINT8, 0, comm, nullptr);
             },
             {"scatter_v #1 uint8 root 0 with 0 elements to rank 0 and 0 from it",
              "scatter_v #1 uint8 root 0 with 2 elements to rank 1 and 0 from it"});
}

TEST(CollVMismatch, OtherCountsOfAThirdRankAreNamed)
{
    mismatch(3,
             [&](int rank, twill_comm_t comm) {
                 static unsigned char in[64], out[64];
                 const size_t counts[3] = {1, 2, rank == 1 ? (size_t)4 : 3};
                 return twill_all_gather_v(in, out, counts, nullptr, TWILL_UINT8, comm, nullptr);
             },
             {"all_gather_v #1 uint8", " for rank 2"});
    mismatch(2,
             [&](int rank, twill_comm_t comm) {
                 static float in[64], out[64];
                 const size_t counts[2] = {rank ? (size_t)2 : 3, rank ? (size_t)3 : 2};
                 return twill_reduce_scatter_v(in, out, counts, nullptr, TWILL_FLOAT32, TWILL_SUM,
                                               comm, nullptr);
             },
             {"reduce_scatter_v #1 float32 sum with 2 elements to rank ", " for rank 0, rank "});
}

} // namespace
