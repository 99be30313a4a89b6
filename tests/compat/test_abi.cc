/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: values, sizes and offsets that programs which were built for NCCL have compiled in, as its
 * documentation and its binary interface say. Never knows: what they mean. */
#include <cstddef>

#include <gtest/gtest.h>
#include <nccl.h>

static_assert(NCCL_VERSION(2, 8, 4) == 2804 && NCCL_VERSION(2, 9, 6) == 20906, "two codings");
static_assert(NCCL_VERSION_CODE == NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), "one version");
static_assert(NCCL_VERSION_CODE / 100 == 227, "older than the interface for kernels");
static_assert(sizeof(ncclUniqueId) == 128 && alignof(ncclUniqueId) == 1, "id");
static_assert(sizeof(ncclResult_t) == 4 && sizeof(ncclDataType_t) == 4 && sizeof(ncclRedOp_t) == 4,
              "enums");
static_assert(sizeof(cudaStream_t) == sizeof(void *) && sizeof(ncclComm_t) == sizeof(void *),
              "handles");
static_assert(ncclMaxRedOp == 0x7fffffff, "handles of operations are any number");

TEST(NcclAbi, Values)
{
    const int results[] = {ncclSuccess,       ncclUnhandledCudaError, ncclSystemError,
                           ncclInternalError, ncclInvalidArgument,    ncclInvalidUsage,
                           ncclRemoteError,   ncclInProgress};
    for (int i = 0; i < 8; i++)
        EXPECT_EQ(results[i], i);
    const int types[] = {ncclInt8,    ncclUint8,    ncclInt32,      ncclUint32,
                         ncclInt64,   ncclUint64,   ncclFloat16,    ncclFloat32,
                         ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
    for (int i = 0; i < 12; i++)
        EXPECT_EQ(types[i], i);
    EXPECT_EQ(ncclNumTypes, 12);
    EXPECT_EQ((int)ncclChar, ncclInt8);
    EXPECT_EQ((int)ncclInt, ncclInt32);
    EXPECT_EQ((int)ncclHalf, ncclFloat16);
    EXPECT_EQ((int)ncclFloat, ncclFloat32);
    EXPECT_EQ((int)ncclDouble, ncclFloat64);
    const int ops[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(ops[i], i);
    EXPECT_EQ(ncclScalarDevice, 0);
    EXPECT_EQ(ncclScalarHostImmediate, 1);
    EXPECT_EQ(NCCL_SPLIT_NOCOLOR, -1);
    EXPECT_EQ(NCCL_SHRINK_ABORT, 1);
    EXPECT_EQ(NCCL_WIN_COLL_SYMMETRIC, 1);
}

TEST(NcclAbi, Config)
{
    const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    EXPECT_EQ(config.size, 72u);
    EXPECT_EQ(config.magic, 0xcafebeefu);
    EXPECT_EQ(config.version, (unsigned)NCCL_VERSION_CODE);
    EXPECT_EQ(config.nvlsCTAs, NCCL_CONFIG_UNDEF_INT);
    EXPECT_EQ(config.commName, nullptr);
    const size_t offsets[] = {
        offsetof(ncclConfig_t, size),           offsetof(ncclConfig_t, magic),
        offsetof(ncclConfig_t, version),        offsetof(ncclConfig_t, blocking),
        offsetof(ncclConfig_t, cgaClusterSize), offsetof(ncclConfig_t, minCTAs),
        offsetof(ncclConfig_t, maxCTAs),        offsetof(ncclConfig_t, netName),
        offsetof(ncclConfig_t, splitShare),     offsetof(ncclConfig_t, trafficClass),
        offsetof(ncclConfig_t, commName),       offsetof(ncclConfig_t, collnetEnable),
        offsetof(ncclConfig_t, CTAPolicy),      offsetof(ncclConfig_t, shrinkShare),
        offsetof(ncclConfig_t, nvlsCTAs)};
    const size_t wanted[] = {0, 8, 12, 16, 20, 24, 28, 32, 40, 44, 48, 56, 60, 64, 68};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        EXPECT_EQ(offsets[i], wanted[i]) << i;
}

TEST(NcclAbi, Simulation)
{
    const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    EXPECT_EQ(info.size, 24u);
    EXPECT_EQ(info.magic, 0x74685283u);
    EXPECT_EQ(offsetof(ncclSimInfo_t, estimatedTime), 16u);
    EXPECT_EQ(info.estimatedTime, -1.0f);
}
