/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what is done for buffers before a call: registered, and filled by another call.
 * Never knows: what becomes of them. */
#include "device/reference.h"
#include "property/ranks.h"
#include "property/world.h"

namespace property
{

/* With one rank's memory of another sort, nobody's is registered. */
void Thread::enlist(size_t first)
{
    for (size_t i = first; i < pending_.size(); i++) {
        Pending &pending = pending_[i];
        const Call &call = pending.what();
        Bytes &memory = pending.buffers->memory();
        bool all = true;
        for (const int member : place(c_, call.comm, pending.rank->rank).members)
            all = all && (call.mapped >> member & 1);
        const enum twill_status status =
            twill_register(pending.comm(), memory.data(), memory.size(), &pending.reg);
        if (all || status != TWILL_ERR_UNSUPPORTED)
            must(status, pending.where + " register", pending.comm());
        if (!all && status == TWILL_OK)
            fail(pending.where + ": memory that cannot be mapped was registered");
    }
}

void Thread::delist()
{
    for (Pending &pending : pending_)
        if (pending.reg)
            must(twill_deregister(pending.comm(), pending.reg), pending.where + " deregister",
                 pending.comm());
}

/* The root of a scatter has what all members are to read in the call. */
void Thread::feed_rank(const Call &call, Rank *rank, Pending *fed)
{
    const int other = 1 - call.comm;
    const Place at = place(c_, other, rank->rank);
    const auto root = (int)(call.seed % (uint64_t)at.size());
    const int blocks = many_in(call.kind) ? c_.size : 1;
    const size_t count = call.count * (size_t)blocks, bytes = count * reference::bytes(call.type);
    std::vector<uint8_t> from(at.rank == root ? (size_t)at.size() * bytes : 0);
    for (size_t i = 0; at.rank == root && i < at.members.size(); i++) {
        if (place(c_, call.comm, at.members[i]).rank < 0)
            continue;
        Buffers buffers(c_, call, at.members[i]);
        std::copy_n(buffers.input(), bytes, from.begin() + (long)(i * bytes));
    }
    if (fed)
        fed->buffers->hide_input();
    fed_.push_back(std::move(from));
    fed_.emplace_back(fed ? 0 : bytes);
    uint8_t *to = fed ? fed->buffers->input() : fed_.back().data();
    const int stream = call.streams[rank->rank] == 1 ? 2 : 1;
    must(twill_scatter(fed_[fed_.size() - 2].data(), to, count, call.type, root, rank->comms[other],
                       streams_[stream]),
         "scatter of inputs", rank->comms[other]);
}

/* Nothing else says that the call comes after its input. */
void Thread::order(const Call &call, int rank)
{
    const int stream = call.streams[rank];
    twill_event_t event = nullptr;
    must(twill_event_create(&event), "event_create", nullptr);
    must(twill_event_record(event, streams_[stream == 1 ? 2 : 1]), "event_record", nullptr);
    must(twill_event_wait(streams_[stream], event), "event_wait", nullptr);
    if (call.seed & 16)
        must(twill_event_destroy(event), "event_destroy", nullptr);
    else
        events_.push_back(event);
}

void Thread::feed(const Call &call)
{
    if (many())
        must(twill_group_start(), "group_start", nullptr);
    for (Rank &rank : ranks_) {
        Pending *fed = nullptr;
        for (Pending &pending : pending_)
            fed = pending.rank == &rank ? &pending : fed; /* the newest */
        if (!rank.comms[call.comm])
            fed = nullptr;
        if (rank.comms[1 - call.comm])
            feed_rank(call, &rank, fed);
    }
    if (many())
        must(twill_group_end(), "group_end", nullptr);
    for (const Rank &rank : ranks_)
        if (rank.comms[0] && rank.comms[1])
            order(call, rank.rank);
}

} // namespace property
