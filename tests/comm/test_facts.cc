/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what ranks make of each other's facts. Never knows: what is chosen by them. */
#include <cstring>

#include <gtest/gtest.h>

#include "ranks.h"

extern "C" {
#include "comm/facts.h"
}

namespace
{

class Facts : public testing::Test
{
  protected:
    void SetUp() override
    {
        comm_.size = SIZE;
        for (int r = 0; r < SIZE; r++) {
            tw_topo_measured measured = {};
            measured.line_ps[TW_TOPO_NEAR_L3] = 1000 * (uint64_t)(SIZE - r);
            measured.copy_bytes_per_s[TW_TOPO_COPY_L2] = 1000000000 * (uint64_t)(r + 1);
            tw_topo_measured_pack(&measured, entries_[r].measured);
            entries_[r].cpus.words[0] = (uint64_t)3 << r; /* neighbours share one */
            pointers_[r] = &entries_[r];
        }
    }

    static const int SIZE = 3;
    struct twill_comm comm_ = {};
    tw_facts_entry entries_[SIZE] = {};
    const tw_facts_entry *pointers_[SIZE] = {};
};

TEST_F(Facts, AreTheBestOfAllRanks)
{
    tw_facts facts = {};
    ASSERT_EQ(tw_facts_merge(&comm_, pointers_, &facts), TWILL_OK);
    EXPECT_EQ(facts.measured.line_ps[TW_TOPO_NEAR_L3], 1000u);
    EXPECT_EQ(facts.measured.copy_bytes_per_s[TW_TOPO_COPY_L2], 3000000000u);
    EXPECT_EQ(facts.cpus, 4u);
    EXPECT_EQ(facts.one_process, 0u);
    entries_[1].quota = 2;
    entries_[2].quota = 3;
    comm_.ranks_here = SIZE;
    ASSERT_EQ(tw_facts_merge(&comm_, pointers_, &facts), TWILL_OK);
    EXPECT_EQ(facts.cpus, 2u) << "the least quota";
    EXPECT_EQ(facts.one_process, 1u);
}

TEST_F(Facts, AnEntryThatMakesNoSenseIsItsRanks)
{
    tw_facts facts = {}, before = {};
    memset(entries_[2].measured, 0xff, sizeof entries_[2].measured);
    EXPECT_EQ(tw_facts_merge(&comm_, pointers_, &facts), TWILL_ERR_PEER);
    EXPECT_NE(strstr(tw_fail_text(), "rank 2"), nullptr) << tw_fail_text();
    EXPECT_EQ(memcmp(&facts, &before, sizeof facts), 0);
}

/* Ranks of one process, then with TWILL_PROBE=0, then one rank alone. */
TEST(FactsOfRanks, AreMeasuredOnceAndAlikeAndOnlyWhereAsked)
{
    const tw_topo_measured nothing = {};
    for (const char *probe : {"1", "0"}) {
        set_params({{"PROBE", probe}});
        twill_comm_t comms[2];
        ASSERT_EQ(twill_comm_init_all(comms, 2, nullptr, nullptr), TWILL_OK);
        EXPECT_EQ(memcmp(&comms[0]->facts, &comms[1]->facts, sizeof comms[0]->facts), 0);
        EXPECT_GE(comms[0]->facts.cpus, 1u);
        EXPECT_EQ(comms[0]->facts.one_process, 1u);
        bool measured = memcmp(&comms[0]->facts.measured, &nothing, sizeof nothing) != 0;
        EXPECT_EQ(measured, probe[0] == '1');
        for (twill_comm_t comm : comms)
            EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
    }
    set_params({{"PROBE", "1"}});
    twill_comm_t alone;
    ASSERT_EQ(twill_comm_init_all(&alone, 1, nullptr, nullptr), TWILL_OK);
    EXPECT_EQ(memcmp(&alone->facts.measured, &nothing, sizeof nothing), 0);
    EXPECT_EQ(twill_comm_destroy(alone), TWILL_OK);
    set_params({});
}

TEST(FactsCompare, NamesRanksAndWhatDiffers)
{
    const tw_facts_stamp same = {1, 2, 3};
    struct {
        tw_facts_stamp other;
        const char *word;
    } cases[] = {{{9, 2, 3}, "measurements"},
                 {{1, 9, 3}, "TWILL_COST_FILE"},
                 {{1, 2, 9}, "TWILL_PLAN_FILE"}};
    for (const auto &c : cases) {
        const tw_facts_stamp stamps[] = {same, same, c.other};
        EXPECT_EQ(tw_facts_compare(stamps, 2), TWILL_OK);
        EXPECT_EQ(tw_facts_compare(stamps, 3), TWILL_ERR_MISMATCH);
        EXPECT_NE(strstr(tw_fail_text(), "rank 0 and rank 2"), nullptr) << tw_fail_text();
        EXPECT_NE(strstr(tw_fail_text(), c.word), nullptr) << tw_fail_text();
    }
}

} // namespace
