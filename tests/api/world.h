/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how tests get ranks: as forked processes, or as threads of one forked process.
 * Never knows: what the ranks do. */
#ifndef TESTS_API_WORLD_H
#define TESTS_API_WORLD_H

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/types.h>

#include "twill.h"

namespace world
{

/* Seconds a whole test binary may take, from TW_TEST_BUDGET. */
double budget_s();

/* Memory that forked ranks share. */
struct Shared {
    twill_unique_id id;
    int id_ready;     /* atomic */
    int arrived[64];  /* atomic: of Meeting */
    int words[64];    /* atomic: the test's own */
    double times[64]; /* the test's own */
};

/* Outlives the ranks; the test process reads it after run(). */
Shared *shared();

/* One rank of a job of forked processes: inside body(). */
struct Rank {
    int rank, size;
    /* The id, made by rank 0. */
    twill_unique_id id() const;
    twill_comm_t init(const twill_config *config = nullptr) const;
    /* Wait until all ranks have come to the point-th meeting. */
    void meet(int point) const;
};

struct Exit {
    bool failed_expectations;
    int signal; /* that ended the rank; 0 none */
};

using Body = std::function<void(const Rank &)>;
using Env = std::vector<std::pair<std::string, std::string>>;

/* Fork size ranks, run body in each, wait. The test process itself never uses twill. A rank that
 * has not ended after limit_s is killed, which is a failure of the test. */
std::vector<Exit> run(int size, const Body &body, const Env &env = {}, double limit_s = 60);
/* The same, and every rank must end well. */
void run_all(int size, const Body &body, const Env &env = {}, double limit_s = 60);
/* Processes with a communicator and a stream each, which are ended behind body. */
void run_streams(
    int size,
    const std::function<void(const Rank &, twill_comm_t comm, twill_stream_t stream)> &body);
/* One process that makes its ranks itself. */
void run_alone(const std::function<void()> &body, const Env &env = {}, double limit_s = 60);

/* count threads, joined. */
void threads(int count, const std::function<void(int)> &body);

double now_s();
/* Spins (yielding) until the word is value. */
void await(const int *word, int value);
void set(int *word, int value);
int get(const int *word);

/* Polls until the communicator is no longer in progress. */
enum twill_status settle(twill_comm_t comm);
std::string text(twill_comm_t comm);
/* Says name and sentence of any other status. comm NULL: a call that has none, or has freed it. */
::testing::AssertionResult ok(enum twill_status status, twill_comm_t comm);

} // namespace world

#define EXPECT_OK(call, comm) EXPECT_TRUE(world::ok(call, comm))
#define ASSERT_OK(call, comm) ASSERT_TRUE(world::ok(call, comm))

#endif
