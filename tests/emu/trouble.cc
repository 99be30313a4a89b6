/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls that do not match and waits that are given up, by whichever way data goes.
 * Never knows: what is said of them (gpu/mismatch.cc). */
#include "emu/small.h"

namespace emu
{

using namespace gpu;

namespace
{

const size_t FEW = 10, MANY = 2000; /* lines, and what is more than they hold */

enum twill_status state_of(twill_comm_t comm)
{
    enum twill_status status = TWILL_OK;
    TWILL(twill_comm_async_error(comm, &status), comm);
    return status;
}

/* Two ranks, and a buffer for each. */
struct Pair {
    explicit Pair(Way way)
        : small([way] {
              Shape shape;
              shape.way = way;
              return shape;
          }())
    {
        for (int r = 0; r < 2; r++)
            at[r] = rank(r).arena.take_device((size_t)64 << 10);
    }
    Local &rank(int r) { return small.world().rank(r); }
    cudaStream_t stream(int r) { return *rank(r).own[0]; }
    void expect_failed(enum twill_status status)
    {
        for (int r = 0; r < 2; r++) {
            EXPECT_TRUE(within(10, [&] { return state_of(rank(r).comm) < 0; })) << "rank " << r;
            EXPECT_EQ(state_of(rank(r).comm), status) << twill_last_error(rank(r).comm);
            EXPECT_TRUE(wait_within(rank(r).device, stream(r), 10))
                << "the stream of rank " << r << " does not go on";
        }
    }

    Small small;
    char *at[2];
};

void sum(Pair *pair, int r, size_t count)
{
    const enum twill_status status =
        twill_all_reduce(pair->at[r], pair->at[r], count, TWILL_INT32, TWILL_SUM,
                         pair->rank(r).comm, pair->stream(r));
    EXPECT_TRUE(status == TWILL_OK || status == TWILL_ERR_MISMATCH) << twill_status_string(status);
}

/* Of the other rank's blocks one thinks otherwise. */
void exchange(Pair *pair, int r, size_t gives, size_t takes)
{
    const size_t in[] = {r == 0 ? 7 : gives, r == 0 ? gives : 7};
    const size_t out[] = {r == 0 ? 7 : takes, r == 0 ? takes : 7};
    const enum twill_status status =
        twill_all_to_all_v(pair->at[r], in, nullptr, pair->at[r] + (32 << 10), out, nullptr,
                           TWILL_INT32, pair->rank(r).comm, pair->stream(r));
    EXPECT_TRUE(status == TWILL_OK || status == TWILL_ERR_MISMATCH) << twill_status_string(status);
}

} // namespace

TEST(Kernels, MismatchIsFound)
{
    static const size_t counts[][2] = {{FEW, FEW + 1}, {MANY, MANY + 1}, {FEW, MANY},
                                       {MANY, FEW},    {0, FEW},         {MANY, 0}};

    for (int way = 0; way < WAYS; way++)
        for (const auto &count : counts) {
            const std::string what =
                format("way %d, %zu and %zu elements", way, count[0], count[1]);
            SCOPED_TRACE(what);
            step(what);
            Pair sums((Way)way), blocks((Way)way);

            on_threads(2, [&](int r) { sum(&sums, r, count[r]); });
            sums.expect_failed(TWILL_ERR_MISMATCH);
            on_threads(2, [&](int r) { exchange(&blocks, r, count[0], count[r]); });
            blocks.expect_failed(TWILL_ERR_MISMATCH);
        }
}

TEST(Kernels, AbortEndsWaits)
{
    for (int way = 0; way < WAYS; way++)
        for (size_t count : {FEW, MANY}) {
            Pair pair((Way)way);

            sum(&pair, 0, count); /* nobody else calls */
            EXPECT_FALSE(wait_within(pair.rank(0).device, pair.stream(0), 0.05));
            TWILL(twill_comm_abort(pair.rank(0).comm), pair.rank(0).comm);
            pair.expect_failed(TWILL_ERR_ABORTED);
        }
}

} // namespace emu
