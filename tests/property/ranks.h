/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a thread of a case: its ranks, and calls of theirs that are looked at later.
 * Never knows: which values are right. */
#ifndef TESTS_PROPERTY_RANKS_H
#define TESTS_PROPERTY_RANKS_H

#include <memory>

#include "property/buffers.h"

namespace property
{

const int STREAMS = 2;

struct Rank {
    int rank;
    twill_comm_t comms[COMMS] = {};
};

/* A call that was made and is looked at later. */
struct Pending {
    std::unique_ptr<Buffers> buffers;
    Rank *rank;
    std::string where;
    twill_reg_t reg = nullptr;

    const Call &what() const { return buffers->what(); }
    twill_comm_t comm() const { return rank->comms[what().comm]; }
};

/* The ranks of one thread. */
class Thread
{
  public:
    Thread(const Case &c, std::vector<Rank> ranks) : c_(c), ranks_(std::move(ranks)) {}
    void run();

  private:
    bool many() const { return ranks_.size() > 1; }
    bool is_spoilt(int comm, int rank) const;
    void join();
    void split();
    /* c's batch by its number, or one behind them all */
    void make(const Batch &batch, int number);
    void prepare(const Batch &batch, int number);
    void settle();

    /* ask.cc: about the calls from pending_[first] on, which are about to be made */
    void simulate(size_t first);
    void ask(size_t first, int number);

    /* feed.cc */
    void enlist(size_t first);
    void delist();
    void feed(const Call &call);
    void feed_rank(const Call &call, Rank *rank, Pending *fed);
    void order(const Call &call, int rank);
    void finalize(int comm);
    void end_streams();
    void leave();

    /* finale.cc */
    void end();
    void differ();
    void be_cut();
    void shrink();
    bool is_here(int rank) const;
    enum twill_status attempt();
    void tolerate(enum twill_status status, const std::string &what);
    void expect_failed();

    const Case &c_;
    std::vector<Rank> ranks_;
    twill_stream_t streams_[STREAMS + 1] = {};
    std::vector<Pending> pending_;
    std::vector<std::vector<uint8_t>> fed_; /* what streams read and write for others' inputs */
    std::vector<twill_event_t> events_;
};

/* Nothing can follow: the other ranks are told by this one's death. */
void must(enum twill_status status, const std::string &what, twill_comm_t comm);
/* Connecting may go on by itself. */
void await(enum twill_status status, const std::string &what, twill_comm_t comm);

} // namespace property

#endif
