/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what communicators take of devices' memory, what they give back, and when there is none.
 * Never knows: what calls compute. */
#include <cstdlib>

#include "gpu/base.h"
#include "gpu/process.h"
#include "gpu/roles.h"
#include "gpu/world.h"

namespace gpu
{

namespace
{

const size_t MIB = (size_t)1 << 20;
const size_t SLACK = 2 * MIB; /* what CUDA hands memory out in */
const int MANY = 16;

std::vector<size_t> free_all()
{
    std::vector<size_t> out;
    for (int device = 0; device < devices(); device++)
        out.push_back(free_bytes(device));
    return out;
}

std::vector<twill_comm_t> pair_make()
{
    const std::vector<int> list = place(2, 0);
    std::vector<twill_comm_t> comms(2);
    TWILL(twill_comm_init_all(comms.data(), 2, list.data(), nullptr), nullptr);
    return comms;
}
void pair_destroy(const std::vector<twill_comm_t> &comms)
{
    for (twill_comm_t comm : comms)
        TWILL(twill_comm_destroy(comm), nullptr);
}

/* A large and a small call, so that whatever a first call takes is taken. */
void pair_use(const std::vector<twill_comm_t> &comms)
{
    const std::vector<int> list = place(2, 0);
    Memory a(list[0], 4 * MIB), b(list[1], 4 * MIB);
    Memory *memory[] = {&a, &b};

    for (size_t count : {(size_t)10, MIB}) {
        grouped([&] {
            for (size_t r = 0; r < 2; r++)
                TWILL(twill_all_reduce(memory[r]->get(), memory[r]->get(), count, TWILL_FLOAT32,
                                       TWILL_SUM, comms[r], nullptr),
                      comms[r]);
        });
        for (size_t r = 0; r < 2; r++)
            wait(list[r], nullptr);
    }
}

/* What the first communicator of a process takes for good is not counted. */
void warm_up()
{
    const auto comms = pair_make();
    pair_use(comms);
    pair_destroy(comms);
}

void expect_returned(const std::vector<size_t> &before)
{
    const std::vector<size_t> after = free_all();
    for (size_t device = 0; device < before.size(); device++)
        EXPECT_LE(before[device], after[device] + SLACK)
            << "device " << device << " has lost " << before[device] - after[device] << " bytes";
}

void expect_count(const Count &before)
{
    EXPECT_TRUE(within(5,
                       [&] {
                           const Count now = count_now();
                           return now.fds <= before.fds && now.threads <= before.threads;
                       }))
        << "descriptors " << before.fds << " -> " << count_now().fds << ", threads "
        << before.threads << " -> " << count_now().threads;
}

/* All of a device, but for pieces that are smaller than anything asks for. */
class Hog
{
  public:
    explicit Hog(int device) : device_(device)
    {
        const On on(device);
        for (size_t bytes = 1024 * MIB; bytes >= 64 * 1024; bytes /= 2) {
            void *at;
            while (cudaMalloc(&at, bytes) == cudaSuccess)
                all_.push_back(at);
            (void)cudaGetLastError();
        }
    }
    ~Hog()
    {
        const On on(device_);
        for (void *at : all_)
            (void)cudaFree(at);
    }

  private:
    int device_;
    std::vector<void *> all_;
};

} // namespace

/* Also a bound on what one takes: 4 MiB on each device, and a little, and what CUDA rounds it to.
 */
TEST(DeviceMemory, SixteenCommunicatorsComeAndGo)
{
    warm_up();
    const std::vector<size_t> before = free_all();
    const Count count = count_now();

    for (int time = 0; time < 3; time++) {
        std::vector<std::vector<twill_comm_t>> all;

        step(format("sixteen communicators, time %d", time));
        for (int i = 0; i < MANY; i++)
            all.push_back(pair_make());
        const std::vector<size_t> with = free_all();
        for (const auto &comms : all)
            pair_use(comms);
        const std::vector<size_t> used = free_all();
        for (size_t device = 0; device < before.size(); device++) {
            size_t ranks = 0;
            for (int of_rank : place(2, 0))
                ranks += of_rank == (int)device;
            const size_t taken = (before[device] - with[device]) / MANY;

            printf("device %zu: %zu KiB for a communicator with %zu ranks there, %zu KiB more in "
                   "use\n",
                   device, taken / 1024, ranks, (with[device] - used[device]) / MANY / 1024);
            EXPECT_LE(taken, ranks * (4 * MIB + SLACK) + MIB / 4) << "device " << device;
            EXPECT_LE(with[device], used[device] + SLACK) << "a first call takes memory";
        }
        for (const auto &comms : all)
            pair_destroy(comms);
        expect_returned(before);
    }
    expect_count(count);
}

TEST(DeviceMemory, NoneLeft)
{
    warm_up();
    const std::vector<size_t> before = free_all();
    const Count count = count_now();
    const std::vector<int> list = place(2, 0);

    for (int full : {list[0], list[1]}) {
        const Hog hog(full);
        const std::vector<size_t> hogged = free_all();

        for (int time = 0; time < 5; time++) {
            std::vector<twill_comm_t> comms(2, (twill_comm_t)1);

            step(format("init without memory on device %d, time %d", full, time));
            const enum twill_status status =
                twill_comm_init_all(comms.data(), 2, list.data(), nullptr);
            EXPECT_EQ(status, TWILL_ERR_NOMEM) << twill_status_string(status);
            EXPECT_TRUE(contains(twill_last_error(nullptr), "memory")) << twill_last_error(nullptr);
            EXPECT_EQ(comms[0], nullptr);
            EXPECT_EQ(comms[1], nullptr);
        }
        expect_returned(hogged);
    }
    expect_returned(before);
    expect_count(count);
    warm_up(); /* works again */
}

/* ---- memory of other kinds ---------------------------------------------------------------------
 */

/* From CUDA's default pools, which let other devices in only when asked to. */
int role_pool(const std::vector<std::string> &)
{
    World world(place(2, 0));

    for (size_t count : {(size_t)1000, 2 * MIB}) {
        std::vector<void *> at(2);
        std::vector<uint32_t> out(count);

        for (int r = 0; r < 2; r++) {
            Local &local = world.rank(r);
            const On on(local.device);
            CUDA(cudaMallocAsync(&at[(size_t)r], count * 4, *local.own[0]));
            CUDA(cudaMemsetAsync(at[(size_t)r], r + 1, count * 4, *local.own[0]));
            wait(local.device, *local.own[0]);
        }
        grouped([&] {
            for (int r = 0; r < 2; r++)
                TWILL(twill_all_reduce(at[(size_t)r], at[(size_t)r], count, TWILL_UINT32, TWILL_SUM,
                                       world.rank(r).comm, *world.rank(r).own[0]),
                      world.rank(r).comm);
        });
        for (int r = 0; r < 2; r++) {
            Local &local = world.rank(r);
            const On on(local.device);
            wait(local.device, *local.own[0]);
            CUDA(cudaMemcpy(out.data(), at[(size_t)r], count * 4, cudaMemcpyDeviceToHost));
            for (uint32_t value : out)
                if (value != 0x03030303u)
                    throw Failure(format("found %08x", value));
            CUDA(cudaFreeAsync(at[(size_t)r], *local.own[0]));
            wait(local.device, *local.own[0]);
        }
    }
    world.healthy();
    world.destroy();
    return 0;
}

/* In a process of its own: a fault there takes the device from it for good. */
TEST(DeviceMemory, OfAPool)
{
    Child child({"--role", "pool"});
    EXPECT_EQ(child.wait(50), 0);
}

} // namespace gpu
