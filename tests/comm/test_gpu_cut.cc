/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: ranks of several processes whose devices do not reach each other: the host memory that
 * they share. Never knows: how that is found out in one process (test_gpu_selftest.cc). */
#include "gpu_ranks.h"

#include <cstring>

namespace
{

typedef std::vector<std::pair<std::string, std::string>> Params;

struct Job {
    int processes, each; /* ranks of a process, on as many devices */
    Params params;
    std::function<void()> world; /* how its devices are */
};

/* A word that rank `from` writes into the memory of rank `to`, where it is that one's to write. */
uint32_t word(int from, int to) { return (uint32_t)(0x10000 * (from + 1) + to + 1); }
uint32_t *inbox(void *mem, int from) { return static_cast<uint32_t *>(mem) + 32 * from; }

/* Every rank writes to every other, and meets them: kernels do nothing here, the host does. */
void write_to_all(const std::vector<twill_comm_t> &comms, const Wire &wire)
{
    char go = 0;
    for (twill_comm_t comm : comms) {
        const struct tw_gpu *gpu = comm->gpu;
        EXPECT_TRUE(gpu->cut);
        EXPECT_FALSE(gpu->all_here);
        for (int p = 0; p < comm->size; p++) {
            struct tw_cuda_memory found;
            EXPECT_EQ(tw_cuda_memory_find(gpu->base.near[p], &found), TWILL_OK);
            EXPECT_EQ(found.kind, TW_CUDA_PINNED);
            EXPECT_EQ(gpu->here[p], p == comm->rank);
            for (int w = 0; w < comm->size && p == comm->rank; w++)
                EXPECT_EQ(*inbox(gpu->mem, w), 0u) << "it is as new";
        }
    }
    wire.put(go); /* all have seen that it is new */
    EXPECT_TRUE(wire.get(&go));
    for (twill_comm_t comm : comms)
        for (int p = 0; p < comm->size; p++)
            *inbox(comm->gpu->base.near[p], comm->rank) = word(comm->rank, p);
    wire.put(go); /* all have written */
    EXPECT_TRUE(wire.get(&go));
    for (twill_comm_t comm : comms)
        for (int w = 0; w < comm->size; w++)
            EXPECT_EQ(*inbox(comm->gpu->mem, w), word(w, comm->rank));
}

std::vector<twill_comm_t> join(const twill_unique_id &id, const Job &job, int process)
{
    std::vector<twill_comm_t> comms((size_t)job.each);
    EXPECT_EQ(twill_group_start(), TWILL_OK);
    for (int i = 0; i < job.each; i++) {
        struct twill_config config = TWILL_CONFIG_INIT;
        const int rank = process * job.each + i;
        config.device = rank;
        EXPECT_EQ(twill_comm_init(&comms[(size_t)i], job.processes * job.each, &id, rank, &config),
                  TWILL_OK);
    }
    EXPECT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
    return comms;
}

int in_process(const Job &job, int process, const Wire &wire)
{
    fake::reset(8);
    if (job.world)
        job.world();
    set_params(job.params);
    const twill_unique_id id = share_id(wire, process == 0);
    const size_t before = fake::bytes_of(process * job.each);
    const Count open = count_now();
    std::vector<twill_comm_t> comms = join(id, job, process);
    if (testing::Test::HasFailure())
        return 1;
    write_to_all(comms, wire);
    for (twill_comm_t comm : comms)
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
    EXPECT_EQ(fake::bytes_of(process * job.each), before);
    EXPECT_TRUE(process == 0 || count_returns(open)) << "process 0 had the id's meeting point";
    for (const std::string &what : fake::misuse())
        ADD_FAILURE() << what;
    return 0;
}

/* All of them are at the same place, so many times. */
void lead(const std::vector<Child *> &children, int times)
{
    char go = 0;
    for (int i = 0; i < times; i++) {
        for (Child *child : children)
            ASSERT_TRUE(child->wire.get(&go));
        for (Child *child : children)
            child->wire.put(go);
    }
}

void run(const Job &job)
{
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;
    for (int p = 0; p < job.processes; p++) {
        children.push_back(
            std::make_unique<Child>([&, p](const Wire &wire) { return in_process(job, p, wire); }));
        all.push_back(children.back().get());
    }
    pass_id(all);
    lead(all, 2);
    for (auto &child : children)
        EXPECT_EQ(child->wait(), 0);
}

TEST(GpuCut, TwoProcessesWithoutPeerAccessByParameter) { run({2, 1, {{"P2P", "0"}}, nullptr}); }
TEST(GpuCut, ThreeProcessesOfTwoRanks) { run({3, 2, {{"P2P", "0"}}, nullptr}); }

/* Of one process each: what it sees of the others' devices is not what matters. */
TEST(GpuCut, CudaSaysThatThereIsNoPath)
{
    run({2, 1, {}, [] { fake::cut(0, 1), fake::cut(1, 0); }});
}

TEST(GpuCut, MemoryOfTheOtherDoesNotOpen)
{
    run({2, 1, {}, [] { fake::closed = true; }});
}

/* The others learn it from one process. */
TEST(GpuCut, OneProcessHasTwoThatDoNotReachEachOther)
{
    run({2, 2, {}, [] { fake::cut(2, 3), fake::closed = true; }});
}

/* Nothing stays of a process that is killed, and the other one fails and goes. */
TEST(GpuCut, AKilledProcess)
{
    const Job job = {2, 1, {{"P2P", "0"}}, nullptr};
    Child first([&](const Wire &wire) {
        fake::reset(8);
        set_params(job.params);
        std::vector<twill_comm_t> comms = join(share_id(wire, true), job, 0);
        wire.put('r');
        EXPECT_TRUE(fails_within(comms[0], 10000));
        memset(comms[0]->gpu->base.near[1], 1, comms[0]->gpu->base.layout.bytes);
        EXPECT_EQ(tw_comm_status(comms[0]), TWILL_ERR_PEER);
        (void)twill_comm_destroy(comms[0]);
        return 0;
    });
    Child second([&](const Wire &wire) {
        fake::reset(8);
        set_params(job.params);
        const std::vector<twill_comm_t> comms = join(share_id(wire, false), job, 1);
        wire.put('r');
        char never = 0;
        (void)wire.get(&never);
        return (int)comms.size();
    });
    char ready = 0;
    pass_id({&first, &second});
    ASSERT_TRUE(first.wire.get(&ready));
    ASSERT_TRUE(second.wire.get(&ready));
    second.kill(SIGKILL);
    EXPECT_EQ(second.wait(), 128 + SIGKILL);
    EXPECT_EQ(first.wait(), 0);
}

} // namespace
