/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the value that the deterministic mode promises of every element, computed here by its
 * definition. Never knows: which plans bring it about. */
#include <cmath>
#include <cstdint>

#include "data.h"
#include "world.h"

namespace
{

enum Kind { ALL_REDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_V, KINDS };

/* Magnitudes far apart, so that every order of adding has its own result. */
double input(twill_type_t type, int rank, size_t i)
{
    const uint64_t bits = data::mix((uint64_t)rank * 7919 + i);
    if (type == TWILL_INT32)
        return (double)(int32_t)(bits & 0xffffff);
    const int digits = type == TWILL_BFLOAT16 ? 8 : 24;
    const double whole = 1 + (double)(bits >> 40) / (1 << 24);
    const double cut = std::floor(std::ldexp(whole, digits - 1));
    return std::ldexp(bits & 1 ? -cut : cut, (int)(bits >> 8 & 15) - digits);
}

/* One addition as partials are added: fp32 for what is not wider. */
double add(twill_type_t type, double a, double b)
{
    if (type == TWILL_FLOAT64 || type == TWILL_INT32)
        return a + b;
    return (double)((float)a + (float)b);
}

/* Ranks first to first + n - 1: split at the largest power of two below n. */
double tree(twill_type_t type, int first, int n, size_t i)
{
    if (n == 1)
        return input(type, first, i);
    int left = 1;
    while (2 * left < n)
        left *= 2;
    return add(type, tree(type, first, left, i), tree(type, first + left, n - left, i));
}

double value(twill_type_t type, twill_redop_t op, int size, size_t i)
{
    const double sum = tree(type, 0, size, i);
    if (op != TWILL_AVG)
        return sum;
    if (type == TWILL_INT32)
        return (double)((int64_t)sum / size);
    return type == TWILL_FLOAT64 ? sum / size : (double)((float)sum / (float)size);
}

struct Job {
    Kind kind;
    twill_type_t type;
    twill_redop_t op;
    size_t count; /* all_reduce, reduce: elements; else of a block in the mean */
    int root;
};

size_t block_count(const Job &job, int block)
{
    return job.kind == REDUCE_SCATTER_V ? job.count / 2 + (size_t)block % 3 * (job.count / 2)
                                        : job.count;
}

/* One rank's call, whole or cut in two. */
struct Side {
    Job job;
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
            data::store(in.data() + i * width, input(job.type, rank, i), job.type);
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
        const size_t width = data::type_bytes(job.type);
        for (size_t i = 0; i < block_count(job, rank); i++) {
            unsigned char want[8];
            data::store(want, value(job.type, job.op, size, first + i), job.type);
            if ((job.kind != REDUCE || rank == job.root) &&
                memcmp(want, out.data() + i * width, width) != 0)
                return "kind " + std::to_string(job.kind) + " type " + std::to_string(job.type) +
                       " op " + std::to_string(job.op) + " rank " + std::to_string(rank) + " of " +
                       std::to_string(size) + ": element " + std::to_string(i) +
                       " is not the defined one";
        }
        return "";
    }
};

std::vector<Job> jobs(int size)
{
    std::vector<Job> all;
    for (int kind = 0; kind < KINDS; kind++) {
        for (const twill_type_t type :
             {TWILL_FLOAT32, TWILL_BFLOAT16, TWILL_FLOAT64, TWILL_INT32}) {
            const twill_redop_t op = all.size() % 3 ? TWILL_SUM : TWILL_AVG;
            all.push_back({(Kind)kind, type, op, 100, (int)all.size() % size});
            if (type == TWILL_FLOAT32)
                all.push_back({(Kind)kind, type, TWILL_SUM, 9000, size - 1});
        }
    }
    return all;
}

twill_config deterministic()
{
    twill_config config = TWILL_CONFIG_INIT;
    config.deterministic = 1;
    return config;
}

void run_jobs(twill_comm_t comm, int rank, int size)
{
    for (const Job &job : jobs(size)) {
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
void run_group(const std::vector<twill_comm_t> &comms, int first, int size)
{
    for (const Job &job : jobs(size)) {
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

std::vector<int> sizes()
{
    std::vector<int> all = {1, 2, 3, 5, 8};
    if (world::budget_s() > 30)
        all.insert(all.end(), {4, 6, 7, 9, 13, 16, 17, 33});
    return all;
}

/* The same bits from every algorithm, with any channels, in one call or two. */
TEST(Deterministic, ProcessesGetTheDefinedValue)
{
    static const char *const algos[] = {"ordered", "ordered_direct", "ordered_tree",
                                        "ordered_halving"};
    const bool every = world::budget_s() > 30;
    int channels = 0;
    for (const int size : sizes()) {
        for (int i = -1; i < 4; i++) {
            const char *algo = i < 0 ? "" : algos[i];
            channels = channels % 3 + 1;
            if (!every && i >= 0 && i != size % 4 && size != 3) /* -1: the library's choice */
                continue;
            world::run_all(size,
                           [&](const world::Rank &rank) {
                               const twill_config config = deterministic();
                               twill_comm_t comm = rank.init(&config);
                               ASSERT_NE(comm, nullptr);
                               run_jobs(comm, rank.rank, size);
                               EXPECT_OK(twill_comm_destroy(comm), nullptr);
                           },
                           {{"TWILL_ALGO", algo},
                            {"TWILL_CHANNELS", std::to_string(channels)},
                            {"TWILL_LOG", "error"}});
            if (HasFailure())
                FAIL() << size << " ranks, algorithm \"" << algo << "\", " << channels
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
                run_group(comms, 0, size);
                for (twill_comm_t comm : comms)
                    EXPECT_OK(twill_comm_destroy(comm), nullptr);
            },
            {{"TWILL_DETERMINISTIC", "1"}});
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
        run_group(comms, first, 5);
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
