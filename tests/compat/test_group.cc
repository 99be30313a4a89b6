/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what groups promise: fusing, errors at their end, handles filled there.
 * Never knows: how calls run together. */
#include "ranks.h"

using ranks::Rank;

TEST(NcclGroup, NestsAndRunsAtTheOutermostEnd)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        int a = r.rank, b = 10 * r.rank;
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_NCCL(ncclAllReduce(&a, &a, 1, ncclInt, ncclSum, comm, nullptr));
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_NCCL(ncclAllReduce(&b, &b, 1, ncclInt, ncclSum, comm, nullptr));
        EXPECT_NCCL(ncclGroupEnd());
        EXPECT_EQ(a, r.rank) << "nothing has run";
        EXPECT_NCCL(ncclGroupEnd());
        EXPECT_EQ(a, 1);
        EXPECT_EQ(b, 10);
        EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "none is open";
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

TEST(NcclGroup, AnInvalidArgumentIsReturnedAtOnceAndTheGroupGoesOn)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        int a = r.rank + 1, b = 0;
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_EQ(ncclAllReduce(&a, &b, 1, (ncclDataType_t)99, ncclSum, comm, nullptr),
                  ncclInvalidArgument);
        EXPECT_EQ(ncclSend(&a, 1, ncclInt, 2, comm, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclReduce(&a, &b, 1, ncclInt, ncclSum, -1, comm, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclAllReduce(nullptr, &b, 1, ncclInt, ncclSum, comm, nullptr),
                  ncclInvalidArgument);
        EXPECT_NCCL(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, comm, nullptr));
        EXPECT_NCCL(ncclGroupEnd());
        EXPECT_EQ(b, 3);
        ncclResult_t state = ncclInProgress;
        EXPECT_NCCL(ncclCommGetAsyncError(comm, &state));
        EXPECT_EQ(state, ncclSuccess);
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

/* Any other error is the group's: nothing of it runs, and its end says it again. */
TEST(NcclGroup, AnErrorSpoilsTheGroup)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init(), child = nullptr, done = nullptr;
        int a = r.rank + 1;
        EXPECT_NCCL(ncclCommSplit(comm, 0, r.rank, &done, nullptr));
        EXPECT_NCCL(ncclCommFinalize(done));
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_NCCL(ncclAllReduce(&a, &a, 1, ncclInt, ncclSum, comm, nullptr));
        EXPECT_NCCL(ncclCommSplit(comm, 0, r.rank, &child, nullptr));
        EXPECT_EQ(ncclAllReduce(&a, &a, 1, ncclInt, ncclSum, done, nullptr), ncclInvalidUsage);
        const std::string text = ranks::text();
        EXPECT_NE(text.find("finalized"), std::string::npos) << text;
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_NCCL(ncclGroupEnd()); /* an inner one */
        EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
        EXPECT_EQ(ranks::text(), text);
        EXPECT_EQ(a, r.rank + 1);
        EXPECT_EQ(child, nullptr);
        EXPECT_NCCL(ncclAllReduce(&a, &a, 1, ncclInt, ncclSum, comm, nullptr));
        EXPECT_EQ(a, 3) << "the communicator is healthy";
        EXPECT_NCCL(ncclCommDestroy(done));
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

TEST(NcclGroup, OneThreadMakesUsesSplitsAndEndsManyRanks)
{
    ranks::alone([] {
        const int size = 4;
        ncclComm_t comms[size] = {}, halves[size] = {};
        ncclUniqueId id;
        int values[size];
        EXPECT_NCCL(ncclGetUniqueId(&id));
        EXPECT_NCCL(ncclGroupStart());
        for (int i = 0; i < size; i++)
            EXPECT_NCCL(ncclCommInitRank(&comms[i], size, id, i));
        EXPECT_EQ(comms[0], nullptr) << "filled at the end";
        EXPECT_NCCL(ncclGroupEnd());
        EXPECT_NCCL(ncclGroupStart());
        for (int i = 0; i < size; i++)
            EXPECT_NCCL(ncclCommSplit(comms[i], i % 2, -i, &halves[i], nullptr));
        EXPECT_NCCL(ncclGroupEnd());
        EXPECT_NCCL(ncclGroupStart());
        for (int i = 0; i < size; i++) {
            values[i] = i;
            EXPECT_NCCL(
                ncclAllReduce(&values[i], &values[i], 1, ncclInt, ncclSum, halves[i], nullptr));
        }
        EXPECT_NCCL(ncclGroupEnd());
        for (int i = 0; i < size; i++) {
            int rank = -1;
            EXPECT_EQ(values[i], i % 2 ? 4 : 2);
            EXPECT_NCCL(ncclCommUserRank(halves[i], &rank));
            EXPECT_EQ(rank, i < 2 ? 1 : 0) << "by key";
        }
        EXPECT_NCCL(ncclGroupStart());
        for (int i = 0; i < size; i++)
            EXPECT_NCCL(ncclCommFinalize(halves[i]));
        EXPECT_NCCL(ncclGroupEnd());
        EXPECT_NCCL(ncclGroupStart()); /* ended in a group, and one after another */
        for (int i = 0; i < size; i++)
            EXPECT_NCCL(ncclCommDestroy(halves[i]));
        EXPECT_NCCL(ncclGroupEnd());
        for (ncclComm_t comm : comms)
            EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

/* Uneven gathers, as frameworks make them: one broadcast for each rank. */
TEST(NcclGroup, BroadcastsOfAllRoots)
{
    ranks::processes(3, [](const Rank &r) {
        ncclComm_t comm = r.init();
        int blocks[6] = {-1, -1, -1, -1, -1, -1};
        const int begin[] = {0, 1, 3};
        for (int i = 0; i <= r.rank; i++)
            blocks[begin[r.rank] + i] = 10 * r.rank + i;
        EXPECT_NCCL(ncclGroupStart());
        for (int root = 0; root < 3; root++)
            EXPECT_NCCL(ncclBroadcast(&blocks[begin[root]], &blocks[begin[root]], (size_t)root + 1,
                                      ncclInt, root, comm, nullptr));
        EXPECT_NCCL(ncclGroupEnd());
        const int wanted[6] = {0, 10, 11, 20, 21, 22};
        for (int i = 0; i < 6; i++)
            EXPECT_EQ(blocks[i], wanted[i]) << i;
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

TEST(NcclGroup, Simulates)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        std::vector<float> a((size_t)1 << 20, 1);
        ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER, bad = NCCL_SIM_INFO_INITIALIZER;
        bad.magic = 7;
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_NCCL(ncclAllReduce(a.data(), a.data(), a.size(), ncclFloat, ncclSum, comm, nullptr));
        EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclGroupSimulateEnd(&bad), ncclInvalidArgument);
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_NCCL(ncclGroupSimulateEnd(&info)); /* of an inner group: nothing */
        EXPECT_EQ(info.estimatedTime, NCCL_UNDEF_FLOAT);
        EXPECT_NCCL(ncclGroupSimulateEnd(&info));
        EXPECT_GT(info.estimatedTime, 1);
        EXPECT_EQ(a[0], 1) << "nothing has run";
        EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidUsage) << "none is open";
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

TEST(NcclGroup, InitAllInAGroup)
{
    ranks::alone([] {
        ncclComm_t a[2] = {}, b[2] = {};
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_NCCL(ncclCommInitAll(a, 2, nullptr));
        EXPECT_NCCL(ncclCommInitAll(b, 2, nullptr));
        EXPECT_NCCL(ncclGroupEnd());
        for (ncclComm_t comm : {a[0], a[1], b[0], b[1]})
            EXPECT_NCCL(ncclCommDestroy(comm));
    });
}
