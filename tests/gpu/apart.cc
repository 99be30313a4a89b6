/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls on memory that is not from cudaMalloc: mapped by the program, or of a pool.
 * Never knows: how peers come to it. */
#include <functional>
#include <memory>

#include "gpu/base.h"
#include "gpu/calls.h"
#include "gpu/process.h"
#include "gpu/roles.h"
#include "gpu/vmm.h"
#include "gpu/world.h"

namespace gpu
{

namespace
{

/* More than ranks tell each other of at once, on both; and calls that are too large for lines. */
const size_t PIECES = 56, FEW = 48;

} // namespace

/* ---- in one process ----------------------------------------------------------------------------
 */

/* args: none. In a process of its own: a fault takes a device from it for good. */
int role_mapped(const std::vector<std::string> &)
{
    const std::vector<int> list = place(2, 0);
    World world(list);
    Mapped a(list[0], PIECES), b(list[1], PIECES);
    const Calls calls = calls_on(&world, {a.get(), b.get()}, a.bytes(), 1);
    const auto renew = [&] {
        a.renew();
        b.renew();
    };

    if (list[0] != list[1]) {
        step("one rank's kernel waits while devices are let into the other's memory");
        calls.sum_in_turn(30);
        renew();
    }
    step("sums in mapped memory");
    calls.sum(1);
    calls.sum(2);
    renew();
    step("other memory at the same addresses");
    calls.sum(3);
    renew();
    calls.gather(4);
    renew();
    calls.exchange(5, 1);
    renew();
    step("a captured call is the first one");
    calls.replay(6, 3);
    const Calls few = calls_on(&world, {a.get(), b.get()}, 4096, 0);
    few.sum(20);
    world.healthy();
    world.destroy();
    return 0;
}

TEST(Apart, MappedInOneProcess)
{
    Child child({"--role", "mapped"});
    EXPECT_EQ(child.wait(50), 0);
}

/* What is not mapped to its end is no kernel's. */
TEST(Apart, BuffersThatEndTooEarly)
{
    const std::vector<int> list = place(2, 0);
    if (list[0] == list[1])
        GTEST_SKIP() << "needs two GPUs: on one nobody asks who is let in";
    World world(list);
    Mapped memory(list[0], PIECES);

    EXPECT_EQ(twill_all_reduce(memory.get(), memory.get(), memory.bytes() + 1, TWILL_UINT8,
                               TWILL_SUM, world.rank(0).comm, nullptr),
              TWILL_ERR_INVALID);
    const std::string said = twill_last_error(world.rank(0).comm);
    EXPECT_TRUE(contains(said, "all_reduce: ") && contains(said, "nothing is mapped")) << said;
    world.healthy();
    world.destroy();
}

/* ---- between processes -------------------------------------------------------------------------
 */

namespace
{

/* Registered, called on, and ended. */
void registered_calls(World *world, const std::vector<char *> &at, size_t bytes, size_t skip,
                      int call)
{
    const Calls calls = calls_on(world, at, bytes, skip);
    const size_t registered = calls.count * 4 * (size_t)(world->size() + 1);
    std::vector<twill_reg_t> regs(at.size());

    on_threads((int)at.size(), [&](int i) {
        const twill_comm_t comm = world->locals()[(size_t)i]->comm;
        TWILL(twill_register(comm, calls.in[(size_t)i], registered, &regs[(size_t)i]), comm);
    });
    calls.sum(call);
    calls.gather(call + 1);
    for (int bit = 1; bit < world->size(); bit *= 2)
        calls.exchange(call + 2 + bit, bit);
    calls.replay(call + 6, 2);
    on_threads((int)at.size(), [&](int i) {
        const twill_comm_t comm = world->locals()[(size_t)i]->comm;
        TWILL(twill_deregister(comm, regs[(size_t)i]), comm);
    });
    calls.sum(call + 10);
}

/* On every rank, with a sentence that says who is to blame. */
void refused(World *world, const std::vector<char *> &at, size_t bytes, const std::string &who)
{
    on_threads((int)at.size(), [&](int i) {
        const twill_comm_t comm = world->locals()[(size_t)i]->comm;
        twill_reg_t reg;
        const enum twill_status status = twill_register(comm, at[(size_t)i], bytes, &reg);
        const std::string said = twill_last_error(comm);

        if (status != TWILL_ERR_UNSUPPORTED || !contains(said, who))
            throw Failure(format("register: %d, %s", status, said.c_str()));
    });
    world->healthy();
}

/* What a rank has that it may register. */
struct Own {
    explicit Own(const Local &local)
        : device(local.device), many(device, PIECES), few(device, FEW), closed(device, FEW, false),
          plain(device, many.bytes())
    {
        const On on(device);
        CUDA(cudaMallocAsync(&pool, few.bytes(), nullptr));
        wait(device, nullptr);
    }
    ~Own()
    {
        const On on(device);
        (void)cudaFreeAsync(pool, nullptr);
        wait(device, nullptr);
    }
    Own(const Own &) = delete;
    Own &operator=(const Own &) = delete;
    int device;
    Mapped many, few, closed;
    Memory plain;
    void *pool = nullptr;
};

void pieces_body(World *world)
{
    std::vector<std::unique_ptr<Own>> own;
    const auto each = [&](const std::function<char *(Own &, int)> &of) {
        std::vector<char *> out;
        for (size_t i = 0; i < own.size(); i++)
            out.push_back(of(*own[i], world->locals()[i]->rank));
        return out;
    };

    for (const auto &local : world->locals())
        own.push_back(std::make_unique<Own>(*local));
    const size_t bytes = own[0]->few.bytes();
    step("pieces of all ranks");
    registered_calls(world, each([](Own &o, int) { return o.many.get(); }), own[0]->many.bytes(), 3,
                     1);
    for (int with = 0; with < world->size(); with++) {
        const std::string who = format("rank %d has memory that peers do not reach", with);

        step(format("rank %d has few pieces, the others have many", with));
        registered_calls(world,
                         each([&](Own &o, int r) { return (r == with ? o.few : o.many).get(); }),
                         bytes, 1, 20);
        step(format("rank %d has pieces, the others have memory of cudaMalloc", with));
        registered_calls(
            world, each([&](Own &o, int r) { return r == with ? o.few.get() : o.plain.get(); }),
            bytes, 0, 40);
        step(format("rank %d has memory that cannot be handed on", with));
        refused(world, each([&](Own &o, int r) { return (r == with ? o.closed : o.few).get(); }),
                bytes, who);
        refused(world,
                each([&](Own &o, int r) { return r == with ? (char *)o.pool : o.few.get(); }),
                bytes, who);
    }
    for (auto &one : own)
        one->many.renew();
    step("other memory at the same addresses");
    registered_calls(world, each([](Own &o, int) { return o.many.get(); }), own[0]->many.bytes(), 0,
                     60);
}

} // namespace

/* args: rank of the first here, ranks here */
int role_pieces(const std::vector<std::string> &args)
{
    const int first = std::stoi(args.at(0)), here = std::stoi(args.at(1));
    std::vector<int> ranks, list;

    for (int r = first; r < first + here; r++) {
        ranks.push_back(r);
        list.push_back(r % devices());
    }
    World world(2 * here, ranks, list, join_by_id(2 * here, first, list));
    try {
        pieces_body(&world); /* whatever is taken for good is taken */
        const Count before = count_now();
        pieces_body(&world);
        if (!within(5, [&] { return count_now().fds <= before.fds; }))
            throw Failure(format("descriptors: %d, before %d", count_now().fds, before.fds));
    } catch (const std::exception &e) {
        fprintf(stderr, "rank %d: %s\n", first, e.what());
        world.abort(); /* the others may wait */
        return 1;
    }
    world.destroy();
    return 0;
}

static void two_processes(int here)
{
    const std::string more = std::to_string(here);
    Child a({"--role", "pieces", "0", more}), b({"--role", "pieces", more, more});

    pass_id({&a, &b});
    EXPECT_EQ(a.wait(100), 0);
    EXPECT_EQ(b.wait(100), 0);
}

TEST(Apart, MappedInTwoProcesses) { two_processes(1); }
TEST(Apart, MappedInTwoProcessesOfTwoRanks) { two_processes(2); }

} // namespace gpu
