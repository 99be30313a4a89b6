/* SPDX-License-Identifier: Apache-2.0 */
#include <memory>

#include "bootstrap.h"

/* Keeps the process's state. */
class Keep
{
  public:
    Keep() { EXPECT_EQ(TWILL_OK, tw_proc_get(&proc_)); }
    ~Keep() { tw_proc_put(); }

  private:
    struct tw_proc *proc_ = nullptr;
};

/* ---- mixes ---- */

TEST_F(Bootstrap, ThreadsInProcesses)
{
    const int threads[] = {1, 3, 2};
    const int size = 6;
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;
    int first = 0;
    for (int count : threads) {
        children.push_back(std::make_unique<Child>([=](const Wire &wire) {
            Count before = count_now();
            twill_unique_id id = share_id(wire, first == 0);
            on_threads(count, [&](int i) {
                int rank = first + i;
                Comm comm(args_of(rank, size, id));
                ASSERT_EQ(TWILL_OK, comm.connect()) << comm.failure();
                EXPECT_EQ(count, comm->ranks_here);
                EXPECT_EQ(size, comm->ranks_host);
                for (int p = 0; p < size; p++) {
                    if (p == rank)
                        continue;
                    bool same = p >= first && p < first + count;
                    EXPECT_EQ(same, tw_chan_same_process(comm->chan, p)) << rank << " " << p;
                }
                EXPECT_EQ(TWILL_OK, comm.finalize()) << comm.failure();
            });
            return count_returns(before) ? 0 : 1;
        }));
        all.push_back(children.back().get());
        first += count;
    }
    pass_id(all);
    for (auto &child : children)
        EXPECT_EQ(0, child->wait());
}

TEST_F(Bootstrap, OneThreadConnectsSeveralRanks)
{
    twill_unique_id id = new_id();
    struct twill_comm *comms[5];
    for (int rank = 0; rank < 5; rank++) {
        struct tw_comm_args args = args_of(rank, 5, id);
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
    }
    EXPECT_EQ(TWILL_OK, tw_comm_connect(comms, 5, true));
    for (struct twill_comm *comm : comms) {
        EXPECT_EQ(TW_COMM_READY, comm->state);
        tw_comm_free(comm);
    }
}

TEST_F(Bootstrap, ManyCommunicatorsAtOnce)
{
    std::vector<twill_unique_id> ids;
    for (int i = 0; i < 8; i++)
        ids.push_back(new_id());
    on_threads(16, [&](int i) {
        Comm comm(args_of(i % 2, 2, ids[i / 2]));
        ASSERT_EQ(TWILL_OK, comm.connect()) << comm.failure();
        EXPECT_EQ(TWILL_OK, comm.finalize()) << comm.failure();
    });
}

TEST_F(Bootstrap, WithoutWaiting)
{
    twill_unique_id id = new_id();
    struct twill_comm *comms[3];
    for (int rank = 0; rank < 3; rank++) {
        struct tw_comm_args args = args_of(rank, 3, id);
        args.blocking = 0;
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
    }
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(comms, 2, false));
    EXPECT_EQ(TW_COMM_INIT, __atomic_load_n(&comms[0]->state, __ATOMIC_ACQUIRE))
        << "rank 2 has not come";
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(&comms[2], 1, false));
    for (struct twill_comm *comm : comms) {
        wait_for([&] { return __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) != TW_COMM_INIT; });
        EXPECT_EQ(TW_COMM_READY, __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE));
        EXPECT_EQ(TWILL_OK, tw_comm_status(comm));
    }
    for (struct twill_comm *comm : comms)
        EXPECT_EQ(TWILL_INPROGRESS, tw_comm_finalize(comm));
    for (struct twill_comm *comm : comms) {
        wait_for(
            [&] { return __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) == TW_COMM_FINALIZED; });
        tw_comm_free(comm);
    }
}

/* ---- ranks that do not fit ---- */

TEST_F(Bootstrap, AMissingRankIsNamedOnAllThatCame)
{
    set_params({{"INIT_TIMEOUT", "300ms"}});
    twill_unique_id id = new_id();
    Ending ends[4];
    on_threads(3, [&](int i) { ends[i] = try_connect(args_of(i == 2 ? 3 : i, 4, id)); });
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(TWILL_ERR_TIMEOUT, ends[i].status);
        EXPECT_TRUE(contains(ends[i].text, "3 of 4 ranks came within 0.3 s; missing: 2"))
            << ends[i].text;
        EXPECT_GE(ends[i].ms, 250u);
        EXPECT_LT(ends[i].ms, 5000u);
    }
    late_comer(2, 4, id, "3 of 4 ranks came within 0.3 s; missing: 2");
}

TEST_F(Bootstrap, SizesThatDifferAreToldToAll)
{
    twill_unique_id id = new_id();
    Ending ends[3];
    on_threads(3, [&](int i) { ends[i] = try_connect(args_of(i, i == 1 ? 5 : 4, id)); });
    for (auto &end : ends) {
        EXPECT_EQ(TWILL_ERR_MISMATCH, end.status) << end.text;
        EXPECT_TRUE(contains(end.text, "rank 1 says 5")) << end.text;
        EXPECT_TRUE(contains(end.text, " says 4")) << end.text;
    }
    late_comer(3, 4, id, "rank 1 says 5");
}

TEST_F(Bootstrap, ARankThatComesTwiceIsToldToAll)
{
    twill_unique_id id = new_id();
    Ending ends[3];
    on_threads(3, [&](int i) { ends[i] = try_connect(args_of(i / 2, 3, id)); });
    for (auto &end : ends) {
        EXPECT_EQ(TWILL_ERR_MISMATCH, end.status) << end.text;
        EXPECT_TRUE(contains(end.text, "rank 0 came twice")) << end.text;
    }
    late_comer(2, 3, id, "rank 0 came twice");
}

TEST_F(Bootstrap, OptionsThatDifferAreNamedWithBothValues)
{
    twill_unique_id id = new_id();
    Ending ends[2];
    on_threads(2, [&](int i) {
        struct tw_comm_args args = args_of(i, 2, id);
        args.deterministic = i;
        ends[i] = try_connect(args);
    });
    for (auto &end : ends) {
        EXPECT_EQ(TWILL_ERR_VERSION, end.status) << end.text;
        EXPECT_TRUE(contains(end.text, "rank 0 has deterministic=0")) << end.text;
        EXPECT_TRUE(contains(end.text, "rank 1 has deterministic=1")) << end.text;
    }
}

TEST_F(Bootstrap, ParametersOfOtherProcessesMustAgree)
{
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;
    for (int rank = 0; rank < 3; rank++) {
        children.push_back(std::make_unique<Child>([=](const Wire &wire) {
            set_params({{"ALGO", rank == 2 ? "ring" : ""}});
            Keep keep; /* rank 0 holds the meeting point until all have heard */
            twill_unique_id id = share_id(wire, rank == 0);
            Ending end = try_connect(args_of(rank, 3, id));
            EXPECT_EQ(TWILL_ERR_VERSION, end.status);
            EXPECT_TRUE(contains(end.text, "rank 2 has TWILL_ALGO=\"ring\"")) << end.text;
            EXPECT_TRUE(contains(end.text, "has TWILL_ALGO=\"\"")) << end.text;
            int byte = 0;
            (void)wire.get(&byte);
            return 0;
        }));
        all.push_back(children.back().get());
    }
    pass_id(all);
    for (int rank = 2; rank >= 0; rank--) {
        all[rank]->wire.put(1);
        EXPECT_EQ(0, children[rank]->wait());
    }
}

TEST_F(Bootstrap, PreparedButNeverConnected)
{
    twill_unique_id id = new_id();
    Comm unused(args_of(0, 2, id));
    unused.free();
    on_threads(2, [&](int rank) { EXPECT_EQ(TWILL_OK, try_connect(args_of(rank, 2, id)).status); });
}
