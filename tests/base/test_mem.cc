/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/mem.c. Never knows: what the memory holds. */
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {
#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
}
#include "capture.h"
#include "fault.h"

namespace
{

TEST(Overlap, IsASharedByte)
{
    EXPECT_TRUE(tw_overlap(100, 10, 100, 10));
    EXPECT_TRUE(tw_overlap(100, 10, 109, 1));
    EXPECT_TRUE(tw_overlap(109, 1, 100, 10));
    EXPECT_TRUE(tw_overlap(100, 100, 150, 2));
    EXPECT_FALSE(tw_overlap(100, 10, 110, 5));
    EXPECT_FALSE(tw_overlap(110, 5, 100, 10));
    EXPECT_FALSE(tw_overlap(100, 10, 105, 0));
    EXPECT_FALSE(tw_overlap(105, 0, 100, 10));
}

class Mem : public testing::Test
{
  protected:
    void SetUp() override { tw_log_configure("none", nullptr); }
    void TearDown() override { tw_log_configure(nullptr, nullptr); }
};

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

/* A memory file as a peer might send it: bytes long, with seals. */
int peer_file(size_t bytes, int seals)
{
    int fd = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_LE(0, fd);
    EXPECT_EQ(0, ftruncate(fd, static_cast<off_t>(bytes)));
    EXPECT_EQ(0, fcntl(fd, F_ADD_SEALS, seals));
    return fd;
}

TEST_F(Mem, AllocIsZeroedAlignedAndNeverEmpty)
{
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{5000}}) {
        auto *at = static_cast<unsigned char *>(tw_alloc(bytes));
        ASSERT_NE(nullptr, at);
        EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(at) % TW_LINE_BYTES);
        for (size_t i = 0; i < bytes; i++)
            ASSERT_EQ(0, at[i]);
        std::memset(at, 0xff, bytes == 0 ? 1 : bytes);
        std::free(at);
    }
}

TEST_F(Mem, AllocSaysWhatItCouldNotHave)
{
    for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2 + 1})
        EXPECT_EQ(nullptr, tw_alloc(bytes)) << bytes;
    Fault fault(FAULT_ALLOC, ENOMEM);
    EXPECT_EQ(nullptr, tw_alloc(100));
    EXPECT_TRUE(fault.fired());
    EXPECT_STREQ("no memory for 100 bytes", tw_fail_text());
}

TEST_F(Mem, SegmentIsWholePagesSealedAndShared)
{
    struct tw_shm mine;
    struct tw_shm theirs;
    ASSERT_EQ(TWILL_OK, tw_shm_create(&mine, "twill-test", 5000));
    EXPECT_EQ(0u, mine.bytes % static_cast<size_t>(sysconf(_SC_PAGESIZE)));
    EXPECT_LE(5000u, mine.bytes);
    EXPECT_EQ(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, fcntl(mine.fd, F_GET_SEALS));
    EXPECT_EQ(FD_CLOEXEC, fcntl(mine.fd, F_GETFD));
    EXPECT_NE(0, ftruncate(mine.fd, 0));
    ASSERT_EQ(TWILL_OK, tw_shm_map(&theirs, dup(mine.fd), 5000));
    EXPECT_EQ(mine.bytes, theirs.bytes);
    std::strcpy(static_cast<char *>(mine.base) + 4000, "seen");
    EXPECT_STREQ("seen", static_cast<char *>(theirs.base) + 4000);
    EXPECT_NE(std::string::npos, text_of("/proc/self/maps").find("twill-test"));
    tw_shm_close(&mine);
    EXPECT_STREQ("seen", static_cast<char *>(theirs.base) + 4000);
    tw_shm_close(&theirs);
    EXPECT_EQ(-1, theirs.fd);
    EXPECT_EQ(nullptr, theirs.base);
    tw_shm_close(&theirs);
}

TEST_F(Mem, SizesThatCannotBeAreRefused)
{
    struct tw_shm shm;
    for (size_t bytes : {size_t{0}, SIZE_MAX, SIZE_MAX / 2})
        EXPECT_EQ(TWILL_ERR_INVALID, tw_shm_create(&shm, "x", bytes)) << bytes;
    EXPECT_EQ(-1, shm.fd);
    /* legal to ask for, impossible to have */
    enum twill_status status = tw_shm_create(&shm, "x", SIZE_MAX / 2 - (1 << 20));
    EXPECT_TRUE(status == TWILL_ERR_NOMEM || status == TWILL_ERR_SYSTEM) << status;
    EXPECT_EQ(nullptr, shm.base);
}

TEST_F(Mem, AFailingKernelLeavesNothingBehind)
{
    struct tw_shm shm;
    int next = dup(0);
    ASSERT_LE(0, next);
    close(next);
    const struct {
        enum fault_call call;
        int error;
        enum twill_status status;
    } rows[] = {{FAULT_MEMFD, EMFILE, TWILL_ERR_SYSTEM},
                {FAULT_FTRUNCATE, ENOSPC, TWILL_ERR_SYSTEM},
                {FAULT_FTRUNCATE, EFBIG, TWILL_ERR_NOMEM},
                {FAULT_MMAP, EPERM, TWILL_ERR_SYSTEM},
                {FAULT_MMAP, ENOMEM, TWILL_ERR_NOMEM}};
    for (const auto &row : rows) {
        Fault fault(row.call, row.error);
        EXPECT_EQ(row.status, tw_shm_create(&shm, "x", 100));
        EXPECT_TRUE(fault.fired());
        EXPECT_NE(nullptr, std::strstr(tw_fail_text(), std::strerror(row.error)));
        EXPECT_EQ(-1, shm.fd);
        EXPECT_EQ(nullptr, shm.base);
        EXPECT_FALSE(is_open(next)) << "a descriptor leaked";
    }
    int fd = peer_file(4096, F_SEAL_SHRINK);
    Fault fault(FAULT_MMAP, ENOMEM);
    EXPECT_EQ(TWILL_ERR_NOMEM, tw_shm_map(&shm, fd, 100));
    EXPECT_FALSE(is_open(fd));
}

TEST_F(Mem, UnsealedSegmentsAreRefusedAndClosed)
{
    struct tw_shm shm;
    for (int seals : {0, F_SEAL_GROW, F_SEAL_GROW | F_SEAL_SEAL}) {
        int fd = peer_file(8192, seals);
        EXPECT_EQ(TWILL_ERR_PEER, tw_shm_map(&shm, fd, 8192)) << seals;
        EXPECT_STREQ("peer's shared segment is not sealed against shrinking", tw_fail_text());
        EXPECT_FALSE(is_open(fd));
        EXPECT_EQ(nullptr, shm.base);
    }
}

TEST_F(Mem, ShortAndEmptySegmentsAreRefused)
{
    struct tw_shm shm;
    int fd = peer_file(8191, F_SEAL_SHRINK);
    EXPECT_EQ(TWILL_ERR_PEER, tw_shm_map(&shm, fd, 8192));
    EXPECT_STREQ("peer's shared segment has 8191 bytes, needed are 8192", tw_fail_text());
    EXPECT_FALSE(is_open(fd));
    EXPECT_EQ(TWILL_ERR_PEER, tw_shm_map(&shm, peer_file(0, F_SEAL_SHRINK), 0));
    EXPECT_EQ(TWILL_ERR_PEER, tw_shm_map(&shm, peer_file(4096, F_SEAL_SHRINK), SIZE_MAX));
    ASSERT_EQ(TWILL_OK, tw_shm_map(&shm, peer_file(8192, F_SEAL_SHRINK), 8192));
    tw_shm_close(&shm);
}

TEST_F(Mem, WhatIsNoMemoryFileIsRefused)
{
    struct tw_shm shm;
    Folder folder;
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    close(ends[1]);
    int file = open(folder.path("f").c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_LE(0, file);
    ASSERT_EQ(0, ftruncate(file, 8192));
    for (int fd : {ends[0], file, open("/dev/zero", O_RDWR), open("/", O_RDONLY)}) {
        EXPECT_EQ(TWILL_ERR_PEER, tw_shm_map(&shm, fd, 100));
        EXPECT_FALSE(is_open(fd));
    }
    EXPECT_EQ(TWILL_ERR_INVALID, tw_shm_map(&shm, -1, 100));
}

TEST_F(Mem, SegmentsThatCannotBeWrittenAreRefused)
{
    struct tw_shm shm;
    int fd = peer_file(8192, F_SEAL_SHRINK | F_SEAL_WRITE);
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_shm_map(&shm, fd, 100));
    EXPECT_FALSE(is_open(fd));
}

TEST_F(Mem, ShmRespectsTheLimitOnFiles)
{
    struct rlimit before;
    struct tw_shm shm;
    ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &before));
    struct rlimit tight = {1 << 16, before.rlim_max};
    ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &tight));
    EXPECT_EQ(TWILL_ERR_NOMEM, tw_shm_create(&shm, "t", (1 << 16) + 1)) << "and not SIGXFSZ";
    EXPECT_NE(nullptr, strstr(tw_fail_text(), "RLIMIT_FSIZE")) << tw_fail_text();
    EXPECT_EQ(TWILL_OK, tw_shm_create(&shm, "t", 1 << 16));
    tw_shm_close(&shm);
    ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &before));
}

} // namespace
