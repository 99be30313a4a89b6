/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what groups of small all_reduces must come to, seen through the C API. Never knows: how.
 */
#include "data.h"
#include "world.h"

namespace
{

struct One {
    size_t count;
    twill_type_t type;
    twill_redop_t op;
};

/* Runs of what fuses and what does not, in one group. */
const std::vector<std::vector<One>> groups = {
    {{1, TWILL_INT32, TWILL_SUM}, {7, TWILL_INT32, TWILL_SUM}, {1023, TWILL_INT32, TWILL_SUM}},
    {{5, TWILL_FLOAT32, TWILL_MAX}, {5, TWILL_FLOAT32, TWILL_SUM}, {5, TWILL_FLOAT32, TWILL_SUM}},
    {{3, TWILL_INT32, TWILL_SUM}, {0, TWILL_INT32, TWILL_SUM}, {3, TWILL_INT32, TWILL_SUM}},
    {{4096, TWILL_INT32, TWILL_SUM}, {4097, TWILL_INT32, TWILL_SUM}, {1, TWILL_INT32, TWILL_SUM}},
    {{2, TWILL_UINT8, TWILL_AVG}, {9, TWILL_UINT8, TWILL_AVG}, {2, TWILL_INT32, TWILL_AVG}},
    std::vector<One>(150, One{33, TWILL_FLOAT64, TWILL_SUM}),
    std::vector<One>(40, One{4096, TWILL_FLOAT32, TWILL_SUM}),
};

/* One rank's buffers of a group. */
struct Work {
    std::vector<data::Bytes> in, out, expected;
    Work(const std::vector<One> &group, int rank, int size)
    {
        for (size_t i = 0; i < group.size(); i++) {
            const One &one = group[i];
            const size_t bytes = one.count * data::type_bytes(one.type);
            in.emplace_back(bytes);
            out.emplace_back(bytes);
            expected.emplace_back(bytes);
            data::fill(in[i].data(), one.count, one.type, i, rank);
            data::fill_reduced(expected[i].data(), one.count, one.type, one.op, i, size);
        }
    }
    /* Every third in place; stream s of streams, NULL among them. */
    void call(const std::vector<One> &group, twill_comm_t comm,
              const std::vector<twill_stream_t> &streams)
    {
        for (size_t i = 0; i < group.size(); i++) {
            if (i % 3 == 2)
                out[i] = in[i];
            EXPECT_OK(twill_all_reduce(i % 3 == 2 ? out[i].data() : in[i].data(), out[i].data(),
                                       group[i].count, group[i].type, group[i].op, comm,
                                       streams[i % streams.size()]),
                      comm);
        }
    }
};

TEST(Fuse, GivesWhatSinglyIsGiven)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        twill_stream_t stream[2] = {};
        ASSERT_NE(comm, nullptr);
        for (twill_stream_t &s : stream)
            ASSERT_OK(twill_stream_create(&s), nullptr);
        /* where the calls are queued is each rank's own affair */
        const std::vector<std::vector<twill_stream_t>> ways = {
            {nullptr}, {stream[0]}, {stream[0], nullptr, stream[1]}};
        for (size_t g = 0; g < groups.size(); g++) {
            for (size_t way = 0; way < ways.size(); way++) {
                SCOPED_TRACE(g * 10 + way);
                Work work(groups[g], rank.rank, rank.size);
                ASSERT_OK(twill_group_start(), nullptr);
                work.call(groups[g], comm, ways[(way + (size_t)rank.rank) % ways.size()]);
                ASSERT_OK(twill_group_end(), nullptr);
                for (twill_stream_t s : stream)
                    ASSERT_OK(twill_stream_synchronize(s), nullptr);
                EXPECT_EQ(work.out, work.expected);
            }
        }
        for (twill_stream_t s : stream)
            EXPECT_OK(twill_stream_destroy(s), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Two communicators and sends between the calls. */
TEST(Fuse, AmongOtherCalls)
{
    world::run_alone([] {
        twill_comm_t a[2], b[2];
        ASSERT_OK(twill_comm_init_all(a, 2, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_comm_init_all(b, 2, nullptr, nullptr), nullptr);
        int x[2][6], got[2] = {};
        const int own[2] = {0, 1};
        ASSERT_OK(twill_group_start(), nullptr);
        for (int r = 0; r < 2; r++) {
            for (int i = 0; i < 6; i++) {
                x[r][i] = 10 * i + r;
                twill_comm_t comm = i % 2 ? a[r] : b[r];
                EXPECT_OK(
                    twill_all_reduce(&x[r][i], &x[r][i], 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
                    comm);
                if (i == 3) {
                    EXPECT_OK(twill_send(&own[r], 1, TWILL_INT32, 1 - r, a[r], nullptr), a[r]);
                    EXPECT_OK(twill_recv(&got[r], 1, TWILL_INT32, 1 - r, a[r], nullptr), a[r]);
                }
            }
        }
        ASSERT_OK(twill_group_end(), nullptr);
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < 6; i++)
                EXPECT_EQ(x[r][i], 20 * i + 1) << r << " " << i;
        EXPECT_EQ(got[0], 1);
        EXPECT_EQ(got[1], 0);
        for (int r = 0; r < 2; r++) {
            EXPECT_OK(twill_comm_destroy(a[r]), nullptr);
            EXPECT_OK(twill_comm_destroy(b[r]), nullptr);
        }
    });
}

/* Singly, in another grouping, or with other counts of the same sum. */
TEST(Fuse, OtherGroupingsAreNamed)
{
    const std::vector<std::vector<size_t>> others = {{3}, {1, 2}, {1, 1, 1}, {2, 1}};
    for (size_t way = 0; way + 1 < others.size(); way++) {
        world::run_all(2, [&](const world::Rank &rank) {
            twill_comm_t comm = rank.init();
            ASSERT_NE(comm, nullptr);
            const std::vector<size_t> &counts = others[rank.rank ? others.size() - 1 : way];
            int x[3] = {1, 2, 3}, *at = x;
            ASSERT_OK(twill_group_start(), nullptr);
            for (const size_t count : counts) {
                EXPECT_OK(twill_all_reduce(at, at, count, TWILL_INT32, TWILL_SUM, comm, nullptr),
                          comm);
                at += count;
            }
            EXPECT_EQ(twill_group_end(), TWILL_ERR_MISMATCH);
            const std::string text = world::text(comm);
            EXPECT_NE(text.find("count 3 int32 sum (2 calls of a group)"), std::string::npos)
                << text;
            if (counts.size() == 2 && others[way].size() == 2) {
                EXPECT_NE(text.find("but with other counts"), std::string::npos) << text;
            }
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
        });
    }
}

TEST(Fuse, CallsThatDependOnEachOtherAreRefused)
{
    world::run_alone([] {
        twill_comm_t comm = nullptr;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
        int x[4] = {1, 2, 3, 4}, y[4] = {};
        struct {
            int *in, *out;
        } second[] = {{y + 1, x}, {x, y + 3}};
        for (const auto &bad : second) {
            ASSERT_OK(twill_group_start(), nullptr);
            EXPECT_OK(twill_all_reduce(x + 2, y, 2, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
            EXPECT_OK(twill_all_reduce(x, y + 2, 2, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
            EXPECT_OK(twill_all_reduce(bad.in, bad.out, 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
                      comm);
            EXPECT_EQ(twill_group_end(), TWILL_ERR_USAGE);
            EXPECT_NE(world::text(nullptr).find("simultaneous"), std::string::npos);
            EXPECT_EQ(y[0], 0);
        }
        EXPECT_OK(twill_all_reduce(x, y, 4, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
        EXPECT_EQ(y[3], 4);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

} // namespace
