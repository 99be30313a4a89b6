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

/* Rank 1 is the root; its blocks lie beyond 4 GiB, and the way back brings what was sent. */
void gather_and_scatter(twill_comm_t comm, int rank)
{
    const size_t counts[2] = {700, 900}, displs[2] = {5 * GIB + 3, 1};
    Range far(6 * GIB);
    ASSERT_TRUE(far.good());
    data::Bytes mine(counts[rank]), back(counts[rank]);
    data::fill(mine.data(), mine.size(), TWILL_UINT8, 8, rank);
    ASSERT_OK(twill_gather_v(mine.data(), counts[rank], far.at(), counts, displs, TWILL_UINT8, 1,
                             comm, nullptr),
              comm);
    for (int from = 0; from < 2 && rank == 1; from++) {
        data::Bytes want(counts[from]);
        data::fill(want.data(), want.size(), TWILL_UINT8, 8, from);
        EXPECT_EQ(memcmp(want.data(), far.at() + displs[from], want.size()), 0) << from;
    }
    ASSERT_OK(twill_scatter_v(far.at(), counts, displs, back.data(), counts[rank], TWILL_UINT8, 1,
                              comm, nullptr),
              comm);
    EXPECT_EQ(back, mine);
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
        gather_and_scatter(comm, rank);
        /* in place, both blocks swap places with the other rank's */
        const size_t same[2] = {100, 100};
        ASSERT_OK(twill_all_to_all_v(far.at(), same, displs, far.at(), same, displs, TWILL_UINT8,
                                     comm, nullptr),
                  comm);
    });
}

/* ---- counts beyond 2^31 -----------------------------------------------------------------------
 */

const size_t PERIOD = 2u << 20, TAIL = 2 * GIB, MANY = TAIL + 7, FAR = TAIL + 64, FEW = 5;

/* A block of MANY bytes, the first TAIL of which are PERIOD over and over, and one of FEW at FAR.
 * The last 7 of the many lie in memory of their own, and so do the few. What a call writes more
 * than once to the same byte is the same each time. */
class Buffer : public Range
{
  public:
    Buffer() : Range(TAIL + PERIOD), whole_(good() && repeat(TAIL)) {}
    bool whole() const { return whole_; }
    unsigned char *block(size_t count) const { return at() + (count == MANY ? 0 : FAR); }
    void fill(size_t count, uint64_t seed, int rank)
    {
        data::fill(block(count), count == MANY ? PERIOD : count, TWILL_UINT8, seed, rank);
        if (count == MANY)
            data::fill(at() + TAIL, MANY - TAIL, TWILL_UINT8, seed + 100, rank);
    }
    /* The block is what a rank gave, or, from: -1, the sum of both. */
    void expect(size_t count, uint64_t seed, int from) const
    {
        same(block(count), count == MANY ? PERIOD : count, seed, from);
        if (count == MANY)
            same(at() + TAIL, MANY - TAIL, seed + 100, from);
        EXPECT_EQ(at()[count == MANY ? MANY : FAR + FEW], 0) << "behind the block";
    }

  private:
    static void same(const unsigned char *got, size_t count, uint64_t seed, int from)
    {
        data::Bytes want(count);
        if (from < 0)
            data::fill_reduced(want.data(), count, TWILL_UINT8, TWILL_SUM, seed, 2);
        else
            data::fill(want.data(), count, TWILL_UINT8, seed, from);
        EXPECT_EQ(memcmp(got, want.data(), count), 0) << count << " bytes from " << from;
    }
    bool whole_;
};

/* One rank's side of a call on two ranks. */
struct Side {
    twill_comm_t comm;
    int rank;
    Buffer in, out;
};

using Call = std::function<void(Side &)>;

void many(const Call &call)
{
    two_ranks([&](twill_comm_t comm, int rank) {
        Side side = {comm, rank, {}, {}};
        ASSERT_TRUE(side.in.whole() && side.out.whole());
        call(side);
    });
}

/* MANY go from rank 0 to `to`, between the two FEW each way. */
void exchange(Side &s, int to)
{
    const size_t send[2] = {s.rank == 0 && to == 0 ? MANY : FEW,
                            s.rank == 0 && to == 1 ? MANY : FEW};
    const size_t recv[2] = {s.rank == to ? MANY : FEW, FEW};
    /* of two blocks of FEW the second lies at the start, where nothing else is */
    const size_t in_at[2] = {to == 0 ? 0 : FAR, to == 0 ? FAR : 0};
    const size_t out_at[2] = {0, FAR};
    for (int peer = 0; peer < 2; peer++)
        data::fill(s.in.at() + in_at[peer], send[peer] == MANY ? PERIOD : FEW, TWILL_UINT8,
                   (uint64_t)(2 * s.rank + peer), 0);
    data::fill(s.in.at() + TAIL, MANY - TAIL, TWILL_UINT8, 9, 0);
    ASSERT_OK(twill_all_to_all_v(s.in.at(), send, in_at, s.out.at(), recv, out_at, TWILL_UINT8,
                                 s.comm, nullptr),
              s.comm);
    for (int peer = 0; peer < 2; peer++) {
        data::Bytes want(recv[peer] == MANY ? PERIOD : FEW);
        data::fill(want.data(), want.size(), TWILL_UINT8, (uint64_t)(2 * peer + s.rank), 0);
        EXPECT_EQ(memcmp(s.out.at() + out_at[peer], want.data(), want.size()), 0) << peer;
    }
    data::Bytes last(MANY - TAIL);
    data::fill(last.data(), last.size(), TWILL_UINT8, 9, 0);
    EXPECT_EQ(memcmp(s.out.at() + TAIL, last.data(), last.size()) == 0, s.rank == to);
    EXPECT_EQ(s.out.at()[MANY], 0);
}

/* Rank r has counts[r]. */
const size_t COUNTS[2] = {FEW, MANY}, DISPLS[2] = {FAR, 0};

void broadcast(Side &s)
{
    s.in.fill(MANY, 1, 0);
    ASSERT_OK(twill_broadcast(s.in.at(), s.out.at(), MANY, TWILL_UINT8, 0, s.comm, nullptr),
              s.comm);
    s.out.expect(MANY, 1, 0);
}

void all_reduce(Side &s)
{
    s.in.fill(MANY, 2, s.rank);
    ASSERT_OK(
        twill_all_reduce(s.in.at(), s.out.at(), MANY, TWILL_UINT8, TWILL_SUM, s.comm, nullptr),
        s.comm);
    s.out.expect(MANY, 2, -1);
}

void reduce(Side &s)
{
    s.in.fill(MANY, 3, s.rank);
    ASSERT_OK(twill_reduce(s.in.at(), s.out.at(), MANY, TWILL_UINT8, TWILL_SUM, 1, s.comm, nullptr),
              s.comm);
    if (s.rank == 1)
        s.out.expect(MANY, 3, -1);
}

void send_recv(Side &s)
{
    s.in.fill(MANY, 4, 0);
    if (s.rank == 0)
        ASSERT_OK(twill_send(s.in.at(), MANY, TWILL_UINT8, 1, s.comm, nullptr), s.comm);
    else
        ASSERT_OK(twill_recv(s.out.at(), MANY, TWILL_UINT8, 0, s.comm, nullptr), s.comm);
    if (s.rank == 1)
        s.out.expect(MANY, 4, 0);
}

void all_gather_v(Side &s)
{
    s.in.fill(COUNTS[s.rank], 5, s.rank);
    ASSERT_OK(twill_all_gather_v(s.in.block(COUNTS[s.rank]), s.out.at(), COUNTS, DISPLS,
                                 TWILL_UINT8, s.comm, nullptr),
              s.comm);
    for (int from = 0; from < 2; from++)
        s.out.expect(COUNTS[from], 5, from);
}

void reduce_scatter_v(Side &s)
{
    for (const size_t count : COUNTS)
        s.in.fill(count, 6, s.rank);
    ASSERT_OK(twill_reduce_scatter_v(s.in.at(), s.out.block(COUNTS[s.rank]), COUNTS, DISPLS,
                                     TWILL_UINT8, TWILL_SUM, s.comm, nullptr),
              s.comm);
    s.out.expect(COUNTS[s.rank], 6, -1);
}

void gather_v(Side &s)
{
    s.in.fill(COUNTS[s.rank], 7, s.rank);
    ASSERT_OK(twill_gather_v(s.in.block(COUNTS[s.rank]), COUNTS[s.rank], s.out.at(), COUNTS, DISPLS,
                             TWILL_UINT8, 0, s.comm, nullptr),
              s.comm);
    for (int from = 0; from < 2 && s.rank == 0; from++)
        s.out.expect(COUNTS[from], 7, from);
}

void scatter_v(Side &s)
{
    for (const size_t count : COUNTS)
        s.in.fill(count, 8, s.rank);
    ASSERT_OK(twill_scatter_v(s.in.at(), COUNTS, DISPLS, s.out.block(COUNTS[s.rank]),
                              COUNTS[s.rank], TWILL_UINT8, 0, s.comm, nullptr),
              s.comm);
    s.out.expect(COUNTS[s.rank], 8, 0);
}

TEST(Huge, CountsBeyondTwoToThe31)
{
    many([](Side &s) { exchange(s, 0); }); /* a copy, in as many loops as messages would take */
    if (world::budget_s() <= 30)
        return;
    many([](Side &s) { exchange(s, 1); });
    for (const auto call : {broadcast, all_reduce, reduce, send_recv, all_gather_v,
                            reduce_scatter_v, gather_v, scatter_v})
        many(call);
}

} // namespace
