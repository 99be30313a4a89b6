/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the value that the deterministic mode promises of every element, computed here by its
 * definition. Never knows: which plans bring it about. */
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "data.h"
#include "world.h"

namespace
{

enum Kind { ALL_REDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_V, KINDS };

/* Magnitudes far apart, so that every order of adding has its own result; to be multiplied, near
 * 1. Products of whole numbers wrap. */
uint64_t input(twill_type_t type, twill_redop_t op, int rank, size_t i)
{
    const uint64_t bits = data::mix((uint64_t)rank * 7919 + i);
    if (!reference::is_float(type))
        return bits & UINT64_MAX >> (64 - 8 * data::type_bytes(type));
    const double sign = bits & 1 ? -1 : 1, whole = 1 + (double)(bits >> 40) / (1 << 24);
    const int range = data::is_float8(type) ? 4 : 12;
    const int exponent = op == TWILL_PROD ? -(rank % 2) : (int)(bits >> 8 & 15) * range / 15 - 1;
    return reference::encode(type, sign * std::ldexp(whole, exponent));
}

/* Ranks first to first + n - 1, of the wide type: split at the largest power of two below n. */
uint64_t tree(twill_type_t type, twill_redop_t op, int first, int n, size_t i)
{
    if (n == 1)
        return reference::widen(type, input(type, op, first, i));
    int left = 1;
    while (2 * left < n)
        left *= 2;
    const twill_type_t wide = reference::wide_type(type);
    return reference::reduce_wide(op, wide, tree(type, op, first, left, i), wide,
                                  tree(type, op, first + left, n - left, i));
}

/* One rank's input stays as it is, but for an average. */
uint64_t value(twill_type_t type, twill_redop_t op, int size, size_t i)
{
    const uint64_t all = tree(type, op, 0, size, i);
    if (op == TWILL_AVG)
        return reference::divide(type, all, size);
    return reference::is_narrow(type)
               ? reference::encode(type, reference::decode(TWILL_FLOAT32, all))
               : all;
}

struct Job {
    Kind kind;
    twill_type_t type;
    twill_redop_t op;
    size_t count; /* all_reduce, reduce: elements; else of a block in the mean */
    int root;
    std::vector<uint64_t> want; /* of all blocks */
};

size_t block_count(const Job &job, int block)
{
    return job.kind == REDUCE_SCATTER_V ? job.count / 2 + (size_t)block % 3 * (job.count / 2)
                                        : job.count;
}

/* One rank's call, whole or cut in two. */
struct Side {
    const Job &job;
    int rank, size;
    size_t first = 0, total = 0; /* of the result in the input; elements of the input */
    data::Bytes in, out;
    std::vector<size_t> counts, displs;

    Side(const Job &j, int r, int n) : job(j), rank(r), size(n)
    {
        const size_t width = data::type_bytes(job.type);
        const bool scatters = job.kind == REDUCE_SCATTER || job.kind == REDUCE_SCATTER_V;
        for (int block = 0; block < (scatters ? size : 1); block++) {
            first = block == rank ? total : first;
            displs.push_back(total);
            counts.push_back(block_count(job, block));
            total += counts.back();
        }
        in.resize(total * width + 1);
        out.resize(block_count(job, rank) * width + 1);
        for (size_t i = 0; i < total; i++)
            reference::store(job.type, in.data(), i, input(job.type, job.op, rank, i));
    }
    enum twill_status call(twill_comm_t comm, size_t from, size_t to)
    {
        const size_t width = data::type_bytes(job.type);
        unsigned char *send = in.data() + from * width, *recv = out.data() + from * width;
        switch (job.kind) {
        case ALL_REDUCE:
            return twill_all_reduce(send, recv, to - from, job.type, job.op, comm, nullptr);
        case REDUCE:
            return twill_reduce(send, recv, to - from, job.type, job.op, job.root, comm, nullptr);
        case REDUCE_SCATTER:
            return twill_reduce_scatter(in.data(), out.data(), job.count, job.type, job.op, comm,
                                        nullptr);
        default:
            return twill_reduce_scatter_v(in.data(), out.data(), counts.data(), displs.data(),
                                          job.type, job.op, comm, nullptr);
        }
    }
    bool may_cut() const { return job.kind == ALL_REDUCE || job.kind == REDUCE; }
    std::string check() const
    {
        if (job.kind == REDUCE && rank != job.root)
            return "";
        for (size_t i = 0; i < block_count(job, rank); i++) {
            if (reference::load(job.type, out.data(), i) != job.want[first + i])
                return "kind " + std::to_string(job.kind) + " type " + std::to_string(job.type) +
                       " op " + std::to_string(job.op) + " rank " + std::to_string(rank) + " of " +
                       std::to_string(size) + ": element " + std::to_string(i) +
                       " is not the defined one";
        }
        return "";
    }
};

/* Every collective with every type, the operations that depend on an order in turn; and a size that
 * takes another algorithm where the library chooses. */
std::vector<Job> jobs(int size)
{
    static const twill_redop_t ops[] = {TWILL_SUM, TWILL_AVG, TWILL_PROD};
    std::vector<Job> all;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int type = 0; type < reference::type_count; type++)
            all.push_back({(Kind)kind,
                           (twill_type_t)type,
                           ops[(kind + type + size) % 3],
                           size > 9 ? 20u : 100u,
                           (int)all.size() % size,
                           {}});
        all.push_back(
            {(Kind)kind, TWILL_FLOAT32, TWILL_SUM, size > 9 ? 3000u : 9000u, size - 1, {}});
    }
    for (Job &job : all) {
        const Side side(job, 0, size);
        for (size_t i = 0; i < side.total; i++)
            job.want.push_back(value(job.type, job.op, size, i));
    }
    return all;
}

twill_config deterministic()
{
    twill_config config = TWILL_CONFIG_INIT;
    config.deterministic = 1;
    return config;
}

void run_jobs(const std::vector<Job> &all, twill_comm_t comm, int rank, int size)
{
    for (const Job &job : all) {
        Side whole(job, rank, size), cut(job, rank, size);
        ASSERT_OK(whole.call(comm, 0, job.count), comm);
        ASSERT_EQ(whole.check(), "");
        if (!cut.may_cut())
            continue;
        ASSERT_OK(cut.call(comm, 0, job.count / 3), comm);
        ASSERT_OK(cut.call(comm, job.count / 3, job.count), comm);
        ASSERT_EQ(cut.check(), "");
    }
}

/* The ranks of `comms` in one thread, others elsewhere. */
void run_group(const std::vector<Job> &all, const std::vector<twill_comm_t> &comms, int first,
               int size)
{
    for (const Job &job : all) {
        std::vector<Side> sides;
        for (size_t i = 0; i < comms.size(); i++)
            sides.emplace_back(job, first + (int)i, size);
        ASSERT_OK(twill_group_start(), nullptr);
        for (size_t i = 0; i < comms.size(); i++)
            ASSERT_OK(sides[i].call(comms[i], 0, job.count), comms[i]);
        ASSERT_OK(twill_group_end(), nullptr);
        for (const Side &side : sides)
            ASSERT_EQ(side.check(), "");
    }
}

const char *const ALGOS[] = {"", "ordered", "ordered_direct", "ordered_tree",
                             "ordered_halving"}; /* "": the library's choice */

/* 1 to 33 where there is time for it. */
std::vector<int> sizes()
{
    std::vector<int> all = {1, 2, 3, 5, 8};
    for (int size = 1; size <= 33 && world::budget_s() > 30; size++)
        if (std::find(all.begin(), all.end(), size) == all.end())
            all.push_back(size);
    return all;
}

/* The same bits from every algorithm, with any channels, in one call or two. */
TEST(Deterministic, ProcessesGetTheDefinedValue)
{
    int channels = 0;
    for (const int size : sizes()) {
        const std::vector<Job> all_jobs = jobs(size); /* before there are ranks */
        for (int i = 0; i < 5; i++) {
            const bool all = size == 3 || (world::budget_s() > 30 && size <= 9);
            channels = channels % 3 + 1;
            if (!all && i != size % 5)
                continue;
            world::run_all(size,
                           [&](const world::Rank &rank) {
                               const twill_config config = deterministic();
                               twill_comm_t comm = rank.init(&config);
                               ASSERT_NE(comm, nullptr);
                               run_jobs(all_jobs, comm, rank.rank, size);
                               EXPECT_OK(twill_comm_destroy(comm), nullptr);
                           },
                           {{"TWILL_ALGO", ALGOS[i]},
                            {"TWILL_CHANNELS", std::to_string(channels)},
                            {"TWILL_LOG", "error"}});
            if (HasFailure())
                FAIL() << size << " ranks, algorithm \"" << ALGOS[i] << "\", " << channels
                       << " channels";
        }
    }
}

TEST(Deterministic, OneProcessGetsTheSame)
{
    for (const int size : sizes())
        world::run_alone(
            [&] {
                std::vector<twill_comm_t> comms((size_t)size);
                ASSERT_OK(twill_comm_init_all(comms.data(), size, nullptr, nullptr), nullptr);
                run_group(jobs(size), comms, 0, size);
                for (twill_comm_t comm : comms)
                    EXPECT_OK(twill_comm_destroy(comm), nullptr);
            },
            {{"TWILL_DETERMINISTIC", "1"},
             {"TWILL_STAGING", "256M"}, /* 33 ranks have their slots in one process */
             {"TWILL_ALGO", ALGOS[(size + 2) % 5]},
             {"TWILL_CHANNELS", std::to_string(1 + size % 3)}});
}

/* Ranks 0 and 1 in one process, 2 to 4 in another. */
TEST(Deterministic, MixedPlacementGetsTheSame)
{
    world::run_all(2, [](const world::Rank &process) {
        const int first = process.rank ? 2 : 0, here = process.rank ? 3 : 2;
        const twill_config config = deterministic();
        const twill_unique_id id = process.id();
        std::vector<twill_comm_t> comms((size_t)here);
        ASSERT_OK(twill_group_start(), nullptr);
        for (int i = 0; i < here; i++)
            ASSERT_OK(twill_comm_init(&comms[(size_t)i], 5, &id, first + i, &config), nullptr);
        ASSERT_OK(twill_group_end(), nullptr);
        run_group(jobs(5), comms, first, 5);
        for (twill_comm_t comm : comms)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Deterministic, RanksThatDisagreeHearBothValues)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_config config = TWILL_CONFIG_INIT;
        config.deterministic = rank.rank;
        const twill_unique_id id = rank.id();
        twill_comm_t comm = nullptr;
        EXPECT_EQ(twill_comm_init(&comm, 2, &id, rank.rank, &config), TWILL_ERR_VERSION);
        for (const char *part : {"rank 0 has deterministic=0", "rank 1 has deterministic=1"})
            EXPECT_NE(world::text(nullptr).find(part), std::string::npos) << world::text(nullptr);
        rank.meet(1);
    });
}

/* What would break the promise is an error, or left to choice where it was not asked for. */
TEST(Deterministic, AlgorithmsOfNoDefinedOrderAreNotTaken)
{
    world::run_alone(
        [] {
            const twill_config config = deterministic();
            twill_comm_t comms[2];
            EXPECT_EQ(twill_comm_init_all(comms, 2, nullptr, &config), TWILL_ERR_INVALID);
            EXPECT_NE(world::text(nullptr).find("in the deterministic mode; there are: ordered"),
                      std::string::npos)
                << world::text(nullptr);
        },
        {{"TWILL_ALGO", "all_reduce=ring"}});
    world::run_alone(
        [] {
            const twill_config config = deterministic();
            twill_comm_t comms[2];
            ASSERT_OK(twill_comm_init_all(comms, 2, nullptr, &config), nullptr);
            struct twill_choice choice = TWILL_CHOICE_INIT;
            ASSERT_OK(twill_comm_choice(comms[0], "all_reduce", 100, TWILL_FLOAT32, 0, &choice),
                      comms[0]);
            EXPECT_EQ(std::string(choice.algo).rfind("ordered", 0), 0u) << choice.algo;
            ASSERT_OK(twill_comm_choice(comms[0], "all_gather", 100, TWILL_FLOAT32, 0, &choice),
                      comms[0]);
            EXPECT_STREQ(choice.algo, "ring");
            for (twill_comm_t comm : comms)
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
        },
        {{"TWILL_ALGO", "ring"}});
}

} // namespace
