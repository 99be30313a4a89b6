/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill_comm_choice promises. Never knows: how plans are chosen. */
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "world.h"

namespace
{

bool same(const struct twill_choice &a, const struct twill_choice &b)
{
    return std::strcmp(a.algo, b.algo) == 0 && std::strcmp(a.proto, b.proto) == 0 &&
           a.channels == b.channels;
}

const int RANKS = 3;

/* In a process of its own, as every test of this binary: tests do not share process state. */
void with_ranks(const std::function<void(twill_comm_t *)> &body)
{
    world::run_alone([&] {
        twill_comm_t comms[RANKS] = {};
        ASSERT_OK(twill_comm_init_all(comms, RANKS, nullptr, nullptr), nullptr);
        body(comms);
        for (twill_comm_t comm : comms)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Choice, IsTheSameOnEveryRank)
{
    with_ranks([](twill_comm_t *comms) {
        for (const char *coll :
             {"all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "all_to_all",
              "gather", "scatter", "reduce_scatter_v", "all_gather_v", "all_to_all_v", "gather_v",
              "scatter_v", "barrier"})
            for (size_t count : {size_t{0}, size_t{1}, size_t{1} << 20}) {
                struct twill_choice first = TWILL_CHOICE_INIT;
                ASSERT_EQ(twill_comm_choice(comms[0], coll, count, TWILL_FLOAT32, 2, &first),
                          TWILL_OK)
                    << twill_last_error(comms[0]);
                EXPECT_NE(first.algo[0], 0);
                EXPECT_STREQ(first.proto, "simple");
                EXPECT_GE(first.channels, 1);
                for (int rank = 1; rank < RANKS; rank++) {
                    struct twill_choice other = TWILL_CHOICE_INIT;
                    ASSERT_EQ(twill_comm_choice(comms[rank], coll, count, TWILL_FLOAT32, 2, &other),
                              TWILL_OK);
                    EXPECT_TRUE(same(first, other)) << coll << " " << count;
                }
            }
    });
}

TEST(Choice, PredictsATimeThatRisesWithTheSize)
{
    with_ranks([](twill_comm_t *comms) {
        for (const char *coll :
             {"all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "all_to_all"}) {
            struct twill_choice small = TWILL_CHOICE_INIT, large = TWILL_CHOICE_INIT;
            ASSERT_OK(twill_comm_choice(comms[0], coll, 1, TWILL_FLOAT32, 0, &small), comms[0]);
            ASSERT_OK(twill_comm_choice(comms[1], coll, 1 << 20, TWILL_FLOAT32, 0, &large),
                      comms[1]);
            EXPECT_GT(small.predicted_us, 0) << coll;
            EXPECT_GT(large.predicted_us, 10 * small.predicted_us) << coll;
        }
    });
}

TEST(Choice, LeavesAnOlderCallersStructAlone)
{
    with_ranks([](twill_comm_t *comms) {
        struct twill_choice choice = TWILL_CHOICE_INIT;
        choice.size = offsetof(struct twill_choice, predicted_us);
        choice.predicted_us = -7; /* what lies behind an old struct is the caller's */
        ASSERT_OK(twill_comm_choice(comms[0], "all_reduce", 1, TWILL_INT32, 0, &choice), comms[0]);
        EXPECT_NE(choice.algo[0], 0);
        EXPECT_EQ(choice.predicted_us, -7);
    });
}

TEST(Simulate, AddsUpWhatACommunicatorWouldDo)
{
    with_ranks([](twill_comm_t *comms) {
        std::vector<float> x(1 << 18, 1);
        struct twill_choice choice = TWILL_CHOICE_INIT;
        ASSERT_OK(twill_comm_choice(comms[0], "all_reduce", x.size(), TWILL_FLOAT32, 0, &choice),
                  comms[0]);
        struct twill_simulation simulation = TWILL_SIMULATION_INIT;
        ASSERT_OK(twill_group_start(), nullptr);
        for (int i = 0; i < 2; i++)
            ASSERT_OK(twill_all_reduce(x.data(), x.data(), x.size(), TWILL_FLOAT32, TWILL_SUM,
                                       comms[0], nullptr),
                      comms[0]);
        ASSERT_OK(twill_group_simulate_end(&simulation), nullptr);
        EXPECT_NEAR(simulation.predicted_us, 2 * choice.predicted_us, 1e-3);
        EXPECT_EQ(x[0], 1) << "nothing ran";
        const double two = simulation.predicted_us;
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_send(x.data(), x.size(), TWILL_FLOAT32, 1, comms[0], nullptr), comms[0]);
        ASSERT_OK(twill_recv(x.data(), x.size(), TWILL_FLOAT32, 1, comms[0], nullptr), comms[0]);
        ASSERT_OK(twill_group_simulate_end(&simulation), nullptr);
        EXPECT_GT(simulation.predicted_us, 0);
        EXPECT_LT(simulation.predicted_us, two);
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_group_simulate_end(&simulation), nullptr);
        EXPECT_EQ(simulation.predicted_us, 0) << "an empty group";
        world::threads(RANKS,
                       [&](int rank) { /* the communicators are as they were */
                                       float y = 1;
                                       ASSERT_OK(twill_all_reduce(&y, &y, 1, TWILL_FLOAT32,
                                                                  TWILL_SUM, comms[rank], nullptr),
                                                 comms[rank]);
                                       EXPECT_EQ(y, RANKS);
                       });
    });
}

TEST(Simulate, SmallCallsThatRunAsOneArePricedAsOne)
{
    with_ranks([](twill_comm_t *comms) {
        const size_t count = 1024, calls = 64; /* the most that run as one */
        std::vector<float> x(count * calls, 1);
        struct twill_choice small = TWILL_CHOICE_INIT, large = TWILL_CHOICE_INIT;
        ASSERT_OK(twill_comm_choice(comms[0], "all_reduce", count, TWILL_FLOAT32, 0, &small),
                  comms[0]);
        ASSERT_OK(
            twill_comm_choice(comms[0], "all_reduce", count * calls, TWILL_FLOAT32, 0, &large),
            comms[0]);
        struct twill_simulation simulation = TWILL_SIMULATION_INIT;
        ASSERT_OK(twill_group_start(), nullptr);
        for (size_t i = 0; i <= calls; i++) {
            float *at = x.data() + i % calls * count;
            ASSERT_OK(twill_all_reduce(at, at, count, TWILL_FLOAT32, TWILL_SUM, comms[0], nullptr),
                      comms[0]);
        }
        ASSERT_OK(twill_group_simulate_end(&simulation), nullptr);
        EXPECT_NEAR(simulation.predicted_us, large.predicted_us + small.predicted_us, 1e-3);
    });
}

TEST(Simulate, RefusesWhatHasNoTime)
{
    with_ranks([](twill_comm_t *comms) {
        struct twill_simulation simulation = TWILL_SIMULATION_INIT;
        EXPECT_EQ(twill_group_simulate_end(&simulation), TWILL_ERR_USAGE) << "no group";
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_group_start(), nullptr);
        EXPECT_EQ(twill_group_simulate_end(&simulation), TWILL_ERR_USAGE) << "an inner one";
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(twill_group_simulate_end(nullptr), TWILL_ERR_INVALID);
        simulation.magic = 0;
        EXPECT_EQ(twill_group_simulate_end(&simulation), TWILL_ERR_INVALID);
        simulation = TWILL_SIMULATION_INIT;
        ASSERT_OK(twill_comm_finalize(comms[0]), comms[0]);
        EXPECT_EQ(twill_group_simulate_end(&simulation), TWILL_ERR_USAGE) << "a finalize";
        EXPECT_EQ(twill_group_end(), TWILL_ERR_USAGE) << "the group is closed";
        EXPECT_EQ(simulation.predicted_us, 0);
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_group_simulate_end(&simulation), nullptr);
    });
}

TEST(Simulate, ForgetsWhatWasNoted)
{
    with_ranks([](twill_comm_t *comms) {
        struct twill_simulation simulation = TWILL_SIMULATION_INIT;
        twill_comm_t made[RANKS] = {};
        ASSERT_OK(twill_group_start(), nullptr);
        for (int r = 0; r < RANKS; r++)
            ASSERT_OK(twill_comm_split(comms[r], 0, r, &made[r], nullptr), comms[r]);
        EXPECT_EQ(twill_group_simulate_end(&simulation), TWILL_ERR_USAGE) << "splits";
        EXPECT_NE(world::text(nullptr).find("makes or finalizes"), std::string::npos)
            << world::text(nullptr);
        EXPECT_EQ(made[0], nullptr);
        const size_t counts[RANKS] = {3};
        int x[RANKS][3] = {};
        ASSERT_OK(twill_group_start(), nullptr);
        for (int r = 0; r < RANKS; r++)
            ASSERT_OK(
                twill_all_gather_v(x[r], x[r], counts, nullptr, TWILL_INT32, comms[r], nullptr),
                comms[r]);
        ASSERT_OK(twill_group_simulate_end(&simulation), nullptr);
        EXPECT_GT(simulation.predicted_us, 0);
        /* what was forgotten took no place in the order of calls */
        ASSERT_OK(twill_group_start(), nullptr);
        for (int r = 0; r < RANKS; r++)
            ASSERT_OK(twill_comm_split(comms[r], 0, r, &made[r], nullptr), comms[r]);
        ASSERT_OK(twill_group_end(), nullptr);
        for (twill_comm_t comm : made)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Choice, RefusesWhatIsNoCall)
{
    with_ranks([](twill_comm_t *comms) {
        struct twill_choice choice = TWILL_CHOICE_INIT;
        const struct twill_choice before = choice;
        EXPECT_EQ(twill_comm_choice(nullptr, "all_reduce", 1, TWILL_INT32, 0, &choice),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_choice(comms[0], "reduce_all", 1, TWILL_INT32, 0, &choice),
                  TWILL_ERR_INVALID);
        EXPECT_NE(std::strstr(twill_last_error(comms[0]), "reduce_all"), nullptr);
        EXPECT_EQ(twill_comm_choice(comms[0], nullptr, 1, TWILL_INT32, 0, &choice),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_choice(comms[0], "reduce", 1, TWILL_INT32, RANKS, &choice),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(
            twill_comm_choice(comms[0], "reduce", 1, static_cast<twill_type_t>(99), 0, &choice),
            TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_choice(comms[0], "all_gather", SIZE_MAX / 4, TWILL_INT32, 0, &choice),
                  TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_choice(comms[0], "all_reduce", (size_t)PTRDIFF_MAX / RANKS + 1,
                                    TWILL_INT8, 0, &choice),
                  TWILL_ERR_INVALID)
            << "as the call itself";
        EXPECT_EQ(twill_comm_choice(comms[0], "all_gather", 1, TWILL_INT32, 0, nullptr),
                  TWILL_ERR_INVALID);
        EXPECT_TRUE(same(choice, before));
        choice.magic = 0;
        EXPECT_EQ(twill_comm_choice(comms[0], "all_gather", 1, TWILL_INT32, 0, &choice),
                  TWILL_ERR_INVALID);
    });
}

} // namespace
