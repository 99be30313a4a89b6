/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how communicators are made, asked and ended. Never knows: what calls compute. */
#include <csignal>
#include <cstring>
#include <thread>

#include <sched.h>
#include <unistd.h>

#include "ranks.h"

using ranks::Rank;

static int sum(ncclComm_t comm, int mine)
{
    EXPECT_NCCL(ncclAllReduce(&mine, &mine, 1, ncclInt, ncclSum, comm, nullptr));
    return mine;
}

static void expect_place(ncclComm_t comm, int rank, int size)
{
    int value = -9;
    EXPECT_NCCL(ncclCommUserRank(comm, &value));
    EXPECT_EQ(value, rank);
    EXPECT_NCCL(ncclCommCount(comm, &value));
    EXPECT_EQ(value, size);
}

static ncclConfig_t waiting(int blocking)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    return config;
}

TEST(NcclLife, EveryWayToMakeOne)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = nullptr;
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.commName = "tests";
        config.minCTAs = 1;
        config.maxCTAs = 4;
        config.splitShare = 1;
        EXPECT_NCCL(ncclCommInitRank(&comm, r.size, r.id(0), r.rank));
        expect_place(comm, r.rank, 2);
        EXPECT_NCCL(ncclCommDestroy(comm));
        EXPECT_NCCL(ncclCommInitRankConfig(&comm, r.size, r.id(1), r.rank, &config));
        EXPECT_EQ(sum(comm, 1), 2);
        EXPECT_NCCL(ncclCommDestroy(comm));
        ncclUniqueId ids[2] = {r.id(2), r.id(3)};
        EXPECT_NCCL(ncclCommInitRankScalable(&comm, r.size, r.rank, 2, ids, nullptr));
        EXPECT_EQ(sum(comm, 1), 2);
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

TEST(NcclLife, AskedAnyTime)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        int device = 7;
        EXPECT_NCCL(ncclCommCuDevice(comm, &device));
        EXPECT_GE(device, -1);
        r.meet(0);
        EXPECT_NCCL(ncclCommFinalize(comm));
        expect_place(comm, r.rank, 2);
        EXPECT_EQ(ranks::settle(comm), ncclSuccess);
        EXPECT_NCCL(ncclCommDestroy(comm));
        EXPECT_EQ(ncclCommCount(comm, &device), ncclInvalidArgument) << "it is destroyed";
        EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
        EXPECT_EQ(ncclCommAbort(comm), ncclInvalidArgument);
        EXPECT_NCCL(ncclCommDestroy(nullptr));
        EXPECT_NCCL(ncclCommAbort(nullptr));
    });
}

TEST(NcclLife, SplitAndNoColor)
{
    ranks::processes(4, [](const Rank &r) {
        ncclComm_t comm = r.init(), child = (ncclComm_t)&comm;
        EXPECT_NCCL(ncclCommSplit(comm, r.rank == 3 ? NCCL_SPLIT_NOCOLOR : 0, 10 - r.rank, &child,
                                  nullptr));
        if (r.rank == 3) {
            EXPECT_EQ(child, nullptr);
        } else {
            expect_place(child, 2 - r.rank, 3);
            EXPECT_EQ(sum(child, r.rank), 3);
            EXPECT_NCCL(ncclCommDestroy(child));
        }
        EXPECT_EQ(sum(comm, 1), 4);
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

/* What a client of PyTorch's kind does: it polls the parent, and then takes the child for ready. */
TEST(NcclLife, WithoutWaiting)
{
    ranks::processes(2, [](const Rank &r) {
        ncclConfig_t config = waiting(0);
        ncclComm_t comm = nullptr, child = nullptr, other = nullptr;
        EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, r.id(), r.rank, &config), ncclInProgress);
        ASSERT_NE(comm, nullptr);
        EXPECT_EQ(ranks::settle(comm), ncclSuccess);
        EXPECT_EQ(sum(comm, 1), 2);
        EXPECT_EQ(ncclCommSplit(comm, 0, r.rank, &child, &config), ncclInProgress);
        EXPECT_EQ(ranks::settle(comm), ncclSuccess);
        ASSERT_NE(child, nullptr);
        ncclResult_t state = ncclInProgress;
        EXPECT_NCCL(ncclCommGetAsyncError(child, &state));
        EXPECT_EQ(state, ncclSuccess) << "ready once the parent is";
        EXPECT_EQ(sum(child, 1), 2);
        EXPECT_EQ(ncclCommSplit(comm, 0, 0, &other, nullptr), ncclInProgress) << "as the parent";
        EXPECT_NCCL(ncclCommAbort(other)); /* while it connects, or not any more */
        const ncclResult_t end = ncclCommFinalize(child);
        EXPECT_TRUE(end == ncclInProgress || end == ncclSuccess) << end;
        EXPECT_EQ(ranks::settle(child), ncclSuccess);
        EXPECT_NCCL(ncclCommDestroy(child));
        r.meet(0);
        EXPECT_NCCL(ncclCommAbort(comm));
    });
}

TEST(NcclLife, ManyRanksWithoutWaiting)
{
    ranks::alone([] {
        ncclConfig_t config = waiting(0);
        ncclComm_t comms[3] = {};
        ncclUniqueId id;
        EXPECT_NCCL(ncclGetUniqueId(&id));
        EXPECT_NCCL(ncclGroupStart());
        for (int i = 0; i < 3; i++)
            EXPECT_NCCL(ncclCommInitRankConfig(&comms[i], 3, id, i, &config));
        EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
        for (ncclComm_t comm : comms)
            EXPECT_EQ(ranks::settle(comm), ncclSuccess);
        for (ncclComm_t comm : comms)
            EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

TEST(NcclLife, ShrinkLeavesOutLivingRanks)
{
    for (const int flags : {NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT}) {
        ranks::processes(3, [flags](const Rank &r) {
            ncclComm_t comm = r.init(), made = nullptr;
            int excluded[] = {1};
            r.meet(0);
            if (r.rank != 1) {
                EXPECT_NCCL(ncclCommShrink(comm, excluded, 1, &made, nullptr, flags));
                expect_place(made, r.rank / 2, 2);
                EXPECT_EQ(sum(made, r.rank), 2);
                EXPECT_NCCL(ncclCommDestroy(made));
            }
            r.meet(1);
            EXPECT_NCCL(ncclCommAbort(comm));
        });
    }
}

TEST(NcclLife, ShrinkAfterADeath)
{
    ranks::processes(
        3,
        [](const Rank &r) {
            ncclComm_t comm = r.init(), made = nullptr;
            int dead[] = {0}, value = 1;
            r.meet(0);
            if (r.rank == 0)
                raise(SIGKILL);
            EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, nullptr),
                      ncclRemoteError);
            ncclResult_t state = ncclSuccess;
            EXPECT_NCCL(ncclCommGetAsyncError(comm, &state));
            EXPECT_EQ(state, ncclRemoteError);
            EXPECT_NE(std::string(ncclGetLastError(comm)).find("rank 0"), std::string::npos)
                << ncclGetLastError(comm);
            EXPECT_NCCL(ncclCommShrink(comm, dead, 1, &made, nullptr, NCCL_SHRINK_ABORT));
            EXPECT_EQ(sum(made, 1), 2);
            EXPECT_NCCL(ncclCommDestroy(made));
            EXPECT_NCCL(ncclCommAbort(comm));
        },
        {}, 0);
}

/* A watcher aborts while the other thread is inside a call, whose peer does not come. */
TEST(NcclLife, AbortFromAnotherThread)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        if (r.rank == 0) {
            int inside = 0;
            std::thread watcher([comm, &inside] {
                ncclResult_t state = ncclInProgress;
                ranks::await(&inside, 1);
                EXPECT_NCCL(ncclCommGetAsyncError(comm, &state));
                EXPECT_EQ(state, ncclSuccess);
                usleep(20000); /* the call is likely to wait by now; it need not */
                EXPECT_NCCL(ncclCommAbort(comm));
            });
            int value = 1;
            ranks::set(&inside, 1);
            const ncclResult_t result =
                ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, nullptr);
            EXPECT_TRUE(result == ncclRemoteError || result == ncclInvalidArgument) << result;
            watcher.join();
            EXPECT_EQ(ncclCommCount(comm, &value), ncclInvalidArgument) << "freed by the last";
            ranks::set(&ranks::shared()->words[0], 1);
        } else {
            ranks::await(&ranks::shared()->words[0], 1);
            EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
        }
    });
}

/* As a framework's watchdog does: all of them in one group. */
TEST(NcclLife, AbortInAGroup)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t a = r.init(), b = nullptr;
        EXPECT_NCCL(ncclCommSplit(a, 0, 0, &b, nullptr));
        r.meet(0);
        int value = 1;
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_NCCL(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, a, nullptr));
        r.meet(1);                     /* the other's abort would be this call's end */
        EXPECT_NCCL(ncclCommAbort(a)); /* its call was noted, and ends with it */
        EXPECT_NCCL(ncclCommAbort(b));
        EXPECT_EQ(ncclGroupEnd(), ncclRemoteError);
        EXPECT_EQ(ncclCommCount(a, &value), ncclInvalidArgument);
        EXPECT_EQ(ncclCommCount(b, &value), ncclInvalidArgument);
    });
}

/* Handles are used again only much later, and nothing is kept. */
TEST(NcclLife, MadeAndEndedManyTimes)
{
    ranks::alone([] {
        ncclComm_t first = nullptr;
        for (int i = 0; i < 100; i++) {
            ncclComm_t comm = nullptr;
            int count = 0;
            EXPECT_NCCL(ncclCommInitAll(&comm, 1, nullptr));
            if (!first)
                first = comm;
            else if (i < 60) {
                EXPECT_EQ(ncclCommCount(first, &count), ncclInvalidArgument) << i;
            }
            EXPECT_NCCL(ncclCommDestroy(comm));
        }
    });
}
