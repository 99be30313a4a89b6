/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a user names algorithms and hands plans in, and that each computes the same.
 * Never knows: how an algorithm works. */
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "world.h"

extern "C" {
#include "algo/algo.h"
#include "device/reduce.h"
}

namespace
{

/* Runs a collective of every size class on comm and compares. */
void all_reduce_is_right(twill_comm_t comm, int size)
{
    for (const size_t count : {(size_t)1, (size_t)13, (size_t)1000, (size_t)40001}) {
        int rank = 0;
        ASSERT_OK(twill_comm_rank(comm, &rank), comm);
        data::Bytes x(4 * count), want(4 * count);
        data::fill(x.data(), count, TWILL_FLOAT32, count, rank);
        data::fill_reduced(want.data(), count, TWILL_FLOAT32, TWILL_SUM, count, size);
        ASSERT_OK(
            twill_all_reduce(x.data(), x.data(), count, TWILL_FLOAT32, TWILL_SUM, comm, nullptr),
            comm);
        ASSERT_EQ(x, want) << count;
    }
}

void one_of_every_kind(twill_comm_t comm, int rank, int size)
{
    const size_t count = 5003;
    const auto ranks = (size_t)size;
    std::vector<int> in(count * ranks), out(count * ranks);
    for (size_t i = 0; i < in.size(); i++)
        in[i] = (int)i * (rank + 1);
    const int sum = size * (size + 1) / 2, root = size - 1;
    ASSERT_OK(
        twill_reduce_scatter(in.data(), out.data(), count, TWILL_INT32, TWILL_SUM, comm, nullptr),
        comm);
    for (size_t i = 0; i < count; i++)
        ASSERT_EQ(out[i], (int)(count * (size_t)rank + i) * sum);
    ASSERT_OK(twill_all_gather(in.data(), out.data(), count, TWILL_INT32, comm, nullptr), comm);
    for (size_t i = 0; i < out.size(); i++)
        ASSERT_EQ(out[i], (int)(i % count) * (int)(i / count + 1));
    ASSERT_OK(twill_all_to_all(in.data(), out.data(), count, TWILL_INT32, comm, nullptr), comm);
    for (size_t i = 0; i < out.size(); i++)
        ASSERT_EQ(out[i], (int)(count * (size_t)rank + i % count) * (int)(i / count + 1));
    ASSERT_OK(
        twill_reduce(in.data(), out.data(), count, TWILL_INT32, TWILL_SUM, root, comm, nullptr),
        comm);
    for (size_t i = 0; i < count && rank == root; i++)
        ASSERT_EQ(out[i], (int)i * sum);
    ASSERT_OK(twill_broadcast(in.data(), out.data(), count, TWILL_INT32, root, comm, nullptr),
              comm);
    for (size_t i = 0; i < count; i++)
        ASSERT_EQ(out[i], (int)i * size);
    ASSERT_OK(twill_barrier(comm, nullptr), comm);
}

void ranks_as_threads(int size, const world::Env &env,
                      const std::function<void(twill_comm_t, int)> &body)
{
    world::run_alone(
        [&] {
            std::vector<twill_comm_t> comms((size_t)size);
            ASSERT_OK(twill_comm_init_all(comms.data(), size, nullptr, nullptr), nullptr);
            world::threads(size, [&](int rank) { body(comms[(size_t)rank], rank); });
            for (twill_comm_t comm : comms)
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
        },
        env);
}

TEST(Algo, EachOneForcedAndCheckedGivesTheSame)
{
    for (size_t i = 0; const struct tw_algo *algo = tw_algo_at(i); i++) {
        for (const int size : {1, 2, 3, 5})
            ranks_as_threads(size, {{"TWILL_ALGO", algo->name}, {"TWILL_CHECK_PLANS", "1"}},
                             [&](twill_comm_t comm, int rank) {
                                 all_reduce_is_right(comm, size);
                                 one_of_every_kind(comm, rank, size);
                             });
        if (HasFailure())
            FAIL() << algo->name;
    }
}

/* Each instruction set that this CPU has, asked for as a user would. */
TEST(Algo, EachInstructionSetForced)
{
    for (const char *name : {"portable", "avx2", "avx512"}) {
        enum tw_isa isa;
        if (tw_isa_select(name, &isa) != TWILL_OK)
            continue;
        ranks_as_threads(3, {{"TWILL_ISA", name}}, [&](twill_comm_t comm, int rank) {
            all_reduce_is_right(comm, 3);
            one_of_every_kind(comm, rank, 3);
        });
    }
}

TEST(Algo, MoreChannels)
{
    ranks_as_threads(4, {{"TWILL_CHANNELS", "3"}}, [&](twill_comm_t comm, int rank) {
        all_reduce_is_right(comm, 4);
        one_of_every_kind(comm, rank, 4);
    });
}

/* By put and signal between processes: scratch and signal words are mapped. */
TEST(Algo, PutPlansRunBetweenProcesses)
{
    for (const char *algo : {"direct_put", "two_shot_put"})
        world::run_all(3,
                       [&](const world::Rank &rank) {
                           twill_comm_t comm = rank.init();
                           ASSERT_NE(comm, nullptr);
                           all_reduce_is_right(comm, 3);
                           EXPECT_OK(twill_comm_destroy(comm), nullptr);
                       },
                       {{"TWILL_ALGO", algo}});
}

/* What is put into scratch has no header, and nobody waits long. */
TEST(Algo, PutPlansTellOfCallsThatDoNotMatch)
{
    for (const char *algo : {"direct_put", "two_shot_put"})
        world::run_all(3,
                       [&](const world::Rank &rank) {
                           twill_comm_t comm = rank.init();
                           ASSERT_NE(comm, nullptr);
                           const twill_type_t type = rank.rank == 1 ? TWILL_INT32 : TWILL_FLOAT32;
                           const int32_t in[64] = {};
                           int32_t out[64];
                           enum twill_status status =
                               twill_all_reduce(in, out, 64, type, TWILL_SUM, comm, nullptr);
                           if (status == TWILL_OK) /* this rank was done; the others tell it */
                               status = twill_barrier(comm, nullptr);
                           EXPECT_EQ(status, TWILL_ERR_MISMATCH);
                           const std::string text = world::text(comm);
                           EXPECT_NE(text.find("rank 1 called all_reduce #1 count 64 int32"),
                                     std::string::npos)
                               << text;
                           EXPECT_OK(twill_comm_destroy(comm), nullptr);
                       },
                       {{"TWILL_ALGO", algo}});
}

void init_says(const world::Env &env, const std::vector<std::string> &parts)
{
    world::run_alone(
        [&] {
            twill_comm_t comm = nullptr;
            EXPECT_EQ(twill_comm_init_all(&comm, 1, nullptr, nullptr), TWILL_ERR_INVALID);
            for (const std::string &part : parts)
                EXPECT_NE(world::text(nullptr).find(part), std::string::npos)
                    << world::text(nullptr);
        },
        env);
}

TEST(Algo, UnknownNamesListTheKnownOnes)
{
    init_says({{"TWILL_ALGO", "rnig"}}, {"rnig", "ring", "binomial", "pairwise"});
    init_says({{"TWILL_ALGO", "all_reduce=ring,broadcast=rnig"}},
              {"rnig", "broadcast", "ring", "binomial"});
    init_says({{"TWILL_ALGO", "all_to_all=ring"}}, {"ring", "all_to_all", "pairwise"});
    init_says({{"TWILL_ALGO", "allreduce=ring"}}, {"allreduce", "all_reduce", "barrier"});
    init_says({{"TWILL_PROTO", "ll128"}}, {"ll128", "simple"});
}

/* ---- plans from files -------------------------------------------------------------------------
 */

class PlanFile : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        path_ = ::testing::TempDir() + "twill_plan." + std::to_string(getpid());
        struct tw_algo_args args = {};
        args.coll = TW_COLL_ALL_REDUCE;
        args.nranks = 3;
        args.only_rank = -1;
        args.channels = 1;
        struct tw_plan *plan = nullptr;
        ASSERT_EQ(tw_algo_find("ring", TW_COLL_ALL_REDUCE)->generate(&args, &plan), TWILL_OK);
        snprintf(plan->name, sizeof plan->name, "my_plan");
        char *text = nullptr;
        ASSERT_EQ(tw_plan_print(plan, &text), TWILL_OK);
        text_ = text;
        free(text);
        tw_plan_destroy(plan);
    }
    void TearDown() override { remove(path_.c_str()); }
    void write(const std::string &text) { std::ofstream(path_) << text; }

    std::string path_, text_;
};

TEST_F(PlanFile, IsUsedForItsCollectiveAndRankCount)
{
    write(text_);
    for (const int size : {3, 2})
        ranks_as_threads(size, {{"TWILL_PLAN_FILE", path_}, {"TWILL_LOG", "debug"}},
                         [&](twill_comm_t comm, int rank) {
                             all_reduce_is_right(comm, size);
                             one_of_every_kind(comm, rank, size);
                         });
}

/* One name, but not one plan: the parameters are equal, and the calls do not match. */
TEST_F(PlanFile, OfAnotherContentOnOneRankIsFoundAtInit)
{
    world::run_all(3,
                   [&](const world::Rank &rank) {
                       const std::string mine = path_ + "." + std::to_string(rank.rank);
                       std::ofstream(mine) << text_ << (rank.rank == 1 ? "\n" : "");
                       const int fd = open(mine.c_str(), O_RDONLY);
                       ASSERT_EQ(dup2(fd, 200), 200);
                       remove(mine.c_str());
                       const twill_unique_id id = rank.id();
                       twill_comm_t comm = nullptr;
                       EXPECT_EQ(twill_comm_init(&comm, 3, &id, rank.rank, nullptr),
                                 TWILL_ERR_VERSION);
                       for (const char *part : {"rank 1 has TWILL_PLAN_FILE=", "with content"})
                           EXPECT_NE(world::text(nullptr).find(part), std::string::npos)
                               << world::text(nullptr);
                       rank.meet(0); /* the id's process stays until all have heard */
                   },
                   {{"TWILL_PLAN_FILE", "/proc/self/fd/200"}});
}

/* One name, but not one content: the parameters are equal, and yet ranks would not choose alike. */
void init_finds_other_content(const char *variable, const std::string &path,
                              const std::function<std::string(int)> &content)
{
    world::run_all(3,
                   [&](const world::Rank &rank) {
                       const std::string mine = path + "." + std::to_string(rank.rank);
                       std::ofstream(mine) << content(rank.rank);
                       const int fd = open(mine.c_str(), O_RDONLY);
                       ASSERT_EQ(dup2(fd, 200), 200);
                       remove(mine.c_str());
                       const twill_unique_id id = rank.id();
                       twill_comm_t comm = nullptr;
                       EXPECT_EQ(twill_comm_init(&comm, rank.size, &id, rank.rank, nullptr),
                                 TWILL_ERR_MISMATCH);
                       const std::string text = world::text(nullptr);
                       EXPECT_NE(text.find("rank 0 and rank 1"), std::string::npos) << text;
                       EXPECT_NE(text.find(variable), std::string::npos) << text;
                   },
                   {{variable, "/proc/self/fd/200"}});
}

TEST_F(PlanFile, SoIsACostFile)
{
    for (const char *row : {"host.step", "cuda.lines.start"})
        init_finds_other_content("TWILL_COST_FILE", path_, [row](int rank) {
            return std::string("twill-cost 1\n") + row + (rank == 1 ? " 31\n" : " 30\n");
        });
}

/* What the links do not offer is refused before anything starts, on every rank. */
TEST_F(PlanFile, ThatNeedsPeersBuffersIsUnsupported)
{
    struct tw_plan *plan = nullptr;
    ASSERT_EQ(tw_plan_parse(text_.data(), text_.size(), &plan), TWILL_OK);
    plan->caps |= TW_CAP_PEER_BUFFERS;
    char *text = nullptr;
    ASSERT_EQ(tw_plan_print(plan, &text), TWILL_OK);
    write(text);
    free(text);
    tw_plan_destroy(plan);
    ranks_as_threads(3, {{"TWILL_PLAN_FILE", path_}}, [&](twill_comm_t comm, int) {
        float x = 1;
        EXPECT_EQ(twill_all_reduce(&x, &x, 1, TWILL_FLOAT32, TWILL_SUM, comm, nullptr),
                  TWILL_ERR_UNSUPPORTED);
        EXPECT_NE(world::text(comm).find("my_plan"), std::string::npos) << world::text(comm);
        EXPECT_OK(twill_barrier(comm, nullptr), comm);
    });
}

TEST_F(PlanFile, ThatIsMissingOrBrokenOrWrongIsAnError)
{
    init_says({{"TWILL_PLAN_FILE", path_ + ".none"}}, {path_ + ".none"});
    write("this is no plan");
    init_says({{"TWILL_PLAN_FILE", path_}}, {path_});
    write("");
    init_says({{"TWILL_PLAN_FILE", path_}}, {path_});
    /* what has no end, or would never begin */
    init_says({{"TWILL_PLAN_FILE", "/dev/zero"}}, {"/dev/zero"});
    init_says({{"TWILL_COST_FILE", "/dev/zero"}}, {"/dev/zero"});
    remove(path_.c_str());
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
    init_says({{"TWILL_PLAN_FILE", path_}}, {path_});
    init_says({{"TWILL_COST_FILE", path_}}, {path_});
    remove(path_.c_str());
    /* the last step of a rank is missing */
    const size_t line = text_.rfind("recv");
    ASSERT_NE(line, std::string::npos);
    const size_t start = text_.rfind('\n', line) + 1;
    write(text_.substr(0, start) + text_.substr(text_.find('\n', line) + 1));
    init_says({{"TWILL_PLAN_FILE", path_}}, {path_});
}

} // namespace
