/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory for peers and its registration, seen through the C API. Never knows: how it is
 * mapped. */
#include <cstdint>
#include <cstring>

#include "world.h"

namespace
{

TEST(Mem, AllocAndFree)
{
    world::run_alone([] {
        void *p = nullptr;
        EXPECT_EQ(twill_mem_alloc(nullptr, 1, TWILL_DEVICE_HOST), TWILL_ERR_INVALID);
        EXPECT_OK(twill_mem_alloc(&p, 0, TWILL_DEVICE_HOST), nullptr);
        EXPECT_EQ(p, nullptr);
        EXPECT_OK(twill_mem_free(nullptr), nullptr);
        ASSERT_OK(twill_mem_alloc(&p, 100001, TWILL_DEVICE_HOST), nullptr);
        EXPECT_EQ((uintptr_t)p % 4096, 0u);
        for (size_t i = 0; i < 100001; i++)
            ASSERT_EQ(static_cast<char *>(p)[i], 0);
        memset(p, 7, 100001);
        EXPECT_EQ(twill_mem_free(static_cast<char *>(p) + 1), TWILL_ERR_INVALID);
        EXPECT_OK(twill_mem_free(p), nullptr);
        EXPECT_EQ(twill_mem_free(p), TWILL_ERR_INVALID);
        int local;
        EXPECT_EQ(twill_mem_free(&local), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_mem_alloc(&p, (size_t)1 << 62, TWILL_DEVICE_HOST) < 0, true);
    });
}

TEST(Mem, AllocAndFreeOnADevice)
{
    world::run_alone([] {
        void *p = nullptr;
        const enum twill_status status = twill_mem_alloc(&p, 100001, 0);
        if (status == TWILL_ERR_UNSUPPORTED) { /* the sentence says why there is none */
            EXPECT_NE(world::text(nullptr).find("device 0: "), std::string::npos);
            EXPECT_NE(world::text(nullptr).find("CUDA"), std::string::npos) << world::text(nullptr);
            EXPECT_EQ(p, nullptr);
            EXPECT_EQ(twill_mem_alloc(&p, 0, 0), TWILL_ERR_UNSUPPORTED);
            EXPECT_EQ(twill_mem_alloc(&p, 1, -2), TWILL_ERR_UNSUPPORTED);
            return;
        }
        ASSERT_OK(status, nullptr);
        ASSERT_NE(p, nullptr);
        EXPECT_EQ((uintptr_t)p % 256, 0u);
        EXPECT_EQ(twill_mem_free(static_cast<char *>(p) + 256), TWILL_ERR_INVALID);
        EXPECT_OK(twill_mem_free(p), nullptr);
        EXPECT_EQ(twill_mem_free(p), TWILL_ERR_INVALID);
        EXPECT_OK(twill_mem_alloc(&p, 0, 0), nullptr);
        EXPECT_EQ(p, nullptr);
        EXPECT_EQ(twill_mem_alloc(&p, (size_t)1 << 50, 0), TWILL_ERR_NOMEM);
        EXPECT_EQ(p, nullptr);
        for (const int none : {-2, 1 << 20}) {
            EXPECT_EQ(twill_mem_alloc(&p, 1, none), TWILL_ERR_INVALID);
            EXPECT_NE(world::text(nullptr).find("no device " + std::to_string(none)),
                      std::string::npos)
                << world::text(nullptr);
        }
    });
}

TEST(Mem, RegisterWithEveryRank)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        void *p = nullptr;
        const size_t bytes = 10000 + 5000 * (size_t)rank.rank;
        ASSERT_OK(twill_mem_alloc(&p, bytes, TWILL_DEVICE_HOST), nullptr);
        twill_reg_t whole = nullptr, part = nullptr;
        EXPECT_EQ(twill_register(comm, nullptr, bytes, &whole), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_register(comm, p, 0, &whole), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_register(comm, p, bytes, nullptr), TWILL_ERR_INVALID);
        ASSERT_OK(twill_register(comm, p, bytes, &whole), comm);
        ASSERT_OK(twill_register(comm, static_cast<char *>(p) + 100, 1000, &part), comm);
        EXPECT_NE(whole, part);
        ASSERT_OK(twill_group_start(), nullptr);
        twill_reg_t none = nullptr;
        EXPECT_EQ(twill_register(comm, p, bytes, &none), TWILL_ERR_USAGE);
        EXPECT_EQ(twill_deregister(comm, whole), TWILL_ERR_USAGE);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_OK(twill_deregister(comm, whole), comm);
        EXPECT_EQ(twill_deregister(comm, whole), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_deregister(comm, nullptr), TWILL_ERR_INVALID);
        EXPECT_OK(twill_comm_destroy(comm), nullptr); /* ends the other one */
        EXPECT_OK(twill_mem_free(p), nullptr);
    });
}

TEST(Mem, MemoryThatCannotBeMappedIsNamedOnEveryRank)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        void *p = nullptr;
        ASSERT_OK(twill_mem_alloc(&p, 4096, TWILL_DEVICE_HOST), nullptr);
        char own[64];
        twill_reg_t reg = nullptr;
        EXPECT_EQ(twill_register(comm, rank.rank == 1 ? own : p, 64, &reg), TWILL_ERR_UNSUPPORTED);
        EXPECT_EQ(reg, nullptr);
        EXPECT_NE(world::text(comm).find("rank 1 "), std::string::npos) << world::text(comm);
        EXPECT_NE(world::text(comm).find("CMA"), std::string::npos) << world::text(comm);
        EXPECT_OK(twill_barrier(comm, nullptr), comm); /* as healthy as before */
        EXPECT_EQ(twill_register(comm, p, 64u << 20, &reg), TWILL_ERR_UNSUPPORTED);
        EXPECT_NE(world::text(comm).find("0, 1, 2"), std::string::npos) << world::text(comm);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
        EXPECT_OK(twill_mem_free(p), nullptr);
    });
}

/* On the host nothing else comes of it, but what is promised is looked at. */
TEST(Mem, RegisterSymmetrically)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        void *p = nullptr;
        ASSERT_OK(twill_mem_alloc(&p, 4096, TWILL_DEVICE_HOST), nullptr);
        twill_reg_t reg = nullptr;
        EXPECT_EQ(twill_register_symmetric(comm, nullptr, 1, &reg), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_register_symmetric(comm, p, 0, &reg), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_register_symmetric(comm, p, 1, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_register_symmetric(comm, p, rank.rank == 2 ? 65 : 64, &reg),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(reg, nullptr);
        EXPECT_NE(world::text(comm).find("of rank 0 is 64 bytes, of rank 2 65"), std::string::npos)
            << world::text(comm);
        EXPECT_EQ(rank.rank == 1 ? twill_register(comm, p, 64, &reg)
                                 : twill_register_symmetric(comm, p, 64, &reg),
                  TWILL_ERR_INVALID);
        ASSERT_OK(twill_register_symmetric(comm, p, 4096, &reg), comm);
        EXPECT_OK(twill_deregister(comm, reg), comm);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
        EXPECT_OK(twill_mem_free(p), nullptr);
    });
}

TEST(Mem, DeregisterOnAFailedCommunicatorEndsThisSide)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        void *p = nullptr;
        twill_reg_t reg = nullptr;
        ASSERT_OK(twill_mem_alloc(&p, 4096, TWILL_DEVICE_HOST), nullptr);
        ASSERT_OK(twill_register(comm, p, 4096, &reg), comm);
        rank.meet(0);
        ASSERT_OK(twill_comm_abort(comm), comm);
        EXPECT_EQ(twill_deregister(comm, reg), TWILL_ERR_ABORTED);
        EXPECT_EQ(twill_deregister(comm, reg), TWILL_ERR_INVALID);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
        EXPECT_OK(twill_mem_free(p), nullptr);
    });
}

} // namespace
