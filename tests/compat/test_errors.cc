/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what is refused, by which result, and what the sentence says.
 * Never knows: calls that go well. */
#include <cstring>
#include <thread>

#include <dlfcn.h>

#include "ranks.h"

using ranks::Rank;

TEST(NcclErrors, EveryResultHasAString)
{
    for (int i = -1; i <= 9; i++) {
        ASSERT_NE(ncclGetErrorString((ncclResult_t)i), nullptr);
        EXPECT_GT(strlen(ncclGetErrorString((ncclResult_t)i)), 5u) << i;
    }
    EXPECT_STREQ(ncclGetErrorString(ncclSuccess), pncclGetErrorString(ncclSuccess));
}

TEST(NcclErrors, Version)
{
    ranks::alone([] {
        int version = 0;
        EXPECT_EQ(ncclGetVersion(nullptr), ncclInvalidArgument);
        EXPECT_NCCL(ncclGetVersion(&version));
        EXPECT_EQ(version / 100, 228) << "of the level of 2.28, in five digits";
    });
    ranks::alone(
        [] {
            int version = 0;
            EXPECT_NCCL(ncclGetVersion(&version));
            EXPECT_EQ(version, 21903);
        },
        {{"TWILL_NCCL_VERSION", "21903"}});
}

TEST(NcclErrors, BadArgumentsOfInits)
{
    ranks::alone([] {
        ncclComm_t comm = (ncclComm_t)1;
        ncclUniqueId id, none;
        memset(&none, 7, sizeof none);
        EXPECT_NCCL(ncclGetUniqueId(&id));
        EXPECT_EQ(ncclGetUniqueId(nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclCommInitRank(nullptr, 2, id, 0), ncclInvalidArgument);
        EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
        EXPECT_EQ(comm, nullptr);
        EXPECT_EQ(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument);
        EXPECT_EQ(ncclCommInitRank(&comm, 2, id, -1), ncclInvalidArgument);
        EXPECT_EQ(ncclCommInitRank(&comm, 1, none, 0), ncclInvalidArgument) << "that is no id";
        EXPECT_EQ(ncclCommInitAll(nullptr, 1, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclCommInitAll(&comm, 0, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclCommInitAll(&comm, -1, nullptr), ncclInvalidArgument);
        const int bad = -1;
        EXPECT_EQ(ncclCommInitAll(&comm, 1, &bad), ncclInvalidArgument);
        EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 0, &id, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 2, &id, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 1, nullptr, nullptr), ncclInvalidArgument);
        EXPECT_NCCL(ncclCommInitRank(&comm, 1, id, 0)) << "the id is still good";
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

/* Each field's values, and what older and newer callers have. */
TEST(NcclErrors, Configs)
{
    ranks::alone([] {
        const auto made = [](ncclConfig_t *config) {
            ncclComm_t comm = nullptr;
            ncclUniqueId id;
            EXPECT_NCCL(ncclGetUniqueId(&id));
            const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, id, 0, config);
            if (result == ncclInProgress) {
                EXPECT_EQ(ranks::settle(comm), ncclSuccess);
            }
            EXPECT_NCCL(ncclCommAbort(comm));
            return result;
        };
        const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
        ncclConfig_t config = fresh;
        EXPECT_NCCL(made(&config));
        config.magic++;
        EXPECT_EQ(made(&config), ncclInvalidArgument);
        const struct {
            int ncclConfig_t::*field;
            int bad;
        } cases[] = {{&ncclConfig_t::blocking, 2},       {&ncclConfig_t::blocking, -1},
                     {&ncclConfig_t::cgaClusterSize, 9}, {&ncclConfig_t::minCTAs, 0},
                     {&ncclConfig_t::maxCTAs, -3},       {&ncclConfig_t::splitShare, 2},
                     {&ncclConfig_t::trafficClass, -1},  {&ncclConfig_t::collnetEnable, 2},
                     {&ncclConfig_t::CTAPolicy, -1},     {&ncclConfig_t::shrinkShare, 3},
                     {&ncclConfig_t::nvlsCTAs, 0}};
        for (const auto &one : cases) {
            config = fresh;
            config.*one.field = one.bad;
            EXPECT_EQ(made(&config), ncclInvalidArgument) << one.bad;
        }
        config = fresh;
        config.minCTAs = 5;
        config.maxCTAs = 4;
        EXPECT_EQ(made(&config), ncclInvalidArgument);
        config = fresh;
        config.blocking = 0;
        EXPECT_EQ(made(&config), ncclInProgress);
        /* a caller of 2.14 had blocking alone; what lies behind it is not the config's */
        config.size = offsetof(ncclConfig_t, blocking) + 2 * sizeof(int);
        config.version = 21400;
        config.cgaClusterSize = 77;
        config.maxCTAs = -5;
        EXPECT_EQ(made(&config), ncclInProgress);
        config.size = sizeof config; /* by its size it has them, by its version it does not */
        EXPECT_EQ(made(&config), ncclInProgress);
        config.version = 21700;
        EXPECT_EQ(made(&config), ncclInvalidArgument);
        /* a caller of the future has more behind */
        struct {
            ncclConfig_t known;
            int more[8];
        } newer = {fresh, {9, 9, 9, 9, 9, 9, 9, 9}};
        newer.known.size = sizeof newer;
        newer.known.version = 23100;
        EXPECT_NCCL(made(&newer.known));
        newer.known.size = 15;
        EXPECT_EQ(made(&newer.known), ncclInvalidArgument) << "less than its head";
    });
}

TEST(NcclErrors, BadArgumentsOfCalls)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init(), child = nullptr;
        float one = 1, two = 2;
        const cudaStream_t stream = (cudaStream_t)0x2;
        int device = 0;
        EXPECT_NCCL(ncclCommCuDevice(comm, &device));
        EXPECT_EQ(ncclAllReduce(&one, &two, 1, ncclFloat, ncclSum, nullptr, nullptr),
                  ncclInvalidArgument);
        for (const int op : {-1, 5, 6, 7, 1000, (1 << 16) + 3}) {
            EXPECT_EQ(ncclAllReduce(&one, &two, 1, ncclFloat, (ncclRedOp_t)op, comm, nullptr),
                      ncclInvalidArgument)
                << op;
        }
        EXPECT_EQ(ncclBroadcast(&one, &two, 1, (ncclDataType_t)-1, 0, comm, nullptr),
                  ncclInvalidArgument);
        EXPECT_EQ(ncclBcast(&one, 1, ncclFloat, 2, comm, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclAllGather(&one, nullptr, 1, ncclFloat, comm, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclAllReduce(&one, &two, SIZE_MAX, ncclFloat, ncclSum, comm, nullptr),
                  ncclInvalidArgument);
        EXPECT_EQ(ncclRecv(&one, 1, ncclFloat, -1, comm, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclSend(&one, 1, ncclFloat, r.rank, comm, nullptr), ncclInvalidUsage)
            << "to itself, outside of a group";
        if (device < 0) {
            EXPECT_EQ(ncclAllReduce(&one, &two, 1, ncclFloat, ncclSum, comm, stream),
                      ncclInvalidArgument)
                << "there are no streams here";
        }
        EXPECT_EQ(ncclCommSplit(comm, -2, 0, &child, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclCommSplit(comm, 0, 0, nullptr, nullptr), ncclInvalidArgument);
        int self = r.rank, none = 5;
        EXPECT_EQ(ncclCommShrink(comm, &self, 1, &child, nullptr, 0), ncclInvalidArgument);
        EXPECT_EQ(ncclCommShrink(comm, &none, 1, &child, nullptr, 0), ncclInvalidArgument);
        EXPECT_EQ(ncclCommShrink(comm, nullptr, 0, &child, nullptr, 0), ncclInvalidArgument);
        EXPECT_EQ(ncclCommShrink(comm, &none, 1, &child, nullptr, 8), ncclInvalidArgument);
        EXPECT_EQ(ncclCommGetAsyncError(comm, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclCommCount(comm, nullptr), ncclInvalidArgument);
        EXPECT_EQ(ncclCommFinalize(nullptr), ncclInvalidArgument);
        ncclRedOp_t op = ncclSum;
        EXPECT_EQ(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument);
        EXPECT_EQ(ncclRedOpCreatePreMulSum(nullptr, &one, ncclFloat, ncclScalarHostImmediate, comm),
                  ncclInvalidArgument);
        EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, &one, ncclFloat, (ncclScalarResidence_t)5, comm),
                  ncclInvalidArgument);
        EXPECT_NCCL(ncclAllReduce(&one, &two, 1, ncclFloat, ncclSum, comm, nullptr))
            << "it is healthy";
        EXPECT_EQ(two, 2);
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

TEST(NcclErrors, AMismatchIsNamedOnBothRanks)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        std::vector<float> in(64, 1), out(128);
        const ncclResult_t result =
            r.rank == 0
                ? ncclAllReduce(in.data(), out.data(), 64, ncclFloat, ncclSum, comm, nullptr)
                : ncclAllGather(in.data(), out.data(), 64, ncclFloat, comm, nullptr);
        EXPECT_EQ(result, ncclInvalidUsage);
        EXPECT_NE(ranks::text().find("all_reduce"), std::string::npos) << ranks::text();
        EXPECT_NE(ranks::text().find("all_gather"), std::string::npos) << ranks::text();
        /* a thread that has no sentence of its own reads the process's newest */
        std::string other;
        std::thread([&other] { other = ranks::text(); }).join();
        EXPECT_EQ(other, ranks::text());
        EXPECT_EQ(ncclAllReduce(in.data(), out.data(), 64, ncclFloat, ncclSum, comm, nullptr),
                  ncclInvalidUsage)
            << "it has failed";
        r.meet(0);
        EXPECT_NCCL(ncclCommAbort(comm));
    });
}

/* There is no time limit, unless one is set. */
TEST(NcclErrors, ATimeLimitThatIsSetCounts)
{
    ranks::processes(
        2,
        [](const Rank &r) {
            ncclComm_t comm = r.init();
            float one = 1;
            if (r.rank == 0) {
                EXPECT_EQ(ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, comm, nullptr),
                          ncclRemoteError);
                EXPECT_NE(ranks::text().find("rank 1"), std::string::npos) << ranks::text();
            }
            r.meet(0);
            EXPECT_NCCL(ncclCommAbort(comm));
        },
        {{"TWILL_TIMEOUT", "0.3s"}});
}

/* Names that are there so that programs load. */
TEST(NcclErrors, WhatIsNotServedSaysWhatIs)
{
    ranks::alone([] {
        for (const char *name : {"ncclCommGrow", "ncclPutSignal", "ncclDevCommCreate",
                                 "pncclParamGetStr", "ncclCommQueryProperties"}) {
            using Call = ncclResult_t (*)(void *, void *, void *);
            const Call call = reinterpret_cast<Call>(dlsym(RTLD_DEFAULT, name));
            ASSERT_NE(call, nullptr) << name;
            EXPECT_EQ(call(nullptr, nullptr, nullptr), ncclInvalidUsage) << name;
            const char *plain = name[0] == 'p' ? name + 1 : name;
            EXPECT_EQ(ranks::text().find(plain), 0u) << ranks::text();
            EXPECT_NE(ranks::text().find(": "), std::string::npos) << ranks::text();
        }
    });
}

TEST(NcclErrors, ARevokedCommunicatorIsOfNoUseButToShrink)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        using Revoke = ncclResult_t (*)(ncclComm_t, int);
        const Revoke revoke = reinterpret_cast<Revoke>(dlsym(RTLD_DEFAULT, "ncclCommRevoke"));
        ASSERT_NE(revoke, nullptr);
        r.meet(0);
        float one = 1;
        EXPECT_EQ(revoke(comm, 1), ncclInvalidArgument);
        EXPECT_NCCL(revoke(comm, 0));
        EXPECT_EQ(ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, comm, nullptr),
                  ncclInvalidUsage);
        EXPECT_NE(ranks::text().find("revoked"), std::string::npos) << ranks::text();
        EXPECT_NCCL(ncclCommAbort(comm));
    });
}
