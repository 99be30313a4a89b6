/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: mappable host memory, copies by the kernel, the registry of transports.
 * Never knows: peers. */
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

extern "C" {
#include "base/host.h"
#include "base/status.h"
#include "base/time.h"
#include "transport/cma.h"
#include "transport/hostmem.h"
#include "transport/transport.h"
}

namespace
{

TEST(Hostmem, IsZeroedWritableAndMappable)
{
    void *ptr = nullptr;
    ASSERT_EQ(TWILL_OK, tw_hostmem_alloc(10000, &ptr));
    auto *bytes = static_cast<unsigned char *>(ptr);
    for (int i = 0; i < 10000; i++) {
        ASSERT_EQ(0, bytes[i]);
    }
    bytes[5000] = 77;
    tw_hostmem found;
    ASSERT_EQ(TWILL_OK, tw_hostmem_find(bytes + 4000, 2000, &found));
    EXPECT_EQ(4000u, found.offset);
    EXPECT_GE(found.segment, 10000u);
    EXPECT_EQ(F_SEAL_SHRINK, fcntl(found.fd, F_GET_SEALS) & F_SEAL_SHRINK);
    void *again = mmap(nullptr, found.segment, PROT_READ, MAP_SHARED, found.fd, 0);
    ASSERT_NE(MAP_FAILED, again);
    close(found.fd);
    EXPECT_EQ(TWILL_OK, tw_hostmem_free(ptr));
    EXPECT_EQ(77, static_cast<unsigned char *>(again)[5000]) << "the other mapping lives on";
    munmap(again, found.segment);
}

TEST(Hostmem, FindsWholeRangesOnly)
{
    void *ptr = nullptr;
    ASSERT_EQ(TWILL_OK, tw_hostmem_alloc(4096, &ptr));
    auto *bytes = static_cast<unsigned char *>(ptr);
    tw_hostmem found;
    int here;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hostmem_find(bytes + 4000, 97, &found));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hostmem_find(bytes - 1, 1, &found));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hostmem_find(bytes, SIZE_MAX, &found));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hostmem_find(&here, 4, &found));
    ASSERT_EQ(TWILL_OK, tw_hostmem_find(bytes, 4096, &found));
    close(found.fd);
    EXPECT_EQ(TWILL_OK, tw_hostmem_free(ptr));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hostmem_find(bytes, 1, &found));
}

TEST(Hostmem, RefusesWhatItDoesNotOwn)
{
    void *ptr = nullptr;
    int here;
    EXPECT_EQ(TWILL_OK, tw_hostmem_free(nullptr));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hostmem_free(&here));
    EXPECT_EQ(TWILL_ERR_NOMEM, tw_hostmem_alloc(SIZE_MAX, &ptr));
    EXPECT_EQ(nullptr, ptr);
    ASSERT_EQ(TWILL_OK, tw_hostmem_alloc(0, &ptr));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hostmem_free(static_cast<char *>(ptr) + 1));
    EXPECT_EQ(TWILL_OK, tw_hostmem_free(ptr));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hostmem_free(ptr));
}

TEST(Cma, ErrorsAreTold)
{
    if (!tw_cma_here()) {
        const unsigned char none[4] = {};
        EXPECT_FALSE(tw_cma_probe(getpid(), (uint64_t)(uintptr_t)none, none, sizeof(none)));
        return;
    }
    unsigned char from[100], to[100] = {};
    memset(from, 3, sizeof(from));
    EXPECT_EQ(TWILL_OK, tw_cma_read(getpid(), to, (uint64_t)(uintptr_t)from, sizeof(from)));
    EXPECT_EQ(0, memcmp(from, to, sizeof(to)));
    memset(from, 4, sizeof(from));
    EXPECT_EQ(TWILL_OK, tw_cma_write(getpid(), from, (uint64_t)(uintptr_t)to, sizeof(from)));
    EXPECT_EQ(0, memcmp(from, to, sizeof(to)));
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_cma_read(getpid(), to, 16, sizeof(to)));
    pid_t gone = fork();
    if (gone == 0) {
        _exit(0);
    }
    ASSERT_EQ(gone, waitpid(gone, nullptr, 0));
    EXPECT_EQ(TWILL_ERR_PEER, tw_cma_read(gone, to, (uint64_t)(uintptr_t)from, sizeof(to)));
}

/* A range that ends in unmapped memory is an error, not a short success. */
TEST(Cma, ShortTransfersAreErrors)
{
    if (!tw_cma_here()) {
        return;
    }
    auto page = (size_t)sysconf(_SC_PAGESIZE);
    auto *two = static_cast<unsigned char *>(
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(two + page, page);
    std::vector<unsigned char> to(2 * page);
    EXPECT_EQ(TWILL_ERR_SYSTEM,
              tw_cma_read(getpid(), to.data(), (uint64_t)(uintptr_t)two, 2 * page));
    munmap(two, page);
}

TEST(Cma, ProbeComparesWhatItReads)
{
    const unsigned char pattern[32] = {1, 2, 3}, other[32] = {1, 2, 4};
    EXPECT_FALSE(tw_cma_probe(getpid(), (uint64_t)(uintptr_t)other, pattern, 32));
    EXPECT_FALSE(tw_cma_probe(0, (uint64_t)(uintptr_t)pattern, pattern, 32));
    EXPECT_FALSE(tw_cma_probe(getpid(), 8, pattern, 32));
    EXPECT_EQ(tw_cma_here(), tw_cma_probe(getpid(), (uint64_t)(uintptr_t)pattern, pattern, 32));
}

TEST(Cma, MeasureIsConsistent)
{
    const tw_cma_measure *measure = tw_cma_measured();
    EXPECT_EQ(measure, tw_cma_measured());
    EXPECT_EQ(tw_cma_here(), measure->works);
    size_t faster = SIZE_MAX;
    for (int i = TW_CMA_SIZES - 1; i >= 0 && measure->works; i--) {
        EXPECT_GT(measure->copy_ns[i], 0u);
        EXPECT_GT(measure->cma_ns[i], 0u);
        if (measure->cma_ns[i] >= measure->copy_ns[i]) {
            break;
        }
        faster = measure->bytes[i];
    }
    EXPECT_EQ(faster, measure->faster_from);
}

TEST(Transports, AreFoundByName)
{
    ASSERT_NE(nullptr, tw_transport_find("self"));
    ASSERT_NE(nullptr, tw_transport_find("shm"));
    EXPECT_EQ(nullptr, tw_transport_find("carrier_pigeon"));
    size_t count = 0;
    while (tw_transport_at(count) != nullptr) {
        EXPECT_EQ(tw_transport_at(count), tw_transport_find(tw_transport_at(count)->net->name));
        count++;
    }
    EXPECT_EQ(2u, count);
}

} // namespace
