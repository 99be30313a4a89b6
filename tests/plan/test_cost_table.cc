// SPDX-License-Identifier: Apache-2.0
// Knows: what a cost file may hold. Never knows: prices.
#include "plan/plans.hh"

#include <unistd.h>

#include <cstdio>
#include <string>

extern "C" {
#include "base/log.h"
#include "plan/cost.h"
}

namespace
{

// What is refused is said in a log that nobody wants to see here.
class CostTable : public testing::Test
{
  protected:
    void SetUp() override { ASSERT_EQ(tw_log_configure("error", nullptr), TWILL_OK); }
    void TearDown() override { tw_log_configure("warn", nullptr); }
};

tw_cost_table defaults()
{
    tw_cost_table table;
    tw_cost_table_default(&table);
    return table;
}

std::string print(const tw_cost_table &table, const char *note)
{
    char *text = nullptr;
    EXPECT_EQ(tw_cost_table_print(&table, note, &text), TWILL_OK);
    std::string made = text;
    free(text);
    return made;
}

TEST_F(CostTable, RowsHaveNamesAndBounds)
{
    tw_cost_row row;
    uint32_t i = 0;
    tw_cost_table table = defaults();
    for (; tw_cost_row_get(i, &row); i++) {
        EXPECT_EQ(tw_cost_row_find(row.name), i);
        EXPECT_LE(row.least, row.dflt) << row.name;
        EXPECT_LE(row.dflt, row.most) << row.name;
        EXPECT_EQ(table.value[i], row.dflt) << row.name;
    }
    EXPECT_EQ(i, TW_COST_VALUES);
    EXPECT_EQ(tw_cost_row_find("host.steps"), TW_COST_NONE);
    EXPECT_EQ(tw_cost_row_find("shm.latency"),
              tw_cost_link_index(TW_COST_LINK_SHM, TW_COST_LATENCY));
    EXPECT_EQ(tw_cost_row_find("gpu.step"), tw_cost_exec_index(TW_COST_GPU, TW_COST_STEP));
    EXPECT_STREQ(tw_cost_link_name(TW_COST_LINK_TCP), "tcp");
    EXPECT_EQ(tw_cost_link_name(TW_COST_LINK_COUNT), nullptr);
}

TEST_F(CostTable, FilesRoundTrip)
{
    tw_cost_table table = defaults(), read = defaults();
    for (uint32_t i = 0; i < TW_COST_VALUES; i++)
        table.value[i] += i + 1;
    std::string text = print(table, "fitted\nby hand # twice");
    EXPECT_NE(text.find("\n# fitted\n# by hand # twice\n"), std::string::npos) << text;
    ASSERT_EQ(tw_cost_table_parse(text.data(), text.size(), &read), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(memcmp(&table, &read, sizeof(table)), 0);
    EXPECT_EQ(tw_cost_table_hash(&table), tw_cost_table_hash(&read));
    char path[] = "/tmp/twill-cost-XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    ASSERT_EQ(tw_cost_table_save(path, &table, nullptr), TWILL_OK);
    read = defaults();
    ASSERT_EQ(tw_cost_table_load(path, &read), TWILL_OK);
    EXPECT_EQ(memcmp(&table, &read, sizeof(table)), 0);
    FILE *file = fopen(path, "a");
    fputs("host.step twelve\n", file);
    fclose(file);
    EXPECT_EQ(tw_cost_table_load(path, &read), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), path), nullptr) << tw_fail_text();
    unlink(path);
    EXPECT_EQ(tw_cost_table_load(path, &read), TWILL_ERR_INVALID);
    EXPECT_EQ(tw_cost_table_load("/", &read), TWILL_ERR_INVALID);
    EXPECT_EQ(tw_cost_table_save("/nowhere/cost", &table, nullptr), TWILL_ERR_SYSTEM);
}

TEST_F(CostTable, HashSeesEveryValue)
{
    tw_cost_table table = defaults();
    uint64_t hash = tw_cost_table_hash(&table);
    for (uint32_t i = 0; i < TW_COST_VALUES; i++) {
        tw_cost_table other = table;
        other.value[i]++;
        EXPECT_NE(tw_cost_table_hash(&other), hash) << i;
    }
}

TEST_F(CostTable, PartsOfATableKeepTheRest)
{
    tw_cost_table table = defaults();
    std::string text = "\n# mine\ntwill-cost 1 # form\n\n  host.step 12.5\r\nshm.rate 7 #";
    ASSERT_EQ(tw_cost_table_parse(text.data(), text.size(), &table), TWILL_OK) << tw_fail_text();
    tw_cost_table want = defaults();
    want.value[tw_cost_row_find("host.step")] = 12500;
    want.value[tw_cost_row_find("shm.rate")] = 7;
    EXPECT_EQ(memcmp(&table, &want, sizeof(table)), 0);
}

TEST_F(CostTable, WhatIsWrongIsSaidWithItsPlace)
{
    struct Case {
        const char *text, *why;
    } cases[] = {
        {"", "1:1: expected the line \"twill-cost 1\""},
        {"twill-cost 2\n", "1:1: expected the line"},
        {"twill-cost 1 1\n", "1:1: expected the line"},
        {"twill-cost 1\nhost.stop 1\n", "2:1: expected the name of a row"},
        {"twill-cost 1\n  host.step\n", "2:12: expected host.step: a number of ns from 0"},
        {"twill-cost 1\nhost.step 1.2345\n", "2:11: expected host.step"},
        {"twill-cost 1\nhost.step 1.\n", "2:11: expected host.step"},
        {"twill-cost 1\nhost.step .5\n", "2:11: expected host.step"},
        {"twill-cost 1\nhost.step 1,5\n", "2:11: expected host.step"},
        {"twill-cost 1\nhost.step -1\n", "2:11: expected host.step"},
        {"twill-cost 1\nhost.step 1e3\n", "2:11: expected host.step"},
        {"twill-cost 1\nhost.step 1000000001\n", "2:11: expected host.step"},
        {"twill-cost 1\nhost.step 99999999999999999999999\n", "2:11: expected host.step"},
        {"twill-cost 1\nshm.rate 0\n", "2:10: expected shm.rate: a number of MB/s from 1 to"},
        {"twill-cost 1\nshm.rate 1.5\n", "2:10: expected shm.rate"},
        {"twill-cost 1\nhost.step 1 2\n", "2:13: expected the end of the line"},
        {"twill-cost 1\nhost.step 1\n\nhost.step 1\n", "4:1: expected every row once"},
    };
    for (const Case &c : cases) {
        tw_cost_table table = defaults(), before = defaults();
        EXPECT_EQ(tw_cost_table_parse(c.text, strlen(c.text), &table), TWILL_ERR_INVALID) << c.text;
        EXPECT_NE(strstr(tw_fail_text(), c.why), nullptr) << c.text << ": " << tw_fail_text();
        EXPECT_EQ(memcmp(&table, &before, sizeof(table)), 0) << c.text;
    }
}

// Any bytes are an error or a table, never a crash; the bounds hold whatever was read.
TEST_F(CostTable, AnyBytesAreSafe)
{
    std::string good = print(defaults(), nullptr);
    uint64_t state = 1;
    auto draw = [&state] {
        return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33;
    };
    for (int round = 0; round < 2000; round++) {
        std::string text = good.substr(0, draw() % 400);
        for (uint64_t n = draw() % 8; n && !text.empty(); n--)
            text[draw() % text.size()] = "\0\n #.-9ahost"[draw() % 12];
        tw_cost_table table = defaults();
        if (tw_cost_table_parse(text.data(), text.size(), &table) == TWILL_OK) {
            tw_cost_row row;
            for (uint32_t i = 0; tw_cost_row_get(i, &row); i++) {
                EXPECT_LE(row.least, table.value[i]);
                EXPECT_LE(table.value[i], row.most);
            }
        }
    }
}

} // namespace
