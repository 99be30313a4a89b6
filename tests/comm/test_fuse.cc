/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which calls of a group become one, and which may not. Never knows: how the one runs. */
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "inject.h"
#include "ranks.h"

extern "C" {
#include "comm/group.h"
#include "comm/ops.h"
}

namespace
{

struct twill_comm here = {}, elsewhere = {};

struct tw_call call_of(size_t count, twill_type_t type = TWILL_UINT8)
{
    struct tw_call call = {};
    call.info.coll = TW_COLL_ALL_REDUCE;
    call.info.count = count;
    call.info.type = type;
    call.info.op = TWILL_SUM;
    call.comm = &here;
    return call;
}

size_t fused(const std::vector<struct tw_call> &calls)
{
    return tw_fuse_count(calls.data(), calls.size());
}

/* ---- which ------------------------------------------------------------------------------------
 */

TEST(FuseCount, SmallEndsAt16KiB)
{
    const size_t most = 16384;
    EXPECT_EQ(fused({call_of(most), call_of(most)}), 2u);
    EXPECT_EQ(fused({call_of(most), call_of(most + 1)}), 1u);
    EXPECT_EQ(fused({call_of(most + 1), call_of(1)}), 1u);
    EXPECT_EQ(fused({call_of(2048, TWILL_FLOAT64), call_of(2048, TWILL_FLOAT64)}), 2u);
    EXPECT_EQ(fused({call_of(2048, TWILL_FLOAT64), call_of(2049, TWILL_FLOAT64)}), 1u);
}

/* Bytes that do not fit a size_t are not small by wrapping around. */
TEST(FuseCount, HugeCountsDoNotWrap)
{
    const size_t wraps = SIZE_MAX / 8 + 2; /* times 8: 8 */
    EXPECT_EQ(fused({call_of(1, TWILL_INT64), call_of(wraps, TWILL_INT64)}), 1u);
    EXPECT_EQ(fused({call_of(wraps, TWILL_INT64), call_of(1, TWILL_INT64)}), 1u);
    EXPECT_EQ(fused({call_of(1), call_of(SIZE_MAX)}), 1u);
}

TEST(FuseCount, AtMost64CallsAnd256KiB)
{
    EXPECT_EQ(fused(std::vector<struct tw_call>(64, call_of(1))), 64u);
    EXPECT_EQ(fused(std::vector<struct tw_call>(65, call_of(1))), 64u);
    std::vector<struct tw_call> full(16, call_of(16384));
    EXPECT_EQ(fused(full), 16u);
    full.push_back(call_of(1));
    EXPECT_EQ(fused(full), 16u);
    full[3] = call_of(16383); /* there is room for one byte */
    EXPECT_EQ(fused(full), 17u);
    full.push_back(call_of(1));
    EXPECT_EQ(fused(full), 17u);
}

TEST(FuseCount, OnlyPlainCallsOfOneKind)
{
    const struct tw_call good = call_of(4);
    struct tw_call bad = good;
    bad.info.op = TWILL_MAX;
    EXPECT_EQ(fused({good, bad, good}), 1u);
    bad = good;
    bad.info.type = TWILL_INT8;
    EXPECT_EQ(fused({good, bad, good}), 1u);
    bad = good;
    bad.info.count = 0;
    EXPECT_EQ(fused({good, bad, good}), 1u);
    EXPECT_EQ(fused({bad, good}), 1u);
    bad = good;
    bad.info.op = (twill_redop_t)TW_REDOP_PREMUL_SUM;
    EXPECT_EQ(fused({good, bad, good}), 1u);
    EXPECT_EQ(fused({bad, bad}), 1u);
    bad = good;
    bad.info.guise = TW_CALL_SPLIT;
    EXPECT_EQ(fused({good, bad, good}), 1u);
    bad = good;
    bad.info.coll = TW_COLL_REDUCE;
    EXPECT_EQ(fused({good, bad, good}), 1u);
    EXPECT_EQ(fused({bad, good}), 1u);
}

/* What other communicators do, and sends and receives, stand aside. */
TEST(FuseCount, OthersBetweenDoNotCount)
{
    struct tw_call other = call_of(4), send = call_of(4);
    other.comm = &elsewhere;
    send.info.coll = TW_COLL_P2P;
    EXPECT_EQ(fused({call_of(4), other, send, call_of(4), other}), 2u);
    other.info.op = TWILL_MAX; /* theirs may be of any kind */
    EXPECT_EQ(fused({call_of(4), other, call_of(4)}), 2u);
    send.comm = &elsewhere;
    EXPECT_EQ(fused({call_of(4), send, call_of(4)}), 2u);
    EXPECT_EQ(fused({send, call_of(4)}), 1u);
}

/* ---- overlap ----------------------------------------------------------------------------------
 */

struct Item {
    struct twill_comm comm = {};
    struct tw_ops ops = {};
    struct tw_item *item;
    explicit Item(uint32_t nops)
    {
        comm.rank = 3;
        comm.ops = &ops;
        ops.comm = &comm;
        item = tw_item_create(&comm, false, nops + 1);
        item->nops = nops;
    }
    ~Item()
    {
        free(item);
        free(ops.fused);
    }
    Item(const Item &) = delete;
    Item &operator=(const Item &) = delete;
    void set(uint32_t i, const void *in, void *out, size_t count, twill_type_t type = TWILL_INT32)
    {
        struct tw_call call = call_of(count, type);
        call.comm = &comm;
        call.in = in;
        call.out = out;
        tw_op_init(&item->ops[i], &call);
    }
};

TEST(FuseCheck, NeighboursTouchAndDoNotOverlap)
{
    char x[64];
    Item item(2);
    for (int shift = -12; shift <= 12; shift++) {
        SCOPED_TRACE(shift);
        const bool apart = shift <= -8 || shift >= 8; /* 2 int32 */
        item.set(0, x + 48, x + 20, 2);
        item.set(1, x + 20 + shift, x, 2);
        EXPECT_EQ(tw_fuse_check(item.item), apart && shift != -20 ? TWILL_OK : TWILL_ERR_USAGE);
        item.set(1, x + 56, x + 20 + shift, 2);
        EXPECT_EQ(tw_fuse_check(item.item), apart ? TWILL_OK : TWILL_ERR_USAGE);
        item.set(0, x + 20 + shift, x, 2); /* the later one writes what the earlier reads */
        item.set(1, x + 56, x + 20, 2);
        EXPECT_EQ(tw_fuse_check(item.item), apart ? TWILL_OK : TWILL_ERR_USAGE);
    }
    item.set(0, x, x, 2); /* in place, and both read the same */
    item.set(1, x + 8, x + 8, 2);
    EXPECT_EQ(tw_fuse_check(item.item), TWILL_OK);
    item.set(0, x, x + 16, 2);
    item.set(1, x, x + 24, 2);
    EXPECT_EQ(tw_fuse_check(item.item), TWILL_OK);
}

TEST(FuseCheck, NamesTheRankAndTheCalls)
{
    int x[16];
    Item item(3);
    item.set(0, x, x + 8, 2);
    item.set(1, x + 2, x + 10, 2);
    item.set(2, x + 4, x + 11, 2);
    EXPECT_EQ(tw_fuse_check(item.item), TWILL_ERR_USAGE);
    EXPECT_STREQ(tw_fail_text(),
                 "group: of rank 3's 3 small all_reduces that run as one, number 1 writes what "
                 "number 2 writes: calls of a group are simultaneous");
    item.set(2, x + 11, x + 12, 2);
    EXPECT_EQ(tw_fuse_check(item.item), TWILL_ERR_USAGE);
    EXPECT_NE(std::string(tw_fail_text()).find("number 1 writes what number 2 reads"),
              std::string::npos);
}

/* ---- the joint call ---------------------------------------------------------------------------
 */

TEST(FusePrepare, PacksAndHandsOutInOrder)
{
    const char in[] = "abcdef";
    char out[6] = {};
    Item item(3);
    item.set(0, in + 1, out + 5, 1, TWILL_UINT8);
    item.set(1, in + 3, out, 3, TWILL_UINT8);
    item.set(2, in, out + 3, 2, TWILL_UINT8);
    ASSERT_EQ(tw_fuse_prepare(item.item), TWILL_OK);
    const struct tw_op *joint = item.item->joint;
    ASSERT_EQ(joint, &item.item->ops[3]);
    EXPECT_EQ(joint->info.guise, TW_CALL_FUSED);
    EXPECT_EQ(joint->info.fused, 3u);
    EXPECT_EQ(joint->info.count, 6u);
    EXPECT_EQ(joint->in, joint->out);
    tw_fuse_pack(item.item);
    EXPECT_EQ(memcmp(joint->in, "bdefab", 6), 0);
    memcpy(joint->out, "123456", 6);
    tw_fuse_unpack(item.item);
    EXPECT_EQ(memcmp(out, "234561", 6), 0);
}

/* The same sum of counts, and another record. */
TEST(FusePrepare, CountsAreInTheRecord)
{
    int x[8];
    uint64_t spreads[2];
    for (size_t i = 0; i < 2; i++) {
        Item item(2);
        item.set(0, x, x, 1 + i);
        item.set(1, x + 4, x + 4, 2 - i);
        ASSERT_EQ(tw_fuse_prepare(item.item), TWILL_OK);
        EXPECT_EQ(item.item->joint->info.count, 3u);
        spreads[i] = item.item->joint->info.spread;
    }
    EXPECT_NE(spreads[0], spreads[1]);
}

TEST(FusePrepare, TakesItsMemoryOnce)
{
    int x[8];
    Item item(2);
    item.set(0, x, x, 1);
    item.set(1, x + 4, x + 4, 1);
    inject::alloc_fails(0);
    EXPECT_EQ(tw_fuse_prepare(item.item), TWILL_ERR_NOMEM);
    EXPECT_TRUE(inject::done());
    EXPECT_EQ(item.item->joint, nullptr);
    EXPECT_NE(std::string(tw_fail_text()).find("rank 3 has no memory"), std::string::npos);
    ASSERT_EQ(tw_fuse_prepare(item.item), TWILL_OK);
    inject::alloc_fails(0);
    EXPECT_EQ(tw_fuse_prepare(item.item), TWILL_OK);
    EXPECT_FALSE(inject::done());
}

/* One rank closes its group and has no memory somewhere on the way: nothing has begun and it may
 * try again, or all ranks are told. The other rank has not even called. */
TEST(FuseGroup, WithoutMemoryNobodyWaits)
{
    const twill_unique_id id = new_id();
    std::unique_ptr<Comm> ranks[2];
    for (int r = 0; r < 2; r++)
        ranks[r] = std::make_unique<Comm>(args_of(r, 2, id));
    on_threads(2, [&](int r) { ASSERT_EQ(ranks[r]->connect(), TWILL_OK); });
    struct twill_comm *own = ranks[1]->get();
    int tries = 0, x[2] = {1, 2};
    for (; tries < 100 && tw_comm_status(own) == TWILL_OK; tries++) {
        ASSERT_EQ(tw_group_start(), TWILL_OK);
        for (int &one : x) {
            struct tw_call call = call_of(1, TWILL_INT32);
            call.comm = own;
            call.in = call.out = &one;
            ASSERT_EQ(tw_ops_call(&call), TWILL_OK);
        }
        inject::alloc_fails(tries);
        EXPECT_EQ(tw_group_end(), TWILL_ERR_NOMEM);
        EXPECT_TRUE(inject::done()) << tries;
        EXPECT_EQ(own->user, 0u);
    }
    EXPECT_GT(tries, 1) << "there are others before that";
    EXPECT_TRUE(fails_within(ranks[0]->get(), 5000));
    EXPECT_TRUE(contains(ranks[0]->failure(), "rank 1 has no memory")) << ranks[0]->failure();
    EXPECT_EQ(x[0], 1);
}

} // namespace
