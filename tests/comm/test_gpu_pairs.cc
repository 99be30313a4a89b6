/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what kernels are told of calls with a count for each rank, as it is worked out here
 * without a device. Never knows: what kernels do with it. */
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

extern "C" {
#include "comm/gpu.h"
}

namespace
{

const int SIZE = 3;
typedef std::vector<size_t> Sizes;

/* A rank that has what a call's shape needs, and no device. */
struct Rank {
    explicit Rank(int rank) : comm(), gpu()
    {
        comm.rank = rank;
        comm.size = SIZE;
        comm.gpu = &gpu;
        gpu.comm = &comm;
        gpu.all_here = true;
        gpu.most_blocks = 20;
        gpu.base.rank = rank;
        gpu.base.size = SIZE;
        gpu.base.layout.line_each = 1024;
    }
    struct tw_call call(enum tw_coll coll, int root = 0)
    {
        struct tw_call made = {};
        made.comm = &comm;
        made.info.coll = coll;
        made.info.root = root;
        made.info.type = TWILL_INT32;
        made.in = (const void *)0x1000;
        made.out = (void *)0x2000;
        return made;
    }
    struct twill_comm comm;
    struct tw_gpu gpu;
};

struct Told {
    struct tw_gpu_shape shape;
    struct tw_gk_call wire;
    struct tw_gk_pair pairs[SIZE];
};
Told told(const Rank &rank, const struct tw_call &call)
{
    Told out;
    memset(&out, 0xee, sizeof out);
    tw_gpu_shape(&rank.gpu, &call, &out.shape);
    tw_gpu_fill(&rank.gpu, &call, &out.shape, &out.wire);
    tw_gpu_pairs_fill(&call, out.wire.sends, out.wire.takes, out.pairs);
    return out;
}

void expect_pair(const struct tw_gk_pair &pair, uint64_t in_at, uint64_t in_bytes, uint64_t out_at,
                 uint64_t out_bytes)
{
    EXPECT_EQ(pair.in_at, in_at);
    EXPECT_EQ(pair.in_bytes, in_bytes);
    EXPECT_EQ(pair.out_at, out_at);
    EXPECT_EQ(pair.out_bytes, out_bytes);
}

TEST(GpuPairs, AllGatherVGivesTheOwnBlockToAll)
{
    const Sizes counts = {5, 0, 7};
    Rank rank(2);
    struct tw_call call = rank.call(TW_COLL_ALL_GATHER_V);
    call.info.count = 7;
    call.info.counts.out = counts.data();
    const Told to = told(rank, call);

    EXPECT_EQ(to.wire.sends, 7u);
    EXPECT_EQ(to.wire.takes, 7u);
    expect_pair(to.pairs[0], 0, 28, 0, 20);
    expect_pair(to.pairs[1], 0, 28, 0, 0);
    expect_pair(to.pairs[2], 0, 28, 20, 28);
}

TEST(GpuPairs, ReduceScatterVTakesTheOwnBlockOfAll)
{
    const Sizes counts = {5, 2, 7}, displs = {20, 1, 4};
    Rank rank(1);
    struct tw_call call = rank.call(TW_COLL_REDUCE_SCATTER_V);
    call.info.count = 2;
    call.info.counts.in = counts.data();
    call.info.counts.in_displs = displs.data();
    const Told to = told(rank, call);

    EXPECT_EQ(to.shape.kernel, TW_GK_SCATTER_V);
    expect_pair(to.pairs[0], 80, 20, 0, 8);
    expect_pair(to.pairs[1], 4, 8, 0, 8);
    expect_pair(to.pairs[2], 16, 28, 0, 8);
}

TEST(GpuPairs, AllToAllVWhereNothingBeginsMayBeAnything)
{
    const Sizes in = {1, 2, 0}, in_displs = {9, 3, SIZE_MAX}, out = {0, 2, 4};
    Rank rank(1);
    struct tw_call call = rank.call(TW_COLL_ALL_TO_ALL_V);
    call.info.counts = {in.data(), in_displs.data(), out.data(), nullptr};
    const Told to = told(rank, call);

    EXPECT_EQ(to.shape.kernel, TW_GK_MOVE_V);
    expect_pair(to.pairs[0], 36, 4, 0, 0);
    expect_pair(to.pairs[1], 12, 8, 0, 8);
    expect_pair(to.pairs[2], 0, 0, 8, 16);
    EXPECT_TRUE(to.wire.direct);

    call.out = (void *)call.in; /* what comes in may be what has yet to go out */
    EXPECT_FALSE(told(rank, call).wire.direct);
}

TEST(GpuPairs, RootedCallsAreOfTheRootAndEachOther)
{
    const Sizes counts = {5, 6, 7};
    Rank root(1), other(2);
    struct tw_call at_root = root.call(TW_COLL_GATHER_V, 1);
    struct tw_call at_other = other.call(TW_COLL_GATHER_V, 1);
    at_root.info.count = 6;
    at_root.info.counts.out = counts.data();
    at_other.info.count = 7;
    at_other.out = nullptr;
    const Told gathers = told(root, at_root), gives = told(other, at_other);

    expect_pair(gathers.pairs[0], 0, 0, 0, 20);
    expect_pair(gathers.pairs[1], 0, 24, 20, 24);
    expect_pair(gathers.pairs[2], 0, 0, 44, 28);
    expect_pair(gives.pairs[0], 0, 0, 0, 0);
    expect_pair(gives.pairs[1], 0, 28, 0, 0);
    expect_pair(gives.pairs[2], 0, 0, 0, 0);
    EXPECT_FALSE(gives.wire.direct);

    at_root.info.coll = at_other.info.coll = TW_COLL_SCATTER_V;
    at_root.info.counts = {counts.data(), nullptr, nullptr, nullptr};
    at_other.in = nullptr;
    at_other.out = (void *)0x2000;
    const Told scatters = told(root, at_root), takes = told(other, at_other);
    expect_pair(scatters.pairs[0], 0, 20, 0, 0);
    expect_pair(scatters.pairs[1], 20, 24, 0, 24);
    expect_pair(scatters.pairs[2], 44, 28, 0, 0);
    expect_pair(takes.pairs[0], 0, 0, 0, 0);
    expect_pair(takes.pairs[1], 0, 0, 0, 28);
    expect_pair(takes.pairs[2], 0, 0, 0, 0);
}

/* Ranks that know other counts must make the same of the call. */
TEST(GpuPairs, NothingRestsOnCounts)
{
    const enum tw_coll all[] = {TW_COLL_ALL_GATHER_V, TW_COLL_REDUCE_SCATTER_V,
                                TW_COLL_ALL_TO_ALL_V, TW_COLL_GATHER_V, TW_COLL_SCATTER_V};
    const Sizes few = {0, 0, 0}, many = {1 << 20, 1 << 22, 1};

    for (enum tw_coll coll : all) {
        Rank a(0), b(1);
        struct tw_call one = a.call(coll), other = b.call(coll);
        const size_t *lists[] = {few.data(), many.data()};
        for (struct tw_call *call : {&one, &other}) {
            const size_t *counts = lists[call == &other];
            call->info.count = counts[call->comm->rank];
            call->info.counts.in = tw_coll_rule(coll)->in.many ? counts : nullptr;
            call->info.counts.out = tw_coll_rule(coll)->out.many ? counts : nullptr;
        }
        const Told first = told(a, one), second = told(b, other);
        EXPECT_EQ(first.shape.kernel, second.shape.kernel);
        EXPECT_EQ(first.shape.blocks, 20u);
        EXPECT_EQ(second.shape.blocks, 20u);
        EXPECT_EQ(memcmp(first.wire.words, second.wire.words, sizeof first.wire.words), 0);
    }
}

TEST(GpuPairs, OutputEndsBehindItsLastBlock)
{
    const Sizes counts = {2, 0, 3}, displs = {7, SIZE_MAX, 1};
    Rank rank(0);
    struct tw_call call = rank.call(TW_COLL_ALL_GATHER_V);
    call.info.counts.out = counts.data();
    EXPECT_EQ(tw_gpu_out_bytes(&call), 20u);
    call.info.counts.out_displs = displs.data();
    EXPECT_EQ(tw_gpu_out_bytes(&call), 36u);

    call = rank.call(TW_COLL_SCATTER_V, 1);
    call.info.count = 4;
    EXPECT_EQ(tw_gpu_out_bytes(&call), 16u);
}

TEST(GpuPairs, HoldsWhatTheRankHas)
{
    const Sizes none = {0, 0, 0}, some = {0, 0, 3};
    Rank rank(0);
    struct tw_call call = rank.call(TW_COLL_ALL_TO_ALL_V);
    call.info.counts = {some.data(), nullptr, none.data(), nullptr};
    EXPECT_TRUE(tw_gpu_holds(&call, true));
    EXPECT_FALSE(tw_gpu_holds(&call, false));

    call = rank.call(TW_COLL_GATHER_V, 1); /* counts are the root's */
    call.info.count = 4;
    EXPECT_TRUE(tw_gpu_holds(&call, true));
    EXPECT_FALSE(tw_gpu_holds(&call, false));

    call = rank.call(TW_COLL_ALL_GATHER);
    EXPECT_FALSE(tw_gpu_holds(&call, true));
    call.info.count = 1;
    EXPECT_TRUE(tw_gpu_holds(&call, true));
    EXPECT_TRUE(tw_gpu_holds(&call, false));
}

} // namespace
