/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls of ranks on devices that do not match: each rank hears of it within a second, and of
 * both calls. Never knows: calls that are wrong by themselves (errors.cc). */
#include <functional>
#include <thread>

#include "gpu/base.h"
#include "gpu/world.h"

namespace gpu
{

namespace
{

const size_t BYTES = (size_t)16 << 20; /* of a buffer; there are two of each rank */

struct Place { /* where a rank makes its call */
    twill_comm_t comm;
    char *in, *out;
    cudaStream_t stream;
};
typedef std::function<enum twill_status(const Place &)> Call;

Call all_reduce(size_t count, twill_type_t type, twill_redop_t op)
{
    return [=](const Place &p) {
        return twill_all_reduce(p.in, p.out, count, type, op, p.comm, p.stream);
    };
}
Call reduce_scatter(size_t count)
{
    return [=](const Place &p) {
        return twill_reduce_scatter(p.in, p.out, count, TWILL_FLOAT32, TWILL_SUM, p.comm, p.stream);
    };
}
Call all_gather(size_t count)
{
    return [=](const Place &p) {
        return twill_all_gather(p.in, p.out, count, TWILL_FLOAT32, p.comm, p.stream);
    };
}
Call broadcast(size_t count, int root)
{
    return [=](const Place &p) {
        return twill_broadcast(p.in, p.out, count, TWILL_FLOAT32, root, p.comm, p.stream);
    };
}
Call reduce(size_t count, int root)
{
    return [=](const Place &p) {
        return twill_reduce(p.in, p.out, count, TWILL_FLOAT32, TWILL_SUM, root, p.comm, p.stream);
    };
}
/* Calls whose blocks all have what is usual, but one that this rank says otherwise of. */
const int MOST = 4; /* ranks */
struct Counts {
    Counts(size_t usual, int which, size_t count) : all(MOST, usual)
    {
        if (which >= 0)
            all[(size_t)which] = count;
    }
    const size_t *get() const { return all.data(); }
    std::vector<size_t> all;
};
Call all_gather_v(size_t usual, int which = -1, size_t count = 0)
{
    return [=](const Place &p) {
        const Counts counts(usual, which, count);
        return twill_all_gather_v(p.in, p.out, counts.get(), nullptr, TWILL_FLOAT32, p.comm,
                                  p.stream);
    };
}
Call reduce_scatter_v(size_t usual, int which = -1, size_t count = 0)
{
    return [=](const Place &p) {
        const Counts counts(usual, which, count);
        return twill_reduce_scatter_v(p.in, p.out, counts.get(), nullptr, TWILL_FLOAT32, TWILL_SUM,
                                      p.comm, p.stream);
    };
}
/* What the rank gives rank 0, and takes from it. */
Call all_to_all_v(size_t usual, size_t gives, size_t takes)
{
    return [=](const Place &p) {
        const Counts in(usual, 0, gives), out(usual, 0, takes);
        return twill_all_to_all_v(p.in, in.get(), nullptr, p.out, out.get(), nullptr, TWILL_FLOAT32,
                                  p.comm, p.stream);
    };
}
/* Of what is usual at the root, 0. */
Call gather_v(size_t usual, size_t count)
{
    return [=](const Place &p) {
        const Counts counts(usual, -1, 0);
        return twill_gather_v(p.in, count, p.out, counts.get(), nullptr, TWILL_FLOAT32, 0, p.comm,
                              p.stream);
    };
}
Call scatter_v(size_t usual, size_t count)
{
    return [=](const Place &p) {
        const Counts counts(usual, -1, 0);
        return twill_scatter_v(p.in, counts.get(), nullptr, p.out, count, TWILL_FLOAT32, 0, p.comm,
                               p.stream);
    };
}
Call barrier()
{
    return [](const Place &p) { return twill_barrier(p.comm, p.stream); };
}

class Ranks
{
  public:
    explicit Ranks(int size) : world(place(size, 0))
    {
        for (int r = 0; r < size; r++)
            memory_.push_back(std::make_unique<Memory>(world.rank(r).device, 2 * BYTES));
    }
    Place at(int r)
    {
        char *memory = memory_[(size_t)r]->get();
        return {world.rank(r).comm, memory, memory + BYTES, *world.rank(r).own[0]};
    }
    World world;

  private:
    std::vector<std::unique_ptr<Memory>> memory_;
};

enum twill_status state_of(twill_comm_t comm)
{
    enum twill_status status = TWILL_OK;
    TWILL(twill_comm_async_error(comm, &status), comm);
    return status;
}

void expect_named(Ranks *ranks, double then_s, const std::vector<std::string> &words)
{
    for (auto &local : ranks->world.locals()) {
        const double left_s = std::max(0.0, then_s + 1 - now_s());

        EXPECT_TRUE(within(left_s, [&] { return state_of(local->comm) < 0; }))
            << "rank " << local->rank << " has heard of nothing";
        EXPECT_EQ(state_of(local->comm), TWILL_ERR_MISMATCH);
        EXPECT_TRUE(wait_within(local->device, *local->own[0], 1))
            << "the stream of rank " << local->rank << " does not go on";
        const std::string text = twill_last_error(local->comm);
        for (const std::string &word : words)
            EXPECT_TRUE(contains(text, word))
                << "rank " << local->rank << ": \"" << text << "\" does not say " << word;
    }
}

void fine_or_mismatch(enum twill_status status)
{
    EXPECT_TRUE(status == TWILL_OK || status == TWILL_ERR_MISMATCH) << twill_status_string(status);
}

/* The last rank makes another call than the others, from threads or from one. A call that waits for
 * nobody is followed by one that does. */
void clash(int size, bool threads, const Call &usual, const Call &other,
           const std::vector<std::string> &words)
{
    Ranks ranks(size);
    const auto call = [&](int r) { return (r == size - 1 ? other : usual)(ranks.at(r)); };
    const double then_s = now_s();

    if (threads) {
        on_threads(size, [&](int r) {
            fine_or_mismatch(call(r));
            fine_or_mismatch(twill_barrier(ranks.at(r).comm, ranks.at(r).stream));
        });
    } else {
        TWILL(twill_group_start(), nullptr);
        for (int r = 0; r < size; r++)
            fine_or_mismatch(call(r));
        fine_or_mismatch(twill_group_end());
        TWILL(twill_group_start(), nullptr);
        for (int r = 0; r < size; r++)
            fine_or_mismatch(twill_barrier(ranks.at(r).comm, ranks.at(r).stream));
        fine_or_mismatch(twill_group_end());
    }
    expect_named(&ranks, then_s, words);
}

void clash_all(const char *what, const Call &usual, const Call &other,
               const std::vector<std::string> &words)
{
    for (int size : {2, 3, 4})
        for (bool threads : {true, false}) {
            const std::string name =
                format("%s, %d ranks, %s", what, size, threads ? "threads" : "a group");
            SCOPED_TRACE(name);
            step(name);
            clash(size, threads, usual, other, words);
        }
}

} // namespace

TEST(Mismatch, Count)
{
    clash_all("few", all_reduce(1000, TWILL_FLOAT32, TWILL_SUM),
              all_reduce(1001, TWILL_FLOAT32, TWILL_SUM), {"all_reduce", "1000", "1001"});
    clash_all("many", all_reduce(1000000, TWILL_FLOAT32, TWILL_SUM),
              all_reduce(1000001, TWILL_FLOAT32, TWILL_SUM), {"all_reduce", "1000000", "1000001"});
    clash_all("few and many", all_reduce(10, TWILL_FLOAT32, TWILL_SUM),
              all_reduce(2000000, TWILL_FLOAT32, TWILL_SUM), {"all_reduce", " 10 ", "2000000"});
    clash_all("none", all_reduce(0, TWILL_FLOAT32, TWILL_SUM),
              all_reduce(5, TWILL_FLOAT32, TWILL_SUM), {"all_reduce", " 0 ", " 5 "});
}

TEST(Mismatch, Type)
{
    clash_all("few", all_reduce(1000, TWILL_FLOAT32, TWILL_SUM),
              all_reduce(1000, TWILL_INT32, TWILL_SUM), {"float32", "int32"});
    clash_all("many", all_reduce(1000000, TWILL_FLOAT16, TWILL_SUM),
              all_reduce(1000000, TWILL_BFLOAT16, TWILL_SUM), {" float16", " bfloat16"});
    clash_all("of other sizes", all_reduce(1000, TWILL_FLOAT64, TWILL_MAX),
              all_reduce(1000, TWILL_INT8, TWILL_MAX), {"float64", "int8"});
}

TEST(Mismatch, Operation)
{
    clash_all("few", all_reduce(1000, TWILL_INT32, TWILL_SUM),
              all_reduce(1000, TWILL_INT32, TWILL_MAX), {"sum", "max"});
    clash_all("many", all_reduce(1000000, TWILL_FLOAT32, TWILL_AVG),
              all_reduce(1000000, TWILL_FLOAT32, TWILL_MIN), {"avg", "min"});
}

TEST(Mismatch, Root)
{
    clash_all("broadcast", broadcast(1000, 0), broadcast(1000, 1), {"root 0", "root 1"});
    clash_all("large broadcast", broadcast(1000000, 0), broadcast(1000000, 1),
              {"root 0", "root 1"});
    clash_all("reduce", reduce(1000, 1), reduce(1000, 0), {"root 0", "root 1"});
}

TEST(Mismatch, Collective)
{
    clash_all("few", all_reduce(1000, TWILL_FLOAT32, TWILL_SUM), broadcast(1000, 0),
              {"all_reduce", "broadcast"});
    clash_all("many", reduce_scatter(500000), all_gather(500000), {"reduce_scatter", "all_gather"});
    clash_all("barrier", all_gather(1000), barrier(), {"all_gather", "barrier"});
}

/* The counts of a pair, from both sides: small, large, of either sort, none. */
const struct {
    const char *what;
    size_t usual, other;
} pairs[] = {{"few", 100, 101},
             {"many", 1000000, 1000001},
             {"few for many", 400000, 50},
             {"many for few", 50, 400000},
             {"none", 100, 0},
             {"some for none", 0, 100},
             {"many for none", 0, 400000}};

std::string said(size_t count) { return format(" %zu elements", count); }
std::string heard(size_t count) { return format(" %zu from it", count); }

void clash_few(const char *what, const Call &usual, const Call &other,
               const std::vector<std::string> &words)
{
    SCOPED_TRACE(what);
    step(what);
    clash(3, true, usual, other, words);
    clash(2, false, usual, other, words);
}

TEST(Mismatch, PairsOfAllToAllV)
{
    for (const auto &pair : pairs) {
        const size_t usual = pair.usual, other = pair.other;
        const Call all = all_to_all_v(usual, usual, usual);

        /* ranks 0 and the last one: what one gives is what the other takes */
        clash_few(pair.what, all, all_to_all_v(usual, other, usual),
                  {"all_to_all_v", said(other), heard(usual)});
        clash_few(pair.what, all, all_to_all_v(usual, usual, other),
                  {"all_to_all_v", said(usual), heard(other)});
    }
}

TEST(Mismatch, PairsOfRootedCalls)
{
    for (const auto &pair : pairs) {
        const size_t usual = pair.usual, other = pair.other;

        clash_few(pair.what, gather_v(usual, usual), gather_v(usual, other),
                  {"gather_v", said(other), heard(usual)});
        clash_few(pair.what, scatter_v(usual, usual), scatter_v(usual, other),
                  {"scatter_v", said(usual), heard(other)});
    }
}

/* What the last rank thinks of another's block. */
TEST(Mismatch, CountsOfAllRanks)
{
    for (const auto &pair : pairs) {
        const size_t usual = pair.usual, other = pair.other;

        clash_few(pair.what, all_gather_v(usual), all_gather_v(usual, 0, other),
                  {"all_gather_v", said(usual), heard(other)});
        clash_few(pair.what, reduce_scatter_v(usual), reduce_scatter_v(usual, 0, other),
                  {"reduce_scatter_v", said(other), heard(usual)});
    }
}

TEST(Mismatch, CollectiveV)
{
    clash_all("few", all_gather_v(100), all_gather(100), {"all_gather_v ", "all_gather "});
    clash_all("many", all_to_all_v(300000, 300000, 300000), reduce_scatter_v(300000),
              {"all_to_all_v", "reduce_scatter_v"});
    clash_all("root", gather_v(100, 100), broadcast(100, 0), {"gather_v", "broadcast"});
}

/* One rank makes a call more: it waits, and so does nobody else, until the next call. */
TEST(Mismatch, OneCallMore)
{
    Ranks ranks(2);
    const double then_s = now_s();

    on_threads(2, [&](int r) {
        const Place at = ranks.at(r);

        TWILL(twill_all_reduce(at.in, at.out, 100, TWILL_FLOAT32, TWILL_SUM, at.comm, at.stream),
              at.comm);
        if (r == 0)
            fine_or_mismatch(all_gather(100)(at));
        fine_or_mismatch(broadcast(77, 0)(at));
    });
    expect_named(&ranks, then_s, {"all_gather", "broadcast"});
}

} // namespace gpu
