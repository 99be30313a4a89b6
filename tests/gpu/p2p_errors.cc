/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sends and receives on devices that do not match, have no partner or are wrong by
 * themselves. Never knows: what arrives (p2p.cc). */
#include "gpu/base.h"
#include "gpu/p2p_batch.h"
#include "gpu/world.h"

namespace gpu
{

namespace
{

enum twill_status state_of(twill_comm_t comm)
{
    enum twill_status status = TWILL_OK;
    TWILL(twill_comm_async_error(comm, &status), comm);
    return status;
}

/* Rank 0 sends, rank 1 takes; each on its own thread. */
void clash(size_t sent, twill_type_t sent_type, size_t taken, twill_type_t taken_type,
           const std::vector<std::string> &words)
{
    World world(place(2, 0));
    Memory a(world.rank(0).device, 1 << 20), b(world.rank(1).device, 1 << 20);
    Local &from = world.rank(0), &to = world.rank(1);

    TWILL(twill_send(a.get(), sent, sent_type, 1, from.comm, *from.own[0]), from.comm);
    TWILL(twill_recv(b.get(), taken, taken_type, 0, to.comm, *to.own[0]), to.comm);
    for (auto &local : world.locals()) {
        EXPECT_TRUE(within(1, [&] { return state_of(local->comm) < 0; }));
        EXPECT_EQ(state_of(local->comm), TWILL_ERR_MISMATCH);
        EXPECT_TRUE(wait_within(local->device, *local->own[0], 1));
        const std::string text = twill_last_error(local->comm);
        for (const std::string &word : words)
            EXPECT_TRUE(contains(text, word)) << "\"" << text << "\" does not say " << word;
    }
}

void refused(enum twill_status status, enum twill_status want, twill_comm_t comm, const char *word)
{
    EXPECT_EQ(status, want) << twill_status_string(status);
    EXPECT_TRUE(contains(twill_last_error(comm), word)) << twill_last_error(comm);
}

} // namespace

TEST(P2p, Mismatch)
{
    clash(100, TWILL_FLOAT32, 101, TWILL_FLOAT32, {"send", "recv", "100", "101", "float32"});
    clash(100, TWILL_FLOAT32, 100, TWILL_INT32, {"float32", "int32"});
    clash(0, TWILL_FLOAT32, 5, TWILL_FLOAT32, {" 0 ", " 5 "});
    clash(100000, TWILL_FLOAT32, 200000, TWILL_FLOAT32, {"100000", "200000"});
}

TEST(P2p, AbortEndsTheWait)
{
    for (bool send : {true, false}) {
        World world(place(2, 0));
        Local &local = world.rank(0);
        Memory memory(local.device, 4096);

        if (send)
            TWILL(twill_send(memory.get(), 8, TWILL_INT32, 1, local.comm, *local.own[0]),
                  local.comm);
        else
            TWILL(twill_recv(memory.get(), 8, TWILL_INT32, 1, local.comm, *local.own[0]),
                  local.comm);
        EXPECT_FALSE(wait_within(local.device, *local.own[0], 0.1));
        TWILL(twill_comm_abort(local.comm), local.comm);
        EXPECT_TRUE(wait_within(local.device, *local.own[0], 1));
        EXPECT_TRUE(within(1, [&] { return state_of(world.rank(1).comm) < 0; }));
    }
}

TEST(P2p, ItselfNeedsBoth)
{
    World world(place(2, 0));
    Local &local = world.rank(0);
    Memory memory(local.device, 8192);
    char *at = memory.get();

    refused(twill_send(at, 8, TWILL_INT32, 0, local.comm, *local.own[0]), TWILL_ERR_USAGE,
            local.comm, "itself");
    TWILL(twill_group_start(), nullptr);
    TWILL(twill_send(at, 8, TWILL_INT32, 0, local.comm, *local.own[0]), local.comm);
    refused(twill_group_end(), TWILL_ERR_USAGE, local.comm, "recv");
    grouped([&] {
        TWILL(twill_recv(at + 4096, 8, TWILL_INT32, 0, local.comm, *local.own[0]), local.comm);
        TWILL(twill_send(at, 8, TWILL_INT32, 0, local.comm, *local.own[0]), local.comm);
    });
    wait_all(&world);
    world.healthy();
    world.destroy();
}

/* The second of a pair is refused for that, and the group says so too. */
TEST(P2p, AbortBetweenAPairWithItself)
{
    World world(place(2, 0));
    Local &local = world.rank(0);
    Memory memory(local.device, 8192);
    char *at = memory.get();

    TWILL(twill_group_start(), nullptr);
    TWILL(twill_send(at, 8, TWILL_INT32, 0, local.comm, *local.own[0]), local.comm);
    TWILL(twill_comm_abort(local.comm), local.comm);
    refused(twill_recv(at + 4096, 8, TWILL_INT32, 0, local.comm, *local.own[0]), TWILL_ERR_ABORTED,
            local.comm, "aborted by rank 0");
    refused(twill_group_end(), TWILL_ERR_ABORTED, local.comm, "aborted by rank 0");
    world.abort();
}

TEST(P2p, Arguments)
{
    World world(place(2, 0));
    Local &local = world.rank(0);
    Memory memory(local.device, 8192);
    std::vector<char> host(64);
    const cudaStream_t stream = *local.own[0];

    refused(twill_send(host.data(), 8, TWILL_INT32, 1, local.comm, stream), TWILL_ERR_INVALID,
            local.comm, "host memory");
    refused(twill_recv(memory.get() + 1, 8, TWILL_INT32, 1, local.comm, stream), TWILL_ERR_INVALID,
            local.comm, "aligned");
    refused(twill_recv(memory.get(), 8, TWILL_INT32, 2, local.comm, stream), TWILL_ERR_INVALID,
            local.comm, "peer");
    TWILL(twill_group_start(), nullptr);
    for (int i = 0; i < 513; i++)
        TWILL(twill_send(memory.get(), 1, TWILL_UINT8, 1, local.comm, stream), local.comm);
    refused(twill_group_end(), TWILL_ERR_UNSUPPORTED, local.comm, "513");
    world.healthy();
    world.destroy();
}

} // namespace gpu
