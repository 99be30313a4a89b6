/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how tests bring ranks to a meeting point, or somebody who plays one.
 * Never knows: what is tested. */
#ifndef TESTS_COMM_BOOTSTRAP_H
#define TESTS_COMM_BOOTSTRAP_H

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "ranks.h"

extern "C" {
#include "comm/bootstrap.h"
}

struct tw_id open_up(const twill_unique_id &id);

/* What a rank that connects and goes again ended with. */
struct Ending {
    enum twill_status status;
    std::string text;
    uint64_t ms;
};
Ending try_connect(const struct tw_comm_args &args);

/* The last rank that was to come: it hears the cause too, and the meeting point goes at once. */
void late_comer(int rank, int size, const twill_unique_id &id, const char *cause);

/* A socket that is connected to the meeting point and has said nothing. */
int knock(const char *name);

/* comms[rank] for the first `count` ranks of `size`, not connected. */
void prepare(struct twill_comm **comms, int count, int size, const twill_unique_id &id);
/* Waits until the rank has a link to the meeting point. */
void await_meeting(struct twill_comm *comm);

class Bootstrap : public ::testing::Test
{
  protected:
    void SetUp() override { before_ = count_now(); }
    void TearDown() override
    {
        EXPECT_TRUE(count_returns(before_));
        set_params({});
    }
    Count before_;
};

#endif
