/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how tests get ranks that know nothing but nccl.h: as forked processes, or as threads of
 * one. Never knows: what the ranks do. */
#ifndef TESTS_COMPAT_RANKS_H
#define TESTS_COMPAT_RANKS_H

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nccl.h>

namespace ranks
{

/* Memory that forked ranks share, zeroed before each run. */
struct Shared {
    ncclUniqueId ids[4];
    int ready[4];    /* atomic: which of them are made */
    int arrived[64]; /* atomic: of meet() */
    int words[64];   /* atomic: the test's own */
};
Shared *shared();

struct Rank {
    int rank, size;
    /* The n-th id, made by rank 0. */
    ncclUniqueId id(int n = 0) const;
    ncclComm_t init(ncclConfig_t *config = nullptr) const;
    /* Wait until all ranks have come to the point-th meeting. */
    void meet(int point) const;
};

using Body = std::function<void(const Rank &)>;
using Env = std::vector<std::pair<std::string, std::string>>;

/* Forked processes, each of which must end well (a signal of its own choice is a failure, unless
 * it is the one that `killed` says of that rank). */
void processes(int size, const Body &body, const Env &env = {}, int killed = -1);
/* Threads of one forked process: body has the same ranks. */
void threads(int size, const Body &body, const Env &env = {});
/* One forked process. */
void alone(const std::function<void()> &body, const Env &env = {});

int get(const int *word);
void set(int *word, int value);
void await(const int *word, int value);

/* Polls until it is no longer in progress. */
ncclResult_t settle(ncclComm_t comm);
/* Says name and sentence of any other result. */
::testing::AssertionResult ok(ncclResult_t result);
std::string text();

} // namespace ranks

#define EXPECT_NCCL(call) EXPECT_TRUE(ranks::ok(call))
#define ASSERT_NCCL(call) ASSERT_TRUE(ranks::ok(call))

#endif
