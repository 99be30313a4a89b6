/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls whose counts and displacements do not fit into 32 bits, on memory that is mostly not
 * there. Never knows: how they are cut. */
#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

#include "data.h"
#include "world.h"

namespace
{

const size_t GIB = (size_t)1 << 30;

/* A range of which only the pages that are touched exist. */
class Range
{
  public:
    explicit Range(size_t bytes)
        : bytes_(bytes), at_(static_cast<unsigned char *>(
                             mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)))
    {
    }
    Range(const Range &) = delete;
    ~Range() { munmap(at_, bytes_); }
    bool good() const { return at_ != MAP_FAILED; }
    unsigned char *at() const { return at_; }
    /* One file of 2 MiB over and over in the first part. */
    bool repeat(size_t bytes)
    {
        const size_t period = 2u << 20;
        const int fd = memfd_create("twill-test", MFD_CLOEXEC);
        bool good = fd >= 0 && ftruncate(fd, (off_t)period) == 0;
        for (size_t first = 0; good && first < bytes; first += period)
            good = mmap(at_ + first, period, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                        0) != MAP_FAILED;
        if (fd >= 0)
            close(fd);
        return good;
    }

  private:
    size_t bytes_;
    unsigned char *at_;
};

void two_ranks(const std::function<void(twill_comm_t, int)> &body)
{
    world::run_alone([&] {
        twill_comm_t comms[2];
        ASSERT_OK(twill_comm_init_all(comms, 2, nullptr, nullptr), nullptr);
        world::threads(2, [&](int rank) {
            body(comms[rank], rank);
            EXPECT_OK(twill_comm_destroy(comms[rank]), nullptr);
        });
    });
}

TEST(Huge, DisplacementsBeyondFourGib)
{
    two_ranks([](twill_comm_t comm, int rank) {
        const size_t counts[2] = {700, 900};
        const size_t displs[2] = {5 * GIB + 3, 1}; /* in bytes, then in 8-byte elements */
        const size_t wide[2] = {5 * GIB / 8, 7};
        Range far(6 * GIB);
        ASSERT_TRUE(far.good());
        data::Bytes mine(counts[rank]), both(2000);
        data::fill(mine.data(), counts[rank], TWILL_UINT8, 3, rank);
        ASSERT_OK(
            twill_all_gather_v(mine.data(), far.at(), counts, displs, TWILL_UINT8, comm, nullptr),
            comm);
        for (int from = 0; from < 2; from++) {
            data::Bytes want(counts[from]);
            data::fill(want.data(), counts[from], TWILL_UINT8, 3, from);
            EXPECT_EQ(memcmp(want.data(), far.at() + displs[from], want.size()), 0) << from;
        }
        for (int to = 0; to < 2; to++)
            data::fill(far.at() + wide[to] * 8, counts[to], TWILL_FLOAT64, 4 + (uint64_t)to, rank);
        data::Bytes sum(counts[rank] * 8), want(counts[rank] * 8);
        ASSERT_OK(twill_reduce_scatter_v(far.at(), sum.data(), counts, wide, TWILL_FLOAT64,
                                         TWILL_SUM, comm, nullptr),
                  comm);
        data::fill_reduced(want.data(), counts[rank], TWILL_FLOAT64, TWILL_SUM, 4 + (uint64_t)rank,
                           2);
        EXPECT_EQ(sum, want);
        /* in place, both blocks swap places with the other rank's */
        const size_t same[2] = {100, 100};
        ASSERT_OK(twill_all_to_all_v(far.at(), same, displs, far.at(), same, displs, TWILL_UINT8,
                                     comm, nullptr),
                  comm);
    });
}

/* 2^31 + 7 bytes go from rank 0 to `to`, between the two 5 each way. The last of the many lie in
 * memory of their own, and so do the 5. */
void send_many(int to)
{
    two_ranks([to](twill_comm_t comm, int rank) {
        const size_t many = 2 * GIB + 7, tail = 2 * GIB, period = 2u << 20, far = tail + 64;
        const size_t send[2] = {rank == 0 && to == 0 ? many : 5, rank == 0 && to == 1 ? many : 5};
        const size_t recv[2] = {rank == to ? many : 5, 5};
        const size_t in_at[2] = {to == 0 ? 0 : far, to == 0 ? far : 0};
        const size_t out_at[2] = {0, far};
        Range in(tail + period), out(tail + period);
        ASSERT_TRUE(in.good() && in.repeat(tail));
        ASSERT_TRUE(out.good() && out.repeat(tail));
        for (int peer = 0; peer < 2; peer++)
            data::fill(in.at() + in_at[peer], send[peer] < period ? send[peer] : period,
                       TWILL_UINT8, (uint64_t)(2 * rank + peer), 0);
        if (rank == 0)
            data::fill(in.at() + tail, 7, TWILL_UINT8, 9, 0);
        ASSERT_OK(twill_all_to_all_v(in.at(), send, in_at, out.at(), recv, out_at, TWILL_UINT8,
                                     comm, nullptr),
                  comm);
        for (int peer = 0; peer < 2; peer++) {
            data::Bytes want(recv[peer] < period ? recv[peer] : period);
            data::fill(want.data(), want.size(), TWILL_UINT8, (uint64_t)(2 * peer + rank), 0);
            EXPECT_EQ(memcmp(out.at() + out_at[peer], want.data(), want.size()), 0) << peer;
        }
        data::Bytes last(7);
        data::fill(last.data(), 7, TWILL_UINT8, 9, 0);
        EXPECT_EQ(memcmp(out.at() + tail, last.data(), 7) == 0, rank == to);
        EXPECT_EQ(out.at()[tail + 7], 0);
    });
}

TEST(Huge, CountsBeyondTwoToThe31)
{
    send_many(0); /* a copy, in as many loops as messages would take */
    if (world::budget_s() > 30)
        send_many(1);
}

} // namespace
