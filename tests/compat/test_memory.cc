/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory that is given, registered and shared. Never knows: who reaches it. */
#include <cstring>

#include "ranks.h"

using ranks::Rank;

static void expect_sum(ncclComm_t comm, int *memory, int size)
{
    memory[0] = 1;
    EXPECT_NCCL(ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, comm, nullptr));
    EXPECT_EQ(memory[0], size);
}

TEST(NcclMemory, Alloc)
{
    ranks::alone([] {
        void *memory = nullptr;
        EXPECT_NCCL(ncclMemAlloc(&memory, 1000));
        ASSERT_NE(memory, nullptr);
        memset(memory, 1, 1000);
        EXPECT_EQ(ncclMemAlloc(nullptr, 10), ncclInvalidArgument);
        EXPECT_NCCL(ncclMemFree(memory));
        EXPECT_EQ(ncclMemFree(memory), ncclInvalidArgument) << "twice";
        EXPECT_NCCL(ncclMemFree(nullptr));
    });
}

/* A rank registers what others do not, and nobody waits. */
TEST(NcclMemory, RegistrationsAreLocal)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        std::vector<int> memory(1 << 20, 1);
        void *handle = nullptr, *other = nullptr;
        if (r.rank == 0) {
            EXPECT_NCCL(ncclCommRegister(comm, memory.data(), memory.size() * 4, &handle));
            EXPECT_NE(handle, nullptr);
            EXPECT_EQ(ncclCommRegister(comm, nullptr, 5, &other), ncclInvalidArgument);
            EXPECT_EQ(ncclCommRegister(comm, &comm, 0, &other), ncclInvalidArgument);
            EXPECT_EQ(ncclCommRegister(comm, &comm, 4, nullptr), ncclInvalidArgument);
        }
        EXPECT_NCCL(ncclAllReduce(memory.data(), memory.data(), memory.size(), ncclInt, ncclSum,
                                  comm, nullptr));
        EXPECT_EQ(memory.back(), 2);
        if (r.rank == 0) {
            EXPECT_NCCL(ncclCommDeregister(comm, handle));
            EXPECT_EQ(ncclCommDeregister(comm, handle), ncclInvalidArgument) << "twice";
            EXPECT_NCCL(ncclCommRegister(comm, memory.data(), 4, &other)); /* ends with comm */
        }
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

TEST(NcclMemory, Windows)
{
    for (const int flags : {NCCL_WIN_DEFAULT, NCCL_WIN_COLL_SYMMETRIC}) {
        ranks::processes(2, [flags](const Rank &r) {
            ncclComm_t comm = r.init();
            void *memory = nullptr;
            ncclWindow_t window = nullptr, left = nullptr;
            EXPECT_NCCL(ncclMemAlloc(&memory, 8192));
            EXPECT_NCCL(ncclCommWindowRegister(comm, memory, 4096, &window, flags));
            EXPECT_NE(window, nullptr);
            expect_sum(comm, static_cast<int *>(memory), 2);
            EXPECT_EQ(ncclCommWindowDeregister(comm, (ncclWindow_t)memory), ncclInvalidArgument);
            EXPECT_NCCL(ncclCommWindowDeregister(comm, window));
            EXPECT_EQ(ncclCommWindowDeregister(comm, window), ncclInvalidArgument) << "twice";
            EXPECT_NCCL(ncclCommWindowRegister(comm, memory, 4096, &left, flags));
            EXPECT_NCCL(ncclCommDestroy(comm)); /* it ends with it */
            EXPECT_NCCL(ncclMemFree(memory));
        });
    }
}

/* Such memory cannot be shared: there is no window, and calls go on as without. */
TEST(NcclMemory, NoWindowOfMemoryThatIsNotShared)
{
    ranks::processes(2, [](const Rank &r) {
        ncclComm_t comm = r.init();
        std::vector<int> memory(1024);
        ncclWindow_t window = (ncclWindow_t)&comm;
        EXPECT_NCCL(ncclCommWindowRegister(comm, memory.data(), 4096, &window, 0));
        EXPECT_EQ(window, nullptr);
        EXPECT_NCCL(ncclCommWindowDeregister(comm, window));
        expect_sum(comm, memory.data(), 2);
        EXPECT_NCCL(ncclCommDestroy(comm));
    });
}

/* One thread registers for all ranks: each waits for the others. */
TEST(NcclMemory, WindowsOfManyRanksInAGroup)
{
    ranks::alone([] {
        const int size = 3;
        ncclComm_t comms[size] = {};
        ncclWindow_t windows[size] = {}, more[size] = {};
        void *memory[size] = {};
        EXPECT_NCCL(ncclCommInitAll(comms, size, nullptr));
        EXPECT_NCCL(ncclGroupStart());
        for (int i = 0; i < size; i++) {
            EXPECT_NCCL(ncclMemAlloc(&memory[i], 8192));
            EXPECT_NCCL(ncclCommWindowRegister(comms[i], memory[i], 4096, &windows[i],
                                               NCCL_WIN_COLL_SYMMETRIC));
            EXPECT_NCCL(ncclCommWindowRegister(comms[i], memory[i], 8192, &more[i], 0));
        }
        EXPECT_EQ(windows[0], nullptr) << "filled at the end";
        EXPECT_NCCL(ncclGroupEnd());
        EXPECT_NCCL(ncclGroupStart());
        for (int i = 0; i < size; i++) {
            EXPECT_NE(windows[i], nullptr);
            EXPECT_NE(more[i], nullptr);
            EXPECT_NCCL(ncclCommWindowDeregister(comms[i], windows[i]));
            EXPECT_NCCL(ncclCommWindowDeregister(comms[i], more[i]));
        }
        EXPECT_NCCL(ncclGroupEnd());
        for (int i = 0; i < size; i++) {
            EXPECT_NCCL(ncclCommDestroy(comms[i]));
            EXPECT_NCCL(ncclMemFree(memory[i]));
        }
    });
}
