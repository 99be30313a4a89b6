/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how ranks join, go through the calls of a case, and leave.
 * Never knows: which values are right. */
#include <thread>

#include <sched.h>
#include <unistd.h>

#include "property/ranks.h"
#include "property/world.h"
#include "property/wrong.h"

namespace property
{

void must(enum twill_status status, const std::string &what, twill_comm_t comm)
{
    if (status == TWILL_OK)
        return;
    fail(what + ": " + twill_status_string(status) + ": " + twill_last_error(comm));
    _exit(3);
}

void await(enum twill_status status, const std::string &what, twill_comm_t comm)
{
    while (status == TWILL_INPROGRESS && comm &&
           twill_comm_async_error(comm, &status) == TWILL_OK && status == TWILL_INPROGRESS)
        sched_yield();
    must(status, what, comm);
}

namespace
{

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

} // namespace

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

void Thread::prepare(const Batch &batch, int number)
{
    for (Rank &rank : ranks_) {
        __atomic_store_n(&shared()->step[rank.rank], number, __ATOMIC_RELEASE);
        for (size_t i = 0; i < batch.calls.size(); i++) {
            const Call &call = batch.calls[i];
            const std::string where = std::to_string(number) + '.' + std::to_string(i) + ' ' +
                                      name(call.kind) + " rank " + std::to_string(rank.rank);
            if (rank.comms[call.comm])
                pending_.push_back(
                    {std::make_unique<Buffers>(c_, call, rank.rank), &rank, where, nullptr});
        }
    }
}

void Thread::make(const Batch &batch, int number)
{
    const bool group = batch.group || many();
    const size_t first = pending_.size();
    prepare(batch, number);
    for (size_t i = first; i < pending_.size(); i++)
        must(pending_[i].buffers->prepare(pending_[i].comm()), pending_[i].where + " op_create",
             pending_[i].comm());
    if (batch.asked >> ranks_[0].rank & 1)
        ask(first, number);
    if (batch.simulated >> ranks_[0].rank & 1)
        simulate(first);
    if (batch.registered)
        enlist(first);
    if (batch.fed)
        feed(batch.calls[0]);
    if (group)
        must(twill_group_start(), "group_start", nullptr);
    for (size_t i = first; i < pending_.size(); i++) {
        const Pending &pending = pending_[i];
        const Call &call = pending.what();
        const int rank = pending.rank->rank;
        twill_stream_t stream = streams_[call.streams[rank]];
        if (batch.wrong >> rank & 1) {
            const std::string wrong = wrong_call(call.seed, pending.comm(), stream, group);
            if (!wrong.empty())
                fail(pending.where + ": " + wrong);
        }
        must(pending.buffers->call(pending.comm(), stream), pending.where, pending.comm());
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
            fail(pending.where + ": " + wrong + ": " + pending.what().text());
    }
    delist();
    pending_.clear();
    fed_.clear();
}

/* Has it failed, or will it, because of what the case does at its end? */
bool Thread::is_spoilt(int comm, int rank) const
{
    bool lost = false;
    for (const int member : place(c_, comm, rank).members)
        lost = lost || c_.is_killed(c_.process_of(member));
    return (comm == 0 && c_.finale.trouble != NONE) || lost;
}

/* All at once: destroying one after another would wait for one communicator here and for another
 * one elsewhere. */
void Thread::finalize(int comm)
{
    enum twill_status status = TWILL_OK;
    if (many())
        must(twill_group_start(), "group_start", nullptr);
    for (const Rank &rank : ranks_) {
        if (rank.comms[comm] && !is_spoilt(comm, rank.rank))
            status = twill_comm_finalize(rank.comms[comm]);
        if (status != TWILL_INPROGRESS)
            must(status, "finalize", rank.comms[comm]);
    }
    if (many())
        status = twill_group_end();
    for (const Rank &rank : ranks_)
        if (rank.comms[comm] && !is_spoilt(comm, rank.rank))
            await(status, "finalize", rank.comms[comm]);
}

void Thread::end_streams()
{
    for (int i = 1; i <= STREAMS; i++)
        must(twill_stream_destroy(streams_[i]), "stream_destroy", nullptr);
}

void Thread::leave()
{
    if (!c_.streams_last)
        end_streams();
    for (int comm = COMMS - 1; comm >= 0; comm--)
        if ((comm && many()) || c_.finalizes)
            finalize(comm);
    for (int comm = COMMS - 1; comm >= 0; comm--) {
        for (const Rank &rank : ranks_) {
            const enum twill_status status = twill_comm_destroy(rank.comms[comm]);
            if (status != TWILL_ERR_PEER || !is_spoilt(comm, rank.rank))
                must(status, "destroy", nullptr);
        }
    }
    if (c_.streams_last)
        end_streams();
    for (const twill_event_t event : events_)
        must(twill_event_destroy(event), "event_destroy", nullptr);
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
    if (c_.finale.trouble != NONE)
        end();
    leave();
}

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
