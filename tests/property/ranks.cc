/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how ranks join, go through the calls of a case, and leave.
 * Never knows: which values are right. */
#include <memory>
#include <thread>

#include <sched.h>
#include <unistd.h>

#include "property/buffers.h"
#include "property/world.h"

namespace property
{

namespace
{

const int STREAMS = 2;

struct Rank {
    int rank;
    twill_comm_t comms[2] = {nullptr, nullptr};
};

/* A call that was made and is looked at later. */
struct Pending {
    std::unique_ptr<Buffers> buffers;
    int rank;
    std::string where;
};

/* The ranks of one thread. */
class Thread
{
  public:
    Thread(const Case &c, std::vector<Rank> ranks) : c_(c), ranks_(std::move(ranks)) {}
    void run();

  private:
    bool many() const { return ranks_.size() > 1; }
    void join();
    void split();
    void make(const Batch &batch, int number);
    void settle();
    void finalize(int comm);
    void leave();

    const Case &c_;
    std::vector<Rank> ranks_;
    twill_stream_t streams_[STREAMS + 1] = {};
    std::vector<Pending> pending_;
};

/* Nothing can follow: the other ranks are told by this one's death. */
void must(enum twill_status status, const std::string &what, twill_comm_t comm)
{
    if (status == TWILL_OK)
        return;
    fail(what + ": " + twill_status_string(status) + ": " + twill_last_error(comm));
    _exit(3);
}

/* Connecting may go on by itself. */
void await(enum twill_status status, const std::string &what, twill_comm_t comm)
{
    while (status == TWILL_INPROGRESS && comm &&
           twill_comm_async_error(comm, &status) == TWILL_OK && status == TWILL_INPROGRESS)
        sched_yield();
    must(status, what, comm);
}

twill_config config_of(const Case &c)
{
    twill_config config = TWILL_CONFIG_INIT;
    config.deterministic = c.deterministic;
    config.blocking = !c.nonblocking;
    return config;
}

twill_unique_id id_of(int process)
{
    Shared *s = shared();
    if (process == 0) {
        must(twill_get_unique_id(&s->id), "get_unique_id", nullptr);
        __atomic_store_n(&s->id_ready, 1, __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(&s->id_ready, __ATOMIC_ACQUIRE))
        sched_yield();
    return s->id;
}

void Thread::join()
{
    const twill_config config = config_of(c_);
    enum twill_status status = TWILL_OK;
    if (ranks_[0].comms[0])
        return;
    if (many())
        must(twill_group_start(), "group_start", nullptr);
    for (Rank &rank : ranks_) {
        status = twill_comm_init(&rank.comms[0], c_.size, &shared()->id, rank.rank, &config);
        if (status != TWILL_INPROGRESS)
            must(status, "init", nullptr);
    }
    if (many())
        status = twill_group_end();
    for (const Rank &rank : ranks_)
        await(status, "init", rank.comms[0]);
}

void Thread::split()
{
    enum twill_status status = TWILL_OK;
    if (many())
        must(twill_group_start(), "group_start", nullptr);
    for (Rank &rank : ranks_) {
        status = twill_comm_split(rank.comms[0], c_.color[rank.rank], c_.key[rank.rank],
                                  &rank.comms[1], nullptr);
        if (status != TWILL_INPROGRESS)
            must(status, "split", rank.comms[0]);
    }
    if (many())
        status = twill_group_end();
    for (const Rank &rank : ranks_)
        if (rank.comms[1])
            await(status, "split", rank.comms[1]);
}

void Thread::make(const Batch &batch, int number)
{
    const bool group = batch.group || many();
    const size_t first = pending_.size();
    for (const Rank &rank : ranks_) {
        __atomic_store_n(&shared()->step[rank.rank], number, __ATOMIC_RELEASE);
        for (size_t i = 0; i < batch.calls.size(); i++) {
            const Call &call = batch.calls[i];
            const std::string where = std::to_string(number) + '.' + std::to_string(i) + ' ' +
                                      name(call.kind) + " rank " + std::to_string(rank.rank);
            if (!rank.comms[call.comm])
                continue;
            pending_.push_back({std::make_unique<Buffers>(c_, call, rank.rank), rank.rank, where});
            must(pending_.back().buffers->prepare(rank.comms[call.comm]), where + " op_create",
                 rank.comms[call.comm]);
        }
    }
    if (group)
        must(twill_group_start(), "group_start", nullptr);
    for (size_t i = first; i < pending_.size(); i++) {
        const Call &call = pending_[i].buffers->what();
        const int rank = pending_[i].rank;
        for (const Rank &own : ranks_)
            if (own.rank == rank)
                must(pending_[i].buffers->call(own.comms[call.comm], streams_[call.streams[rank]]),
                     pending_[i].where, own.comms[call.comm]);
    }
    if (group)
        must(twill_group_end(), std::to_string(number) + " group_end", nullptr);
    if (batch.sync)
        settle();
}

void Thread::settle()
{
    for (int i = 1; i <= STREAMS; i++)
        must(twill_stream_synchronize(streams_[i]), "stream_synchronize", nullptr);
    for (const Pending &pending : pending_) {
        const std::string wrong = pending.buffers->check();
        if (!wrong.empty())
            fail(pending.where + ": " + wrong + ": " + pending.buffers->what().text());
    }
    pending_.clear();
}

/* All at once: destroying one after another would wait for one communicator here and for another
 * one elsewhere. */
void Thread::finalize(int comm)
{
    enum twill_status status = TWILL_OK;
    if (many())
        must(twill_group_start(), "group_start", nullptr);
    for (const Rank &rank : ranks_) {
        if (rank.comms[comm])
            status = twill_comm_finalize(rank.comms[comm]);
        if (status != TWILL_INPROGRESS)
            must(status, "finalize", rank.comms[comm]);
    }
    if (many())
        status = twill_group_end();
    for (const Rank &rank : ranks_)
        if (rank.comms[comm])
            await(status, "finalize", rank.comms[comm]);
}

void Thread::leave()
{
    for (int i = 1; i <= STREAMS; i++)
        must(twill_stream_destroy(streams_[i]), "stream_destroy", nullptr);
    if (c_.splits && (many() || c_.finalizes))
        finalize(1);
    if (c_.finalizes)
        finalize(0);
    for (const Rank &rank : ranks_)
        must(twill_comm_destroy(rank.comms[1]), "destroy of the split one", nullptr);
    for (const Rank &rank : ranks_)
        must(twill_comm_destroy(rank.comms[0]), "destroy", nullptr);
}

void Thread::run()
{
    for (int i = 1; i <= STREAMS; i++)
        must(twill_stream_create(&streams_[i]), "stream_create", nullptr);
    join();
    if (c_.splits)
        split();
    for (size_t i = 0; i < c_.batches.size(); i++)
        make(c_.batches[i], (int)i);
    settle();
    leave();
}

} // namespace

void run_process(const Case &c, int process)
{
    std::vector<Rank> ranks;
    for (int rank = c.first_of(process); rank < c.first_of(process + 1); rank++)
        ranks.push_back({rank});
    if (c.processes > 1 || c.by_id) {
        (void)id_of(process);
    } else {
        const twill_config config = config_of(c);
        std::vector<twill_comm_t> comms(ranks.size());
        const enum twill_status status =
            twill_comm_init_all(comms.data(), c.size, nullptr, &config);
        for (size_t i = 0; i < ranks.size(); i++) {
            await(status, "init_all", comms[i]);
            ranks[i].comms[0] = comms[i];
        }
    }
    if (c.alone >> process & 1) {
        Thread(c, ranks).run();
        return;
    }
    std::vector<std::thread> threads;
    for (const Rank &rank : ranks)
        threads.emplace_back([&c, rank] { Thread(c, {rank}).run(); });
    for (std::thread &thread : threads)
        thread.join();
}

} // namespace property
