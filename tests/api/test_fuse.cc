/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what groups of small all_reduces must come to, seen through the C API. Never knows: how.
 */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

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

/* ---- calls that depend on each other ------------------------------------------------------------
 */

/* Of three calls of 2 elements each, the first reads x[0..2) and writes x[10..12); where the others
 * read and write, in elements of x. */
struct Places {
    const char *name;
    int in[3], out[3];
    bool refused;
};
const Places places[] = {
    {"apart", {0, 2, 4}, {10, 12, 14}, false},
    {"in place", {0, 2, 4}, {0, 2, 4}, false},
    {"one input", {0, 0, 0}, {10, 12, 14}, false},
    {"inputs that overlap", {0, 1, 2}, {10, 12, 14}, false},
    {"a chain", {0, 10, 12}, {10, 12, 14}, true},
    {"a chain with a call between", {0, 2, 10}, {10, 12, 14}, true},
    {"a chain over one element", {0, 2, 11}, {10, 12, 14}, true},
    {"writes what was read before", {0, 2, 4}, {10, 12, 0}, true},
    {"in place over another's input", {0, 1, 4}, {10, 1, 14}, true},
    {"one output", {0, 2, 4}, {10, 12, 10}, true},
    {"outputs over one element", {0, 2, 4}, {10, 11, 14}, true},
    {"twice in place", {0, 2, 0}, {0, 2, 0}, true},
};

enum Form { BLOCKING, NONBLOCKING, STREAM, TWO_STREAMS, FORMS };

struct Stage {
    twill_comm_t comm = nullptr;
    twill_stream_t streams[2] = {};
    Form form;
    const world::Rank &job;
    explicit Stage(const world::Rank &rank, Form f) : form(f), job(rank)
    {
        twill_config config = TWILL_CONFIG_INIT;
        config.blocking = form != NONBLOCKING;
        const twill_unique_id id = rank.id();
        enum twill_status status = twill_comm_init(&comm, rank.size, &id, rank.rank, &config);
        for (twill_stream_t &stream : streams)
            EXPECT_OK(twill_stream_create(&stream), nullptr);
        while (status == TWILL_INPROGRESS && twill_comm_async_error(comm, &status) == TWILL_OK)
            sched_yield();
        EXPECT_EQ(status, TWILL_OK);
        rank.meet(0); /* a failure is to find all of them out of init */
    }
    ~Stage()
    {
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
        for (twill_stream_t stream : streams)
            EXPECT_OK(twill_stream_destroy(stream), nullptr);
    }
    /* All have noted their calls before the first group ends: nobody hears of a failure earlier. */
    enum twill_status group(const Places &at, int *x, bool late = false) const
    {
        const twill_stream_t on[FORMS][3] = {
            {}, {}, {streams[0], streams[0], streams[0]}, {streams[0], nullptr, streams[1]}};
        EXPECT_OK(twill_group_start(), nullptr);
        for (int i = 0; i < 3; i++)
            EXPECT_OK(twill_all_reduce(x + at.in[i], x + at.out[i], 2, TWILL_INT32, TWILL_SUM, comm,
                                       on[form][i]),
                      comm);
        job.meet(1);
        if (late) /* the others have looked around by then; that they wait has no sign */
            usleep(50000);
        return twill_group_end();
    }
};

/* Every rank's buffers lie alike. */
TEST(FuseOverlap, EachKind)
{
    for (const Places &at : places) {
        for (int form = 0; form < FORMS; form++) {
            SCOPED_TRACE(std::string(at.name) + ", form " + std::to_string(form));
            world::run_all(2, [&](const world::Rank &rank) {
                const Stage stage(rank, (Form)form);
                int x[16], before[16];
                for (int i = 0; i < 16; i++)
                    before[i] = x[i] = i + 100 * rank.rank;
                const enum twill_status status = stage.group(at, x);
                for (twill_stream_t stream : stage.streams)
                    EXPECT_EQ(twill_stream_synchronize(stream) < 0,
                              at.refused && (stream == stage.streams[0] ? form >= STREAM
                                                                        : form == TWO_STREAMS));
                if (at.refused) {
                    EXPECT_EQ(status, TWILL_ERR_USAGE);
                    EXPECT_NE(world::text(nullptr).find("simultaneous"), std::string::npos);
                    EXPECT_EQ(memcmp(x, before, sizeof x), 0);
                    return;
                }
                EXPECT_OK(status, stage.comm);
                for (int i = 0; i < 6; i++) {
                    const int in = at.in[i / 2] + i % 2;
                    EXPECT_EQ(x[at.out[i / 2] + i % 2], 2 * in + 100) << i;
                }
            });
        }
    }
}

/* The others cannot know; they are told at once, by the rank whose buffers overlap. */
TEST(FuseOverlap, OfOneRankIsToldToAll)
{
    for (int form = 0; form < FORMS; form++) {
        for (bool late : {false, true}) {
            SCOPED_TRACE(std::to_string(form) + (late ? ", the others wait already" : ""));
            world::run_all(3, [&](const world::Rank &rank) {
                const Stage stage(rank, (Form)form);
                const bool odd = rank.rank == 1;
                int x[16] = {};
                const double start_s = world::now_s();
                enum twill_status status = stage.group(places[odd ? 4 : 0], x, odd && late);
                if (odd) {
                    EXPECT_EQ(status, TWILL_ERR_USAGE);
                }
                if (status == TWILL_OK)
                    status = twill_stream_synchronize(stage.streams[0]);
                EXPECT_EQ(status, TWILL_ERR_USAGE);
                EXPECT_LT(world::now_s() - start_s, 5);
                EXPECT_EQ(world::text(stage.comm),
                          "group: of rank 1's 3 small all_reduces that run as one, number 0 writes "
                          "what number 1 reads: calls of a group are simultaneous");
                enum twill_status now;
                EXPECT_OK(twill_comm_async_error(stage.comm, &now), stage.comm);
                EXPECT_EQ(now, TWILL_ERR_USAGE);
                (void)twill_stream_synchronize(stage.streams[0]);
                (void)twill_stream_synchronize(stage.streams[1]);
            });
        }
    }
}

/* Another communicator of the group, whose ranks the others wait for, goes on. */
TEST(FuseOverlap, OtherCommunicatorsAreUnharmed)
{
    world::run_all(2, [](const world::Rank &rank) {
        const Stage bad(rank, BLOCKING);
        twill_comm_t good = nullptr;
        ASSERT_OK(twill_comm_split(bad.comm, 0, rank.rank, &good, nullptr), bad.comm);
        int x[16] = {}, sum[2] = {1, 1}, big = 3;
        ASSERT_OK(twill_group_start(), nullptr);
        EXPECT_OK(twill_all_reduce(&sum[0], &sum[0], 1, TWILL_INT32, TWILL_SUM, good, nullptr),
                  good);
        for (int i = 0; i < 2; i++)
            EXPECT_OK(twill_all_reduce(x + 2 * i, x + (rank.rank ? 2 : 10 + 2 * i), 1, TWILL_INT32,
                                       TWILL_SUM, bad.comm, nullptr),
                      bad.comm);
        EXPECT_OK(twill_all_reduce(&sum[1], &sum[1], 1, TWILL_INT32, TWILL_SUM, good, nullptr),
                  good);
        rank.meet(1);
        EXPECT_EQ(twill_group_end(), TWILL_ERR_USAGE);
        EXPECT_EQ(sum[0], 2);
        EXPECT_EQ(sum[1], 2);
        EXPECT_OK(twill_all_reduce(&big, &big, 1, TWILL_INT32, TWILL_SUM, good, nullptr), good);
        EXPECT_EQ(big, 6);
        EXPECT_OK(twill_comm_destroy(good), nullptr);
    });
}

/* What does not fuse runs in order, so a chain of it is one. */
TEST(FuseOverlap, LargeCallsMayBeChained)
{
    world::run_all(2, [](const world::Rank &rank) {
        const Stage stage(rank, BLOCKING);
        std::vector<int> x(3 * 5000, 1);
        ASSERT_OK(twill_group_start(), nullptr);
        for (int i = 0; i < 2; i++)
            EXPECT_OK(twill_all_reduce(&x[5000 * i], &x[5000 * (i + 1)], 5000, TWILL_INT32,
                                       TWILL_SUM, stage.comm, nullptr),
                      stage.comm);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(x, [] {
            std::vector<int> expected(3 * 5000, 1);
            std::fill(expected.begin() + 5000, expected.begin() + 10000, 2);
            std::fill(expected.begin() + 10000, expected.end(), 4);
            return expected;
        }());
    });
}

} // namespace
