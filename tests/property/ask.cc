/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what may be asked about calls before they are made. Never knows: how calls end. */
#include <cmath>
#include <cstring>

#include "property/ranks.h"
#include "property/world.h"

namespace property
{

/* As a group that is not run: nothing is moved, and the calls that follow are numbered as if it had
 * not been. */
void Thread::simulate(size_t first)
{
    bool takes_time = false;
    twill_simulation simulation = TWILL_SIMULATION_INIT;
    must(twill_group_start(), "group_start", nullptr);
    for (size_t i = first; i < pending_.size(); i++) {
        Pending &pending = pending_[i];
        const Call &call = pending.what();
        pending.buffers->keep_op(true);
        must(pending.buffers->call(pending.comm(), streams_[call.streams[pending.rank->rank]]),
             pending.where + " simulated", pending.comm());
        pending.buffers->keep_op(false);
        takes_time = takes_time ||
                     (call.kind != SENDS && place(c_, call.comm, pending.rank->rank).size() > 1);
    }
    must(twill_group_simulate_end(&simulation), "group_simulate_end", nullptr);
    const double us = simulation.predicted_us;
    if (!std::isfinite(us) || us < 0 || (takes_time && us == 0))
        fail("a group is predicted to take " + std::to_string(us) + " us");
    for (size_t i = first; i < pending_.size(); i++)
        if (!pending_[i].buffers->is_untouched())
            fail(pending_[i].where + ": a simulated call moved data");
}

/* The first who is asked says what all must say. */
static void same_choice(const Call &call, int number, int first_member, const twill_choice &choice)
{
    uint64_t hash = 1, seen = 0;
    for (const char *at = choice.algo; *at; at++)
        hash = mix(hash + (uint64_t)(unsigned char)*at);
    hash = mix(hash + (uint64_t)choice.channels) | 1;
    uint64_t *slots = shared()->choices;
    const uint64_t key =
        mix(call.seed + (uint64_t)number * 16 + (uint64_t)(call.comm ? 1 + first_member : 0));
    /* two words in one: the key's part says whose slot it is */
    hash = (hash & 0xffffffffu) | key << 32;
    if (!__atomic_compare_exchange_n(&slots[key % 64], &seen, hash, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        seen >> 32 == hash >> 32 && seen != hash)
        fail("ranks choose differently, one of them " + std::string(choice.algo) + " for " +
             call.text());
}

void Thread::ask(size_t first, int number)
{
    /* a rank of no color does not wait for its part in the split */
    bool queued = c_.splits && (c_.nonblocking || !ranks_[0].comms[1] || many());
    for (size_t i = 0; i < first; i++)
        queued = queued || pending_[i].what().streams[pending_[i].rank->rank] != 0;
    for (size_t i = first; i < pending_.size(); i++) {
        const Pending &pending = pending_[i];
        const Call &call = pending.what();
        const Place at = place(c_, call.comm, pending.rank->rank);
        twill_choice choice = TWILL_CHOICE_INIT;
        twill_memory memory = TWILL_MEMORY_INIT;
        enum twill_status status = twill_comm_memory(pending.comm(), &memory);
        if (status == TWILL_ERR_USAGE && queued)
            continue;
        must(status, pending.where + " comm_memory", pending.comm());
        if (memory.comm_staging_bytes > memory.process_staging_bytes ||
            memory.process_staging_bytes > memory.staging_limit_bytes)
            fail(pending.where + ": staging " + std::to_string(memory.comm_staging_bytes) + " of " +
                 std::to_string(memory.process_staging_bytes) + " of " +
                 std::to_string(memory.staging_limit_bytes));
        if (call.kind == SENDS)
            continue;
        status = twill_comm_choice(pending.comm(), name(call.kind), call.count, call.type,
                                   call.root % at.size(), &choice);
        must(status, pending.where + " comm_choice", pending.comm());
        const char *forced = c_.forced[call.kind];
        if (!*choice.algo || choice.channels < 1 || !std::isfinite(choice.predicted_us) ||
            choice.predicted_us < 0 ||
            (forced && !c_.user_plans && at.size() > 1 &&
             strncmp(choice.algo, forced, strlen(forced)) != 0))
            fail(pending.where + ": the choice is " + choice.algo + " with " +
                 std::to_string(choice.channels) + " channels, " +
                 std::to_string(choice.predicted_us) + " us");
        same_choice(call, number, at.members[0], choice);
    }
}

} // namespace property
