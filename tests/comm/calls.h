/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how tests describe calls, and ranks whose records they look at.
 * Never knows: what is tested. */
#ifndef TESTS_COMM_CALLS_H
#define TESTS_COMM_CALLS_H

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ranks.h"

extern "C" {
#include "base/time.h"
#include "comm/record.h"
}

inline struct tw_call_info coll(enum tw_coll kind, size_t count, int root = 0)
{
    struct tw_call_info info = {};
    info.coll = kind;
    info.peer = TW_NO_RANK;
    info.root = root;
    info.count = count;
    info.type = TWILL_FLOAT32;
    info.op = TWILL_SUM;
    info.algo_hash = 77;
    return info;
}

inline struct tw_call_info pair(bool is_send, int peer, size_t count)
{
    struct tw_call_info info = {};
    info.coll = TW_COLL_P2P;
    info.is_send = is_send;
    info.peer = peer;
    info.count = count;
    info.type = TWILL_INT32;
    return info;
}

inline struct tw_exec_wait where()
{
    struct tw_exec_wait wait = {};
    wait.phase = TW_PHASE_RECV;
    wait.peer = 1;
    wait.step = 3;
    return wait;
}

/* One look as if the wait had begun `waited_ns` ago. */
inline enum twill_status look(struct twill_comm *comm, const struct tw_call_info &info,
                              uint64_t number, uint64_t waited_ns = 2 * TW_NS_MS)
{
    struct tw_record_wait wait = {tw_now_ns() - waited_ns, false, 0};
    struct tw_exec_wait at = where();
    return tw_record_look(comm, &info, number, &at, &wait);
}

class Record : public ::testing::Test
{
  protected:
    void make(int size, const std::vector<std::pair<std::string, std::string>> &params = {})
    {
        set_params(params);
        twill_unique_id id = new_id();
        std::vector<struct twill_comm *> raw;
        for (int rank = 0; rank < size; rank++) {
            comms_.push_back(std::make_unique<Comm>(args_of(rank, size, id)));
            raw.push_back(comms_.back()->get());
        }
        ASSERT_EQ(TWILL_OK, tw_comm_connect(raw.data(), size, true));
    }
    void TearDown() override
    {
        comms_.clear();
        set_params({});
    }
    struct twill_comm *comm(int rank) { return comms_[rank]->get(); }
    std::string failure(int rank) { return comms_[rank]->failure(); }
    void expect_all(enum twill_status status, const std::string &text)
    {
        for (auto &one : comms_) {
            EXPECT_TRUE(fails_within(one->get(), 1000));
            EXPECT_EQ(status, tw_comm_status(one->get()));
            EXPECT_EQ(text, one->failure());
        }
    }
    std::vector<std::unique_ptr<Comm>> comms_;
};

#endif
