/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what is left of a communicator whose ranks die, seen through the C API.
 * Never knows: how the living find each other. */
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "world.h"

namespace
{

int sum(twill_comm_t comm, int mine)
{
    EXPECT_OK(twill_all_reduce(&mine, &mine, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
    return mine;
}

void expect_place(twill_comm_t comm, int rank, int size)
{
    int value = -9;
    EXPECT_OK(twill_comm_rank(comm, &value), comm);
    EXPECT_EQ(value, rank);
    EXPECT_OK(twill_comm_size(comm, &value), comm);
    EXPECT_EQ(value, size);
}

/* Waiting or not. */
twill_comm_t shrunk(twill_comm_t comm, bool waits)
{
    twill_config config = TWILL_CONFIG_INIT;
    config.blocking = waits;
    twill_comm_t made = nullptr;
    const enum twill_status status = twill_comm_shrink(comm, &made, &config);
    EXPECT_EQ(status, waits ? TWILL_OK : TWILL_INPROGRESS) << twill_last_error(comm);
    if (made) {
        EXPECT_EQ(world::settle(made), TWILL_OK) << twill_last_error(made);
    }
    return made;
}

/* One with dead ranks, which may not know of it yet. */
void end(twill_comm_t comm)
{
    EXPECT_OK(twill_comm_abort(comm), comm);
    EXPECT_OK(twill_comm_destroy(comm), nullptr);
}

void expect_ends(const std::vector<world::Exit> &exits, unsigned dead)
{
    for (size_t r = 0; r < exits.size(); r++) {
        if (dead >> r & 1) {
            EXPECT_EQ(exits[r].signal, SIGKILL) << r;
        } else {
            EXPECT_FALSE(exits[r].failed_expectations || exits[r].signal) << r;
        }
    }
}

/* The victims are killed while the others are in a call with them. */
void survive(unsigned dead, bool waits)
{
    const auto exits = world::run(4, [=](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        EXPECT_EQ(sum(comm, 1), 4);
        rank.meet(0); /* nobody is in that call any more */
        if (dead >> rank.rank & 1)
            kill(getpid(), SIGKILL);
        int x = 1;
        EXPECT_EQ(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
                  TWILL_ERR_PEER);
        int before = 0, living = 0, expected = 0;
        for (int r = 0; r < 4; r++) {
            if (dead >> r & 1)
                continue;
            before += r < rank.rank;
            expected += 1 << r;
            living++;
        }
        twill_comm_t made = shrunk(comm, waits);
        ASSERT_NE(made, nullptr);
        expect_place(made, before, living);
        EXPECT_EQ(sum(made, 1 << rank.rank), expected);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
        EXPECT_EQ(sum(made, 1), living);
        EXPECT_OK(twill_comm_destroy(made), nullptr);
    });
    expect_ends(exits, dead);
}

TEST(Shrink, TheLivingGoOn)
{
    for (const unsigned dead : {1u << 2, 1u << 0, 1u << 0 | 1u << 3, 0x7u}) {
        SCOPED_TRACE(dead);
        survive(dead, true);
    }
    survive(1u << 1, false);
}

TEST(Shrink, AgainAndAgain)
{
    const auto exits = world::run(4, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        for (int left = 4; left > 1; left--) {
            ASSERT_EQ(sum(comm, 1), left);
            int *out = &world::shared()->words[left]; /* of that call */
            __atomic_fetch_add(out, 1, __ATOMIC_ACQ_REL);
            world::await(out, left);
            if (rank.rank == 4 - left)
                kill(getpid(), SIGKILL);
            twill_comm_t made = shrunk(comm, true);
            ASSERT_NE(made, nullptr);
            expect_place(made, rank.rank - (5 - left), left - 1);
            end(comm);
            comm = made;
        }
        EXPECT_EQ(sum(comm, 7), 7);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
    expect_ends(exits, 0x7);
}

/* A rank dies inside shrink itself: before the others come it is left out, whoever was host. */
TEST(Shrink, ADeathDuringShrinkLeavesOneCommunicator)
{
    const auto exits = world::run(4, [](const world::Rank &rank) {
        twill_config config = TWILL_CONFIG_INIT;
        config.blocking = 0;
        twill_comm_t comm = rank.init(), made = nullptr;
        ASSERT_NE(comm, nullptr);
        EXPECT_EQ(sum(comm, 1), 4);
        rank.meet(0);
        if (rank.rank == 3)
            kill(getpid(), SIGKILL);
        if (rank.rank == 0) { /* alone, so it is the host */
            ASSERT_EQ(twill_comm_shrink(comm, &made, &config), TWILL_INPROGRESS);
            world::set(&world::shared()->words[0], (int)getpid());
            world::await(&world::shared()->words[1], 1);
            kill(getpid(), SIGKILL);
        }
        const int *host = &world::shared()->words[0];
        while (!world::get(host))
            sched_yield();
        if (rank.rank == 1) {
            ASSERT_EQ(twill_comm_shrink(comm, &made, &config), TWILL_INPROGRESS);
            world::set(&world::shared()->words[1], 1);
        } else { /* so nothing is decided before the host is gone */
            while (kill(world::get(host), 0) == 0)
                sched_yield();
            ASSERT_OK(twill_comm_shrink(comm, &made, nullptr), comm);
        }
        ASSERT_EQ(world::settle(made), TWILL_OK) << twill_last_error(made);
        int size = 0;
        EXPECT_OK(twill_comm_size(made, &size), made);
        EXPECT_EQ(size, 2);
        EXPECT_EQ(sum(made, rank.rank), 3);
        end(comm);
        EXPECT_OK(twill_comm_destroy(made), nullptr);
    });
    expect_ends(exits, 1u << 0 | 1u << 3);
}

TEST(Shrink, AHealthyOneIsCopied)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        twill_comm_t made = shrunk(comm, true);
        ASSERT_NE(made, nullptr);
        expect_place(made, rank.rank, 3);
        EXPECT_EQ(sum(comm, 1), 3);
        EXPECT_EQ(sum(made, 1), 3);
        EXPECT_OK(twill_comm_destroy(made), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

void one_thread(bool waits)
{
    twill_config config = TWILL_CONFIG_INIT;
    config.blocking = waits;
    world::run_alone([&] {
        twill_comm_t comms[3], made[3] = {};
        ASSERT_OK(twill_comm_init_all(comms, 3, nullptr, nullptr), nullptr);
        EXPECT_OK(twill_comm_abort(comms[1]), nullptr);
        ASSERT_OK(twill_group_start(), nullptr);
        for (int r = 0; r < 3; r++)
            EXPECT_OK(twill_comm_shrink(comms[r], &made[r], &config), comms[r]);
        EXPECT_EQ(twill_group_end(), waits ? TWILL_OK : TWILL_INPROGRESS);
        for (twill_comm_t comm : made) {
            ASSERT_NE(comm, nullptr);
            ASSERT_EQ(world::settle(comm), TWILL_OK) << twill_last_error(comm);
        }
        int x[3] = {1, 2, 4};
        ASSERT_OK(twill_group_start(), nullptr);
        for (int r = 0; r < 3; r++)
            EXPECT_OK(twill_all_reduce(&x[r], &x[r], 1, TWILL_INT32, TWILL_SUM, made[r], nullptr),
                      made[r]);
        ASSERT_OK(twill_group_end(), nullptr);
        for (int r = 0; r < 3; r++) {
            EXPECT_EQ(x[r], 7);
            expect_place(made[r], r, 3);
        }
        for (int r = 0; r < 3; r++) {
            EXPECT_OK(twill_comm_destroy(comms[r]), nullptr);
            EXPECT_OK(twill_comm_destroy(made[r]), nullptr);
        }
    });
}

TEST(Shrink, OfOneThreadInAGroup)
{
    for (const bool waits : {true, false})
        one_thread(waits);
}

TEST(Shrink, AgainstAnotherCallIsNamed)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init(), made = nullptr;
        ASSERT_NE(comm, nullptr);
        int x = 1;
        if (rank.rank == 0) {
            EXPECT_EQ(twill_comm_shrink(comm, &made, nullptr), TWILL_ERR_MISMATCH);
        } else {
            EXPECT_EQ(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
                      TWILL_ERR_MISMATCH);
        }
        EXPECT_NE(world::text(comm).find("rank 0 is in comm_shrink, rank 1 called all_reduce #1"),
                  std::string::npos)
            << world::text(comm);
        EXPECT_EQ(made, nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Shrink, WhoDoesNotComeIsNamed)
{
    const world::Env env = {{"TWILL_INIT_TIMEOUT", "0.3s"}};
    world::run_all(
        3,
        [](const world::Rank &rank) {
            twill_comm_t comm = rank.init(), made = nullptr;
            ASSERT_NE(comm, nullptr);
            EXPECT_EQ(sum(comm, 1), 3);
            if (rank.rank == 0) {
                EXPECT_OK(twill_comm_abort(comm), comm);
            }
            if (rank.rank != 1) {
                EXPECT_EQ(twill_comm_shrink(comm, &made, nullptr), TWILL_ERR_TIMEOUT);
                EXPECT_NE(world::text(comm).find("missing: 1"), std::string::npos)
                    << world::text(comm);
                EXPECT_EQ(made, nullptr);
            }
            rank.meet(0);
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
        },
        env);
}

TEST(Shrink, BadArguments)
{
    world::run_alone([] {
        twill_comm_t comm = nullptr, made = nullptr;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
        twill_config config = TWILL_CONFIG_INIT;
        config.blocking = 5;
        EXPECT_EQ(twill_comm_shrink(nullptr, &made, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_shrink(comm, nullptr, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_shrink(comm, &made, &config), TWILL_ERR_INVALID);
        EXPECT_OK(twill_comm_finalize(comm), comm);
        EXPECT_EQ(twill_comm_shrink(comm, &made, nullptr), TWILL_ERR_USAGE);
        EXPECT_EQ(made, nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* ---- ranks that live are left out -------------------------------------------------------------
 */

TEST(ShrinkWithout, TheOthersGoOnAndTheParentStays)
{
    for (const bool waits : {true, false}) {
        world::run_all(4, [waits](const world::Rank &r) {
            twill_comm_t comm = r.init(), made = nullptr;
            const int out[] = {2, 0, 2}; /* in any order, one twice */
            twill_config config = TWILL_CONFIG_INIT;
            config.blocking = waits;
            if (r.rank % 2 == 1) {
                EXPECT_EQ(twill_comm_shrink_without(comm, out, 3, &made, &config),
                          waits ? TWILL_OK : TWILL_INPROGRESS)
                    << world::text(comm);
                EXPECT_EQ(world::settle(made), TWILL_OK) << world::text(made);
                expect_place(made, r.rank / 2, 2);
                EXPECT_EQ(sum(made, r.rank), 4);
                EXPECT_OK(twill_comm_destroy(made), nullptr);
            }
            EXPECT_EQ(sum(comm, 1), 4) << "the parent is as it was";
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
        });
    }
}

TEST(ShrinkWithout, TwoHalvesAtOnce)
{
    world::run_all(4, [](const world::Rank &r) {
        twill_comm_t comm = r.init(), made = nullptr;
        const int low[] = {0, 1}, high[] = {2, 3};
        EXPECT_OK(twill_comm_shrink_without(comm, r.rank < 2 ? high : low, 2, &made, nullptr),
                  comm);
        expect_place(made, r.rank % 2, 2);
        EXPECT_EQ(sum(made, r.rank), r.rank < 2 ? 1 : 5);
        EXPECT_OK(twill_comm_destroy(made), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(ShrinkWithout, AloneAfterAnAbort)
{
    world::run_all(2, [](const world::Rank &r) {
        twill_comm_t comm = r.init(), made = nullptr;
        const int other = 1 - r.rank;
        r.meet(0); /* an abort before all are ready would be their init's end */
        EXPECT_OK(twill_comm_abort(comm), comm);
        EXPECT_OK(twill_comm_shrink_without(comm, &other, 1, &made, nullptr), comm);
        expect_place(made, 0, 1);
        EXPECT_EQ(sum(made, 7), 7);
        EXPECT_OK(twill_comm_destroy(made), nullptr);
        end(comm);
    });
}

TEST(ShrinkWithout, BadListsAreRefused)
{
    world::run_all(2, [](const world::Rank &r) {
        twill_comm_t comm = r.init(), made = nullptr;
        for (const int bad : {-1, 2, r.rank}) {
            EXPECT_EQ(twill_comm_shrink_without(comm, &bad, 1, &made, nullptr), TWILL_ERR_INVALID);
            EXPECT_EQ(made, nullptr);
        }
        EXPECT_EQ(twill_comm_shrink_without(comm, nullptr, 1, &made, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_shrink_without(comm, nullptr, -1, &made, nullptr), TWILL_ERR_INVALID);
        const int other = 1 - r.rank;
        EXPECT_EQ(twill_comm_shrink_without(comm, &other, 1, nullptr, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(sum(comm, 1), 2) << "it is healthy";
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

} // namespace
