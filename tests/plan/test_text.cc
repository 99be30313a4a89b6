// SPDX-License-Identifier: Apache-2.0
// Knows: that text and plan are the same thing, and that no text does harm. Never knows: the
// algorithms.
#include <cstdlib>
#include <random>
#include <vector>

#include "plan/plans.hh"

namespace
{

std::string print(const tw_plan *plan)
{
    char *text = nullptr;
    EXPECT_EQ(tw_plan_print(plan, &text), TWILL_OK) << tw_fail_text();
    std::string copy = text ? text : "";
    free(text);
    return copy;
}

// From memory of just its size, so that a byte read too far is seen by the sanitizers.
twill_status parse(const std::string &text, Plan *plan = nullptr)
{
    std::vector<char> bytes(text.begin(), text.end());
    tw_plan *made = nullptr;
    twill_status status = tw_plan_parse(bytes.data(), bytes.size(), &made);
    EXPECT_EQ(made != nullptr, status == TWILL_OK);
    Plan owner(made);
    if (plan)
        *plan = std::move(owner);
    return status;
}

const char good[] = "# a comment\n"
                    "plan pair all_gather ranks 2 root 0\n"
                    "facts depth 2 slices 2 fifos 1 widest 2   # the rest is 0\n"
                    "part equal groups 1 per 2\n"
                    "part equal groups 2 per 2\n"
                    "\n"
                    "rank 0\n"
                    "lane channel 0\n"
                    "copy src in.0[0+2] dst out.1[0+2]\n"
                    "send to 1:0 src in.0[0+2]\n"
                    "recv from 1 dst out.1[2+2]\n"
                    "rank 1\n"
                    "lane channel 0\n"
                    "\tcopy dst out.1[2+1*2/1] src in.0[0+1*2/1]\n"
                    "  send src in.0[0+2] to 0\n"
                    "recv from 0 dst out.1[0+2] after 0:0";

// The same with a line replaced.
std::string with(const char *from, const std::string &to)
{
    std::string text = good;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, strlen(from), to);
}

void expect_error(const std::string &text, const char *sentence)
{
    EXPECT_EQ(parse(text), TWILL_ERR_INVALID) << text;
    EXPECT_STREQ(tw_fail_text(), sentence);
}

} // namespace

TEST(Text, IsReadable)
{
    EXPECT_EQ(
        print(gather_plan(2, 3).get()),
        "plan gather all_gather ranks 2 root 0\n"
        "facts depth 1 slices 1 fifos 1 widest 3 signals 0 sig_max 0 caps 0 parity 1 scratch 0"
        " wide 0\n"
        "part equal groups 1 per 3\n"
        "part equal groups 2 per 3\n"
        "rank 0\n"
        "lane channel 0\n"
        "copy src in.0[0+3] dst out.1[0+3]\n"
        "send to 1 src in.0[0+3]\n"
        "recv from 1 dst out.1[3+3]\n"
        "rank 1\n"
        "lane channel 0\n"
        "copy src in.0[0+3] dst out.1[3+3]\n"
        "send to 0 src in.0[0+3]\n"
        "recv from 0 dst out.1[0+3]\n");
}

TEST(Text, EveryFieldRoundTrips)
{
    for (bool deterministic : {false, true}) {
        Plan plan = motley_plan();
        plan->deterministic = deterministic;
        Plan back;
        std::string text = print(plan.get());
        ASSERT_EQ(parse(text, &back), TWILL_OK) << tw_fail_text() << "\n" << text;
        EXPECT_EQ(difference(plan.get(), back.get()), "") << text;
        EXPECT_EQ(print(back.get()), text);
    }
    Plan one = gather_plan(5, 1, 3), back;
    ASSERT_EQ(parse(print(one.get()), &back), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(difference(one.get(), back.get()), "");
    Plan empty(tw_plan_create("nothing", TW_COLL_BARRIER, 3, 0, -1));
    ASSERT_EQ(parse(print(empty.get()), &back), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(difference(empty.get(), back.get()), "");
}

TEST(Text, LoadsWhatPeopleWrite)
{
    Plan plan;
    ASSERT_EQ(parse(good, &plan), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(plan->depth, 2u);
    EXPECT_EQ(plan->parity, 1u);
    ASSERT_EQ(plan->ranks[1].lanes[0].nsteps, 3u);
    EXPECT_EQ(plan->ranks[1].lanes[0].steps[2].dep_lane, 0);
    tw_check_report report;
    EXPECT_EQ(tw_plan_check(plan.get(), nullptr, &report), TWILL_OK) << report.text;
    ASSERT_EQ(parse(std::string("\n\n") + good + "\n# end"), TWILL_OK) << tw_fail_text();
    std::string crlf;
    for (char c : std::string(good))
        crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
    EXPECT_EQ(parse(crlf), TWILL_OK) << tw_fail_text();
}

TEST(Text, ErrorsNameThePlaceAndWhatWasExpected)
{
    expect_error("", "plan text 1:1: expected 'plan', found the end of the text");
    expect_error("plan", "plan text 1:5: expected a name of up to 47 letters, found the end of the "
                         "text");
    expect_error(with("plan pair", "plan p@ir"), "plan text 2:7: expected a collective, found '@'");
    expect_error(with("all_gather", "all_gathe"),
                 "plan text 2:11: expected a collective, found 'all_gathe'");
    expect_error(with("ranks 2", "ranks -2"),
                 "plan text 2:28: expected a count of ranks, a number up to 65536, found '-'");
    expect_error(with("ranks 2", "ranks 65537"),
                 "plan text 2:28: expected a count of ranks, a number up to 65536, found '65537'");
    expect_error(with("root 0", "root 0x0"),
                 "plan text 2:35: expected a rank, a number up to 65536, found '0x0'");
    expect_error(with("root 0\n", "root 0 0\n"),
                 "plan text 2:37: expected the end of the line, found '0'");
    expect_error(with("facts depth 2", "facts depth 4294967296"),
                 "plan text 3:13: expected depth, a number up to 4294967295, found '4294967296'");
    expect_error(with("slices 2", "depth 2"),
                 "plan text 3:15: expected a fact that was not given yet, found 'depth'");
    expect_error(with("part equal", "part odd"),
                 "plan text 4:6: expected a kind of partition, found 'odd'");
    expect_error(with("rank 1\n", "rank 2\n"),
                 "plan text 12:6: expected a rank, a number up to 1, found '2'");
    expect_error(with("rank 1\n", "rank 0\n"),
                 "plan text 12:6: expected a rank of this plan that is above the one before, found "
                 "'0'");
    expect_error(with("root 0", "root 0 only 0"),
                 "plan text 12:6: expected a rank of this plan that is above the one before, found "
                 "'1'");
    expect_error(with("send to 1:0", "sendto 1:0"),
                 "plan text 10:1: expected a step, 'lane' or 'rank', found 'sendto'");
    expect_error(with("to 1:0", "to 1:65536"),
                 "plan text 10:11: expected a fifo id, a number up to 65535, found '65536'");
    expect_error(with("recv from 1 dst", "recv from 1 dst out.1[2+2] dst"),
                 "plan text 11:28: expected a field or flag that was not given yet, found 'dst'");
    expect_error(with("out.1[2+2]\nrank", "out.1[2+2\nrank"),
                 "plan text 11:26: expected ']', found the end of the line");
    expect_error(with("after 0:0", "after 0"),
                 "plan text 16:35: expected ':', found the end of the text");
    expect_error(with("lane channel 0\n\tcopy", "copy"),
                 "plan text 13:1: expected 'rank', found 'copy'");
    expect_error(with("# a comment", "\x01\xff"), "plan text 1:1: expected 'plan', found '?'");
}

// What the form allows and a plan does not is refused by validation.
TEST(Text, Validates)
{
    EXPECT_EQ(parse(with("in.0[0+2]", "in.0[1+2]")), TWILL_ERR_INVALID);
    EXPECT_EQ(parse(with("send to 1:0", "send to 1:1")), TWILL_ERR_INVALID);
    EXPECT_EQ(parse(with("root 0", "root 2")), TWILL_ERR_INVALID);
    EXPECT_EQ(
        parse(with("part equal groups 1 per 2", "part equal groups 4294967295 per 4294967295")),
        TWILL_ERR_INVALID);
    std::string nine = good;
    nine.insert(nine.find("part"),
                "part equal groups 1 per 1\npart equal groups 1 per 1\npart equal "
                "groups 1 per 1\npart equal groups 1 per 1\npart equal groups 1 "
                "per 1\npart equal groups 1 per 1\npart equal groups 1 per 1\n");
    EXPECT_EQ(parse(nine), TWILL_ERR_INVALID);
}

TEST(Text, PrintRefusesWhatIsNoPlan)
{
    Plan plan = gather_plan(2, 1);
    char *text = nullptr;
    plan->ranks[0].lanes[0].steps[0].op = 200;
    EXPECT_EQ(tw_plan_print(plan.get(), &text), TWILL_ERR_INVALID);
    plan = gather_plan(2, 1);
    plan->ranks[0].lanes[0].steps[1].from =
        -7; // not used by a send, but the form has no word for it
    EXPECT_EQ(tw_plan_print(plan.get(), &text), TWILL_ERR_INVALID);
    EXPECT_EQ(text, nullptr);
}

// Every prefix, each also with a rest of rubbish.
TEST(Text, Truncations)
{
    std::string whole = print(motley_plan().get());
    for (const std::string &text : {whole, std::string(good)})
        for (size_t n = 0; n <= text.size(); n++) {
            parse(text.substr(0, n));
            parse(text.substr(0, n) + "]:@ 99999999999999999999999 +");
            parse(text.substr(0, n) + std::string(3, '\0'));
            parse(text.substr(n));
        }
}

// Drawn damage: bytes flipped, put in, taken out; lines repeated and swapped; absurd numbers. What
// still loads must print and load again to the same plan.
TEST(Text, Damage)
{
    std::mt19937_64 random(11);
    const char *numbers[] = {"0",
                             "-1",
                             "65535",
                             "65536",
                             "2147483648",
                             "4294967295",
                             "4294967296",
                             "18446744073709551616",
                             "00000000000000000000001"};
    std::string texts[] = {print(motley_plan().get()), good, print(gather_plan(3, 2).get())};
    int loaded = 0, refused = 0;
    for (int i = 0; i < 20000; i++) {
        std::string text = texts[random() % 3];
        for (uint64_t k = 1 + random() % 3; k > 0 && !text.empty(); k--) {
            size_t at = random() % text.size(), from = random() % text.size();
            size_t digit = text.find_first_of("0123456789", at);
            switch (random() % 6) {
            case 0:
                text[at] = (char)random();
                break;
            case 1:
                text.insert(at, 1, (char)random());
                break;
            case 2:
                text.erase(at, 1 + random() % 5);
                break;
            case 3:
                text.insert(at, text.substr(from, random() % 80));
                break;
            case 4:
                text[at] ^= (char)(1 << random() % 8);
                break;
            default:
                if (digit != std::string::npos)
                    text.replace(digit, 1, numbers[random() % 9]);
                break;
            }
        }
        Plan plan, back;
        if (parse(text, &plan) != TWILL_OK) {
            refused++;
            continue;
        }
        loaded++;
        char *again = nullptr;
        if (tw_plan_print(plan.get(), &again) != TWILL_OK)
            continue; // peers of unused fields beyond a rank's range
        ASSERT_EQ(parse(again, &back), TWILL_OK) << tw_fail_text() << "\n" << again;
        ASSERT_EQ(difference(plan.get(), back.get()), "") << again;
        free(again);
    }
    EXPECT_GT(loaded, 200);
    EXPECT_GT(refused, 5000);
}
