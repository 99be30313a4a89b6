/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <string.h>

#include "ranks.h"

extern "C" {
#include "comm/meeting.h"
}

static struct tw_id open_up(const twill_unique_id &id)
{
    struct tw_id inside;
    memcpy(&inside, &id, sizeof(inside));
    return inside;
}

static twill_unique_id close_up(const struct tw_id &inside)
{
    twill_unique_id id;
    memcpy(&id, &inside, sizeof(id));
    return id;
}

/* The meeting points of the ids that these tests make live until a process ends: in_child. */

TEST(Id, IsFreshEachTime)
{
    in_child([] {
        struct tw_id a = open_up(new_id());
        struct tw_id b = open_up(new_id());
        EXPECT_NE(0, memcmp(a.key, b.key, sizeof(a.key)));
        EXPECT_NE(0, memcmp(a.nonce, b.nonce, sizeof(a.nonce)));
        EXPECT_STRNE(a.meet, b.meet);
        EXPECT_EQ(0, memcmp(a.host, b.host, sizeof(a.host)));
    });
}

TEST(Id, AGoodOnePasses)
{
    in_child([] {
        twill_unique_id id = new_id();
        EXPECT_EQ(TWILL_OK, tw_id_check(&id)) << tw_fail_text();
    });
}

TEST(Id, GarbageIsRefused)
{
    in_child([] {
        twill_unique_id id = {};
        EXPECT_EQ(TWILL_ERR_INVALID, tw_id_check(&id));
        memset(&id, 0xff, sizeof(id));
        EXPECT_EQ(TWILL_ERR_INVALID, tw_id_check(&id));
        struct tw_id inside = open_up(new_id());
        memset(inside.meet, 'x', sizeof(inside.meet));
        id = close_up(inside);
        EXPECT_EQ(TWILL_ERR_INVALID, tw_id_check(&id));
        memset(inside.meet, 0, sizeof(inside.meet));
        id = close_up(inside);
        EXPECT_EQ(TWILL_ERR_INVALID, tw_id_check(&id));
    });
}

TEST(Id, AnotherVersionIsNamed)
{
    in_child([] {
        struct tw_id inside = open_up(new_id());
        inside.version = 7;
        twill_unique_id id = close_up(inside);
        EXPECT_EQ(TWILL_ERR_VERSION, tw_id_check(&id));
        EXPECT_NE(nullptr, strstr(tw_fail_text(), "version 7")) << tw_fail_text();
    });
}

TEST(Id, AnotherHostIsNamedWithThisOne)
{
    in_child([] {
        struct tw_id inside = open_up(new_id());
        inside.host[3] ^= 1;
        strcpy(inside.host_name, "far-away");
        twill_unique_id id = close_up(inside);
        struct tw_proc *proc = nullptr;
        EXPECT_EQ(TWILL_OK, tw_proc_get(&proc));
        EXPECT_EQ(TWILL_ERR_UNSUPPORTED, tw_id_check(&id));
        EXPECT_NE(nullptr, strstr(tw_fail_text(), "far-away")) << tw_fail_text();
        EXPECT_NE(nullptr, strstr(tw_fail_text(), proc->host.name)) << tw_fail_text();
    });
}

TEST(Id, HostIdentityCanBeSet)
{
    in_child([] {
        set_params({{"HOSTID", "left"}});
        twill_unique_id id = new_id();
        EXPECT_EQ(TWILL_OK, tw_id_check(&id));
        Child elsewhere([&](const Wire &) { return 0; });
        EXPECT_EQ(0, elsewhere.wait());
    });
}

TEST(Id, TheMeetingPointGoesOnceTheRanksHaveMet)
{
    Count before = count_now();
    twill_unique_id id = new_id();
    EXPECT_GT(count_now().threads, before.threads);
    on_threads(2, [&](int rank) {
        Comm comm(args_of(rank, 2, id));
        EXPECT_EQ(TWILL_OK, comm.connect()) << comm.failure();
    });
    EXPECT_TRUE(count_returns(before));
}

TEST(Id, GoodForOneCommunicator)
{
    twill_unique_id id = new_id();
    Comm first(args_of(0, 1, id));
    ASSERT_EQ(TWILL_OK, first.connect()) << first.failure();
    Comm second(args_of(0, 1, id));
    uint64_t start = now_ms();
    enum twill_status status = second.connect();
    EXPECT_TRUE(status == TWILL_ERR_PEER || status == TWILL_ERR_USAGE) << status;
    EXPECT_NE(std::string::npos, second.failure().find("used already")) << second.failure();
    EXPECT_LT(now_ms() - start, 2000u);
    EXPECT_EQ(TWILL_OK, tw_comm_status(first.get()));
}

TEST(Id, OfAProcessThatHasEndedFailsAtOnce)
{
    twill_unique_id id = {};
    Child maker([](const Wire &wire) {
        share_id(wire, true);
        return 0;
    });
    ASSERT_TRUE(maker.wire.get(&id));
    EXPECT_EQ(0, maker.wait());
    uint64_t start = now_ms();
    Comm comm(args_of(0, 2, id));
    EXPECT_EQ(TWILL_ERR_PEER, comm.connect());
    EXPECT_NE(std::string::npos, comm.failure().find("has ended")) << comm.failure();
    EXPECT_LT(now_ms() - start, 2000u);
}

TEST(Id, TheMakerNeedNotBeARank)
{
    twill_unique_id id = {};
    Child maker([](const Wire &wire) {
        Count before = count_now();
        share_id(wire, true);
        int byte = 0;
        EXPECT_TRUE(wire.get(&byte));
        EXPECT_TRUE(count_returns(before)) << "the last reference went with the meeting point";
        return 0;
    });
    ASSERT_TRUE(maker.wire.get(&id));
    on_threads(2, [&](int rank) {
        Comm comm(args_of(rank, 2, id));
        EXPECT_EQ(TWILL_OK, comm.connect()) << comm.failure();
    });
    maker.wire.put(1);
    EXPECT_EQ(0, maker.wait());
}

TEST(Id, ThatNobodyUsesGoesByItself)
{
    Count before = count_now();
    set_params({{"ID_TIMEOUT", "50ms"}});
    twill_unique_id id = new_id();
    EXPECT_TRUE(count_returns(before)) << "the last reference went with the meeting point";
    Comm comm(args_of(0, 1, id));
    EXPECT_EQ(TWILL_ERR_PEER, comm.connect());
    EXPECT_NE(std::string::npos, comm.failure().find("TWILL_ID_TIMEOUT")) << comm.failure();
    comm.free();
    EXPECT_TRUE(count_returns(before));
    set_params({});
}

TEST(Id, ThatOneRankUsesWaitsForTheOthers)
{
    Count before = count_now();
    set_params({{"ID_TIMEOUT", "50ms"}});
    twill_unique_id id = new_id();
    struct tw_comm_args args = args_of(0, 2, id);
    struct twill_comm *first = nullptr;
    ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &first));
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(&first, 1, false));
    EXPECT_FALSE(fails_within(first, 150)); /* what passes is the time that an unused one has */
    Comm second(args_of(1, 2, id));
    EXPECT_EQ(TWILL_OK, second.connect()) << second.failure();
    tw_comm_free(first);
    second.free();
    EXPECT_TRUE(count_returns(before));
    set_params({});
}

TEST(Id, ThatNobodyUsesHoldsNothingElse)
{
    in_child([] {
        new_id(); /* for an hour */
        Count open = count_now();
        twill_unique_id id = new_id();
        on_threads(2, [&](int rank) {
            Comm comm(args_of(rank, 2, id));
            EXPECT_EQ(TWILL_OK, comm.connect()) << comm.failure();
            EXPECT_EQ(TWILL_OK, comm.finalize()) << comm.failure();
        });
        EXPECT_TRUE(count_returns(open));
    }); /* whose end does not wait for it either */
}

TEST(Id, ThatIsGivenUpSaysWhy)
{
    Count before = count_now();
    twill_unique_id id = new_id();
    tw_id_give_up(&id, TWILL_ERR_NOMEM, "init: its maker has no memory");
    Comm late(args_of(1, 2, id));
    EXPECT_EQ(TWILL_ERR_NOMEM, late.connect());
    EXPECT_NE(std::string::npos, late.failure().find("its maker has no memory")) << late.failure();
    late.free();
    EXPECT_TRUE(count_returns(before));
}
