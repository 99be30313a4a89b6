/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what communicators out of others must be, seen through the C API. Never knows: how. */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "world.h"

namespace
{

int number(enum twill_status (*ask)(twill_comm_t, int *), twill_comm_t comm)
{
    int value = -9;
    EXPECT_OK(ask(comm, &value), comm);
    return value;
}

/* Sum over the ranks of what each gives. */
int sum(twill_comm_t comm, int mine)
{
    EXPECT_OK(twill_all_reduce(&mine, &mine, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
    return mine;
}

twill_config unblocking()
{
    twill_config config = TWILL_CONFIG_INIT;
    config.blocking = 0;
    return config;
}

struct Case {
    const char *name;
    int size;
    int colors[6], keys[6];
    int sizes[6], ranks[6]; /* expected; size 0: none */
};

const Case cases[] = {
    {"all in order", 3, {7, 7, 7}, {0, 0, 0}, {3, 3, 3}, {0, 1, 2}},
    {"all reversed", 3, {0, 0, 0}, {2, 1, 0}, {3, 3, 3}, {2, 1, 0}},
    {"odd and even", 5, {0, 1, 0, 1, 0}, {0, 0, 0, 0, 0}, {3, 2, 3, 2, 3}, {0, 0, 1, 1, 2}},
    {"alone each", 3, {0, 1, 2}, {0, 0, 0}, {1, 1, 1}, {0, 0, 0}},
    {"one has none",
     4,
     {3, -1, 3, 3},
     {-5, 0, 2147483647, -2147483647 - 1},
     {3, 0, 3, 3},
     {1, 0, 2, 0}},
    {"nobody has any", 2, {-1, -1}, {0, 0}, {0, 0}, {0, 0}},
};

/* What rank r of a case gets: the right place, and a communicator that adds up. */
void check_child(const Case &c, int r, twill_comm_t child)
{
    SCOPED_TRACE(c.name);
    if (c.sizes[r] == 0) {
        EXPECT_EQ(child, nullptr);
        return;
    }
    ASSERT_NE(child, nullptr);
    EXPECT_EQ(number(twill_comm_size, child), c.sizes[r]);
    EXPECT_EQ(number(twill_comm_rank, child), c.ranks[r]);
    int expected = 0;
    for (int i = 0; i < c.size; i++)
        expected += c.colors[i] == c.colors[r] ? 1 << i : 0;
    EXPECT_EQ(sum(child, 1 << r), expected);
}

TEST(Split, ColorsAndKeys)
{
    for (const Case &c : cases) {
        world::run_all(c.size, [&c](const world::Rank &rank) {
            const int r = rank.rank;
            twill_comm_t comm = rank.init(), child = comm;
            ASSERT_NE(comm, nullptr);
            ASSERT_OK(twill_comm_split(comm, c.colors[r], c.keys[r], &child, nullptr), comm);
            check_child(c, r, child);
            EXPECT_EQ(sum(comm, 1), c.size);
            /* either may go first */
            if (c.colors[r] == c.colors[0]) {
                EXPECT_OK(twill_comm_destroy(child), nullptr);
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
            } else {
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
                EXPECT_OK(twill_comm_destroy(child), nullptr);
            }
        });
    }
}

/* Both with and without waiting, all ranks of one thread. */
void one_thread(const Case &c, const twill_config *config)
{
    std::vector<twill_comm_t> comms((size_t)c.size), children((size_t)c.size, nullptr);
    ASSERT_OK(twill_comm_init_all(comms.data(), c.size, nullptr, nullptr), nullptr);
    std::vector<int> sums((size_t)c.size, 1);
    ASSERT_OK(twill_group_start(), nullptr);
    for (int r = 0; r < c.size; r++) {
        const size_t i = (size_t)r;
        EXPECT_OK(twill_comm_split(comms[i], c.colors[r], c.keys[r], &children[i], config),
                  comms[i]);
        EXPECT_OK(
            twill_all_reduce(&sums[i], &sums[i], 1, TWILL_INT32, TWILL_SUM, comms[i], nullptr),
            comms[i]);
    }
    const enum twill_status status = twill_group_end();
    EXPECT_TRUE(status == TWILL_OK || (config && status == TWILL_INPROGRESS))
        << twill_last_error(nullptr);
    for (const int s : sums)
        EXPECT_EQ(s, c.size);
    std::vector<int> mine((size_t)c.size);
    for (size_t i = 0; i < children.size(); i++) {
        if (children[i]) {
            EXPECT_EQ(world::settle(children[i]), TWILL_OK) << twill_last_error(children[i]);
            EXPECT_EQ(number(twill_comm_rank, children[i]), c.ranks[i]);
            EXPECT_EQ(number(twill_comm_size, children[i]), c.sizes[i]);
        } else {
            EXPECT_EQ(c.sizes[i], 0);
        }
    }
    for (twill_comm_t child : children)
        EXPECT_OK(twill_comm_destroy(child), nullptr);
    for (twill_comm_t comm : comms)
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
}

TEST(Split, OfOneThreadInAGroup)
{
    world::run_alone([] {
        const twill_config config = unblocking();
        for (const Case &c : cases) {
            SCOPED_TRACE(c.name);
            one_thread(c, nullptr);
            one_thread(c, &config);
        }
    });
}

TEST(Split, SeveralAtOnceWithoutWaiting)
{
    world::run_all(4, [](const world::Rank &rank) {
        const twill_config config = unblocking();
        const int r = rank.rank;
        twill_comm_t comm = rank.init(), pairs = nullptr, halves = nullptr, all = nullptr;
        ASSERT_NE(comm, nullptr);
        EXPECT_EQ(twill_comm_split(comm, r % 2, 0, &pairs, &config), TWILL_INPROGRESS);
        EXPECT_EQ(sum(comm, 1), 4);
        EXPECT_EQ(twill_comm_split(comm, r / 2, -r, &halves, &config), TWILL_INPROGRESS);
        EXPECT_EQ(twill_comm_split(comm, 0, 0, &all, &config), TWILL_INPROGRESS);
        ASSERT_NE(pairs, nullptr);
        EXPECT_EQ(world::settle(all), TWILL_OK) << twill_last_error(all);
        EXPECT_EQ(world::settle(halves), TWILL_OK) << twill_last_error(halves);
        EXPECT_EQ(world::settle(pairs), TWILL_OK) << twill_last_error(pairs);
        EXPECT_EQ(sum(pairs, r), r % 2 ? 4 : 2);
        EXPECT_EQ(sum(halves, r), r / 2 ? 5 : 1);
        EXPECT_EQ(number(twill_comm_rank, halves), 1 - r % 2);
        EXPECT_EQ(sum(all, r), 6);
        for (twill_comm_t child : {pairs, halves, all, comm})
            EXPECT_OK(twill_comm_destroy(child), nullptr);
    });
}

/* The handle of a split that others have not joined yet. */
TEST(Split, IsGivenUpBeforeOthersCome)
{
    world::run_all(2, [](const world::Rank &rank) {
        const twill_config config = unblocking();
        twill_comm_t comm = rank.init(), child = nullptr;
        ASSERT_NE(comm, nullptr);
        if (rank.rank == 0) {
            ASSERT_EQ(twill_comm_split(comm, 0, 0, &child, &config), TWILL_INPROGRESS);
            int value;
            EXPECT_EQ(twill_comm_rank(child, &value), TWILL_ERR_USAGE);
            EXPECT_EQ(twill_comm_size(child, &value), TWILL_ERR_USAGE);
            EXPECT_EQ(twill_barrier(child, nullptr), TWILL_ERR_USAGE);
            EXPECT_OK(twill_comm_destroy(child), nullptr);
            world::set(&world::shared()->words[0], 1);
        }
        world::await(&world::shared()->words[0], 1);
        if (rank.rank == 1) {
            ASSERT_EQ(twill_comm_split(comm, TWILL_SPLIT_NOCOLOR, 0, &child, &config), TWILL_OK);
            EXPECT_EQ(child, nullptr);
        }
        EXPECT_EQ(sum(comm, 1), 2);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Rank `giver` lets go of its new communicator before it is connected, early: before the others
 * have called. Those of its color must not wait for it; the others do not mind. */
void gives_up(const world::Rank &rank, twill_comm_t comm, int giver, bool early, int point)
{
    const twill_config config = unblocking();
    const int color = rank.rank == 3;
    twill_comm_t child = nullptr;
    if (early && rank.rank != giver)
        rank.meet(point);
    ASSERT_EQ(twill_comm_split(comm, color, 0, &child, &config), TWILL_INPROGRESS);
    if (rank.rank == giver) {
        EXPECT_OK(early ? twill_comm_abort(child) : TWILL_OK, child);
        EXPECT_OK(twill_comm_destroy(child), nullptr);
        child = nullptr;
    }
    if (early && rank.rank == giver)
        rank.meet(point);
    if (!child)
        return;
    const enum twill_status status = world::settle(child);
    if (color == 0) {
        EXPECT_EQ(status, TWILL_ERR_ABORTED);
        EXPECT_NE(world::text(child).find("rank " + std::to_string(giver)), std::string::npos)
            << world::text(child);
    } else {
        EXPECT_EQ(status, TWILL_OK) << world::text(child);
    }
    EXPECT_OK(twill_comm_destroy(child), nullptr);
}

TEST(Split, OnesThatGiveUpAreNotWaitedFor)
{
    world::run_all(4, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        int point = 0;
        for (const bool early : {true, false})
            for (int giver = 0; giver < 3; giver++)
                gives_up(rank, comm, giver, early, point++);
        EXPECT_EQ(sum(comm, 1), 4);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Rank `poor` has descriptors for `spare` more. @return what its split says */
enum twill_status split_with(int spare, twill_comm_t comm, twill_comm_t *child)
{
    struct rlimit before;
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = dup(0);
    EXPECT_GE(next, 0);
    close(next);
    const struct rlimit few = {.rlim_cur = (rlim_t)(next + spare), .rlim_max = before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const enum twill_status status = twill_comm_split(comm, 0, 0, child, nullptr);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    return status;
}

void splits_poorly(const world::Rank &rank, int poor, int spare)
{
    twill_comm_t comm = rank.init(), child = nullptr;
    ASSERT_NE(comm, nullptr);
    const enum twill_status status = rank.rank == poor
                                         ? split_with(spare, comm, &child)
                                         : twill_comm_split(comm, 0, 0, &child, nullptr);
    EXPECT_EQ(child != nullptr, status == TWILL_OK);
    EXPECT_TRUE(status == TWILL_OK || status == TWILL_ERR_SYSTEM)
        << "poor " << poor << " spare " << spare << ": " << twill_status_string(status) << ": "
        << world::text(comm);
    EXPECT_OK(twill_comm_destroy(child), nullptr);
    EXPECT_EQ(sum(comm, 1), 3) << "poor " << poor << " spare " << spare;
    EXPECT_OK(twill_comm_destroy(comm), nullptr);
}

/* With one descriptor less than it takes, and so on down to those of the first step: all ranks
 * hear of it, none waits, and the parent is as it was. Each in a job of its own, since what a
 * failed meeting still holds for a second would be wanting there. */
TEST(Split, WithoutDescriptorsFailsOnAllRanksAtOnce)
{
    for (int poor = 0; poor < 3; poor++)
        for (int spare = 1; spare < 20; spare++)
            world::run_all(3, [&](const world::Rank &rank) { splits_poorly(rank, poor, spare); },
                           {{"TWILL_PROBE", "0"}});
}

TEST(Split, BadArguments)
{
    world::run_alone([] {
        twill_comm_t comm = nullptr, child = nullptr;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
        twill_config config = TWILL_CONFIG_INIT;
        config.channels = -4;
        EXPECT_EQ(twill_comm_split(nullptr, 0, 0, &child, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_split(comm, 0, 0, nullptr, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_split(comm, -2, 0, &child, nullptr), TWILL_ERR_INVALID);
        EXPECT_NE(world::text(comm).find("-2"), std::string::npos);
        EXPECT_EQ(twill_comm_split(comm, 0, 0, &child, &config), TWILL_ERR_INVALID);
        EXPECT_EQ(child, nullptr);
        EXPECT_EQ(sum(comm, 5), 5);
        EXPECT_OK(twill_comm_abort(comm), comm);
        EXPECT_EQ(twill_comm_split(comm, 0, 0, &child, nullptr), TWILL_ERR_ABORTED);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Split, AgainstAnotherCallIsNamed)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init(), child = nullptr;
        ASSERT_NE(comm, nullptr);
        int x = 1;
        if (rank.rank == 0)
            EXPECT_EQ(twill_comm_split(comm, 0, 0, &child, nullptr), TWILL_ERR_MISMATCH);
        else
            EXPECT_EQ(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
                      TWILL_ERR_MISMATCH);
        EXPECT_EQ(child, nullptr);
        EXPECT_NE(world::text(comm).find("comm_split #1"), std::string::npos) << world::text(comm);
        EXPECT_NE(world::text(comm).find("all_reduce #1"), std::string::npos) << world::text(comm);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Split, DifferentOptionsAreNamed)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init(), child = nullptr;
        twill_config config = TWILL_CONFIG_INIT;
        config.channels = rank.rank + 1;
        ASSERT_NE(comm, nullptr);
        EXPECT_EQ(twill_comm_split(comm, 0, 0, &child, &config), TWILL_ERR_VERSION);
        EXPECT_NE(world::text(comm).find("channels=1"), std::string::npos) << world::text(comm);
        EXPECT_NE(world::text(comm).find("channels=2"), std::string::npos) << world::text(comm);
        EXPECT_EQ(child, nullptr);
        EXPECT_EQ(sum(comm, 1), 2);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* The last rank dies before the call, the others are in it. */
TEST(Split, ADeadRankIsNamed)
{
    for (const bool waits : {true, false}) {
        const auto exits = world::run(3, [waits](const world::Rank &rank) {
            twill_config config = TWILL_CONFIG_INIT;
            config.blocking = waits;
            twill_comm_t comm = rank.init(), child = nullptr;
            ASSERT_NE(comm, nullptr);
            rank.meet(0); /* nobody is connecting any more */
            if (rank.rank == 2 && !waits)
                rank.meet(1);
            if (rank.rank == 2)
                kill(getpid(), SIGKILL);
            enum twill_status status = twill_comm_split(comm, 0, 0, &child, &config);
            if (!waits)
                rank.meet(1); /* the others have their handles */
            if (status == TWILL_INPROGRESS)
                status = world::settle(child);
            EXPECT_EQ(status, TWILL_ERR_PEER);
            const std::string text = world::text(child ? child : comm);
            EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
            EXPECT_EQ(child == nullptr, waits);
            EXPECT_OK(twill_comm_destroy(child), nullptr);
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
        });
        for (int r = 0; r < 2; r++)
            EXPECT_FALSE(exits[(size_t)r].failed_expectations) << r;
        EXPECT_EQ(exits[2].signal, SIGKILL);
    }
}

/* Rows, columns and the whole of a grid, each driven by a thread of its own, while the whole is
 * split again and again. */
TEST(Split, ManyAliveAndInterleaved)
{
    world::run_all(4, [](const world::Rank &rank) {
        const int r = rank.rank;
        twill_comm_t comm = rank.init(), row = nullptr, column = nullptr;
        ASSERT_NE(comm, nullptr);
        ASSERT_OK(twill_comm_split(comm, r / 2, 0, &row, nullptr), comm);
        ASSERT_OK(twill_comm_split(comm, r % 2, 0, &column, nullptr), comm);
        world::threads(3, [&](int thread) {
            if (thread < 2) {
                twill_comm_t mine = thread ? column : row;
                const int peer = thread ? r ^ 2 : r ^ 1;
                for (int i = 0; i < 100; i++)
                    ASSERT_EQ(sum(mine, i + r), 2 * i + r + peer);
                return;
            }
            std::vector<twill_comm_t> kept;
            twill_comm_t parent = comm;
            for (int depth = 0; depth < 6; depth++) {
                twill_comm_t child = nullptr;
                ASSERT_OK(twill_comm_split(parent, 5, -depth * r, &child, nullptr), parent);
                kept.push_back(child);
                for (twill_comm_t each : kept)
                    ASSERT_EQ(sum(each, 1 << r), 15);
                parent = child;
            }
            for (size_t i = 0; i < kept.size(); i++) /* outer and inner ones in turn */
                EXPECT_OK(twill_comm_destroy(kept[i % 2 ? kept.size() - 1 - i / 2 : i / 2]),
                          nullptr);
        });
        /* crosswise in one thread: rows and columns side by side */
        int x = r, y = r;
        ASSERT_OK(twill_group_start(), nullptr);
        for (twill_comm_t c : r % 2 ? std::vector{row, column} : std::vector{column, row})
            EXPECT_OK(twill_all_reduce(c == row ? &x : &y, c == row ? &x : &y, 1, TWILL_INT32,
                                       TWILL_SUM, c, nullptr),
                      c);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(x, r + (r ^ 1));
        EXPECT_EQ(y, r + (r ^ 2));
        for (twill_comm_t c : {column, comm, row})
            EXPECT_OK(twill_comm_destroy(c), nullptr);
    });
}

} // namespace
