/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how ranks make calls that must fail, what they are told, and how the rest goes on.
 * Never knows: how the mistake was drawn. */
#include <cctype>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "property/ranks.h"
#include "property/world.h"

namespace property
{

namespace
{

/* The header says a second for a death. What it means is the machine's own time: tests share it
 * with others, and sanitizers are slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const double TOLD_S = 60;
#else
const double TOLD_S = 10;
#endif

enum twill_status failure_of(const Case &c)
{
    static const enum twill_status failures[] = {TWILL_OK, TWILL_ERR_MISMATCH, TWILL_ERR_PEER,
                                                 TWILL_ERR_ABORTED};
    return failures[c.finale.trouble];
}

bool names_rank(const std::string &text, int rank)
{
    const std::string word = "rank " + std::to_string(rank);
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        const size_t end = at + word.size();
        if (end == text.size() || !isdigit((unsigned char)text[end]))
            return true;
    }
    return false;
}

bool names_guilty(const Case &c, const std::string &text)
{
    bool named = names_rank(text, c.finale.guilty);
    const int process = c.process_of(c.finale.guilty);
    for (int rank = c.first_of(process); rank < c.first_of(process + 1); rank++)
        named = named || (c.finale.trouble == CUT && names_rank(text, rank));
    return named;
}

/* The moment is any: no other event decides it. */
void strike_later(const Case &c, twill_comm_t comm)
{
    const struct timespec pause = {0, (long)c.finale.after_us * 1000};
    nanosleep(&pause, nullptr);
    double lost_s = now_s();
    __atomic_store(&shared()->lost_s, &lost_s, __ATOMIC_RELEASE);
    if (c.finale.trouble == CUT)
        (void)kill(getpid(), SIGKILL);
    else
        must(twill_comm_abort(comm), "abort", comm);
}

/* Ranks may all have done their part before one of them looks at another's. They look when they
 * wait for more than a millisecond: in a barrier to which one comes late. */
const struct timespec LATE = {0, 30000000};
Batch next_call()
{
    Batch batch;
    batch.calls.resize(1);
    return batch;
}

double lost_s()
{
    double value;
    __atomic_load(&shared()->lost_s, &value, __ATOMIC_ACQUIRE);
    return value;
}

} // namespace

/* Calls on the communicator that is about to fail: done, or failed as it must. */
void Thread::tolerate(enum twill_status status, const std::string &what)
{
    if (status != failure_of(c_))
        must(status, what, ranks_[0].comms[0]);
}

bool Thread::is_here(int rank) const
{
    bool found = false;
    for (const Rank &own : ranks_)
        found = found || own.rank == rank;
    return found;
}

/* @return the communicator's state, once all that was given to it is over */
enum twill_status Thread::attempt()
{
    const bool group = c_.finale.batch.group || many();
    if (group)
        must(twill_group_start(), "group_start", nullptr);
    for (const Pending &pending : pending_)
        tolerate(pending.buffers->call(pending.comm(),
                                       streams_[pending.what().streams[pending.rank->rank]]),
                 pending.where);
    if (group)
        tolerate(twill_group_end(), "group_end");
    for (int i = 1; i <= STREAMS; i++)
        tolerate(twill_stream_synchronize(streams_[i]), "stream_synchronize");
    enum twill_status state = TWILL_OK;
    for (const Rank &rank : ranks_) {
        enum twill_status own;
        must(twill_comm_async_error(rank.comms[0], &own), "async_error", nullptr);
        state = own == TWILL_OK ? state : own;
    }
    return state;
}

/* Every rank hears of it, may it have done its own part or not. */
void Thread::expect_failed()
{
    const enum twill_status want = failure_of(c_);
    for (const Rank &rank : ranks_) {
        const std::string who = "rank " + std::to_string(rank.rank) + " after it failed";
        twill_comm_t comm = rank.comms[0];
        enum twill_status status = TWILL_OK;
        while (status == TWILL_OK && twill_comm_async_error(comm, &status) == TWILL_OK)
            sched_yield();
        const enum twill_status later = twill_barrier(comm, streams_[rank.rank % (STREAMS + 1)]);
        const std::string text = twill_last_error(comm);
        if (status != want || later != want || !names_guilty(c_, text))
            fail(who + ": " + twill_status_string(status) + ", a barrier " +
                 twill_status_string(later) + ": " + text);
        const double since_s = now_s() - lost_s();
        if (c_.finale.trouble != DIFFERS && since_s > TOLD_S)
            fail(who + ": it was told after " + std::to_string(since_s) + " s");
        if (c_.finalizes && twill_comm_finalize(comm) != want)
            fail(who + ": finalize did not say so");
    }
}

void Thread::differ()
{
    const Finale &finale = c_.finale;
    for (Pending &pending : pending_) {
        const bool guilty = pending.rank->rank == finale.guilty;
        const auto number = (size_t)(&pending - pending_.data()) % finale.batch.calls.size();
        if (guilty && number == finale.which)
            pending.buffers = std::make_unique<Buffers>(c_, finale.other, finale.guilty);
        tolerate(pending.buffers->prepare(pending.comm()), pending.where + " op_create");
    }
    if (attempt() != TWILL_OK)
        return;
    pending_.clear();
    prepare(next_call(), (int)c_.batches.size());
    if (is_here(finale.guilty))
        nanosleep(&LATE, nullptr);
    if (attempt() != TWILL_OK)
        return;
    fail("nobody noticed that rank " + std::to_string(finale.guilty) + " called " +
         finale.other.text());
    _exit(3);
}

/* The calls of a rank that is soon lost, or that loses one, over and over. */
void Thread::be_cut()
{
    std::thread strike;
    for (Pending &pending : pending_) {
        tolerate(pending.buffers->prepare(pending.comm()), pending.where + " op_create");
        pending.buffers->keep_op(true);
    }
    for (const Rank &rank : ranks_)
        if (rank.rank == c_.finale.guilty)
            strike = std::thread(strike_later, std::cref(c_), rank.comms[0]);
    while (attempt() == TWILL_OK)
        ;
    if (strike.joinable())
        strike.join();
}

/* Those that are left make a communicator, and a call that comes right. */
void Thread::shrink()
{
    enum twill_status status = TWILL_OK;
    if (many())
        must(twill_group_start(), "group_start", nullptr);
    for (Rank &rank : ranks_) {
        status = twill_comm_shrink(rank.comms[0], &rank.comms[2], nullptr);
        if (status != TWILL_INPROGRESS)
            must(status, "shrink", rank.comms[0]);
    }
    if (many())
        status = twill_group_end();
    for (const Rank &rank : ranks_) {
        const Place at = place(c_, 2, rank.rank);
        int own = -1, size = -1;
        await(status, "shrink", rank.comms[2]);
        must(twill_comm_rank(rank.comms[2], &own), "rank", rank.comms[2]);
        must(twill_comm_size(rank.comms[2], &size), "size", rank.comms[2]);
        if (own != at.rank || size != at.size())
            fail("shrunk: rank " + std::to_string(own) + " of " + std::to_string(size));
    }
    make(c_.finale.after, (int)c_.batches.size() + 1);
}

void Thread::end()
{
    (void)__atomic_add_fetch(&shared()->at_end, (int)ranks_.size(), __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&shared()->at_end, __ATOMIC_ACQUIRE) < c_.size)
        sched_yield();
    prepare(c_.finale.batch, (int)c_.batches.size());
    if (c_.finale.trouble == DIFFERS)
        differ();
    else
        be_cut();
    expect_failed();
    for (const Pending &pending : pending_) {
        const std::string wrong = pending.buffers->check_rest();
        if (!wrong.empty())
            fail(pending.where + ": " + wrong + ": " + pending.what().text());
    }
    pending_.clear();
    for (int i = 1; i <= STREAMS; i++)
        tolerate(twill_stream_synchronize(streams_[i]), "stream_synchronize");
    if (c_.finale.shrinks)
        shrink();
}

} // namespace property
