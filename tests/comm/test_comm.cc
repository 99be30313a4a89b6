/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>

#include <memory>

#include "ranks.h"

/* ---- init of every shape ---- */

class CommSize : public ::testing::TestWithParam<int>
{
};
INSTANTIATE_TEST_SUITE_P(Sizes, CommSize, ::testing::Values(1, 2, 3, 7, 16));

TEST_P(CommSize, RanksAsThreads)
{
    int size = GetParam();
    Count before = count_now();
    {
        twill_unique_id id = new_id();
        std::vector<uint64_t> hashes(size);
        on_threads(size, [&](int rank) {
            Comm comm(args_of(rank, size, id));
            ASSERT_EQ(TWILL_OK, comm.connect()) << comm.failure();
            EXPECT_EQ(size, comm->ranks_here);
            EXPECT_EQ(size, comm->ranks_host);
            EXPECT_EQ(TW_COMM_READY, comm->state);
            hashes[rank] = comm->id_hash;
            for (int p = 0; p < size; p++) {
                if (p != rank) {
                    EXPECT_STREQ("self", tw_chan_transport(comm->chan, p));
                }
            }
            EXPECT_EQ(TWILL_OK, comm.finalize()) << comm.failure();
        });
        for (int rank = 1; rank < size; rank++)
            EXPECT_EQ(hashes[0], hashes[rank]);
    }
    EXPECT_TRUE(count_returns(before));
}

TEST_P(CommSize, RanksAsProcesses)
{
    int size = GetParam();
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;
    for (int rank = 0; rank < size; rank++) {
        children.push_back(std::make_unique<Child>([=](const Wire &wire) {
            Count before = count_now();
            twill_unique_id id = share_id(wire, rank == 0);
            Comm comm(args_of(rank, size, id));
            if (comm.connect() != TWILL_OK)
                return 1;
            EXPECT_EQ(1, comm->ranks_here);
            EXPECT_EQ(size, comm->ranks_host);
            for (int p = 0; p < size; p++) {
                if (p != rank) {
                    EXPECT_STREQ("shm", tw_chan_transport(comm->chan, p));
                }
            }
            if (comm.finalize() != TWILL_OK)
                return 2;
            comm.free();
            return count_returns(before) ? 0 : 3;
        }));
        all.push_back(children.back().get());
    }
    pass_id(all);
    for (auto &child : children)
        EXPECT_EQ(0, child->wait());
}
