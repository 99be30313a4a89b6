/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill_comm_choice promises. Never knows: how plans are chosen. */
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
