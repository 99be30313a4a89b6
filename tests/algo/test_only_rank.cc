// SPDX-License-Identifier: Apache-2.0
// Knows: that a rank's program does not depend on who generates it. Never knows: any schedule.
#include "algo/cases.hh"

namespace
{

// Everything but the programs.
void expect_same_facts(const tw_plan *a, const tw_plan *b)
{
    EXPECT_STREQ(a->name, b->name);
    EXPECT_EQ(std::tie(a->coll, a->deterministic, a->nranks, a->root, a->depth, a->slices),
              std::tie(b->coll, b->deterministic, b->nranks, b->root, b->depth, b->slices));
    EXPECT_EQ(std::tie(a->nfifos, a->widest, a->nsigs, a->sig_max, a->caps, a->parity),
              std::tie(b->nfifos, b->widest, b->nsigs, b->sig_max, b->caps, b->parity));
    EXPECT_EQ(std::tie(a->nparts, a->scratch_cells, a->wide_cells),
              std::tie(b->nparts, b->scratch_cells, b->wide_cells));
    for (uint32_t i = 0; i < a->nparts; i++)
        EXPECT_EQ(std::tie(a->parts[i].kind, a->parts[i].groups, a->parts[i].per),
                  std::tie(b->parts[i].kind, b->parts[i].groups, b->parts[i].per));
}

bool same_span(const tw_plan_span &a, const tw_plan_span &b)
{
    return std::tie(a.buf, a.part, a.index, a.first, a.block, a.stride, a.nblocks) ==
           std::tie(b.buf, b.part, b.index, b.first, b.block, b.stride, b.nblocks);
}

bool same_step(const tw_plan_step &a, const tw_plan_step &b)
{
    return std::tie(a.op, a.flags, a.dep_lane, a.dep_step, a.from, a.to, a.fifo_in, a.fifo_out) ==
               std::tie(b.op, b.flags, b.dep_lane, b.dep_step, b.from, b.to, b.fifo_in,
                        b.fifo_out) &&
           same_span(a.src, b.src) && same_span(a.dst, b.dst) && a.sig == b.sig &&
           a.sig_value == b.sig_value;
}

void expect_same_program(const tw_plan_rank &a, const tw_plan_rank &b)
{
    ASSERT_EQ(a.nlanes, b.nlanes);
    for (uint32_t l = 0; l < a.nlanes; l++) {
        ASSERT_EQ(a.lanes[l].channel, b.lanes[l].channel);
        ASSERT_EQ(a.lanes[l].nsteps, b.lanes[l].nsteps);
        for (uint32_t i = 0; i < a.lanes[l].nsteps; i++)
            ASSERT_TRUE(same_step(a.lanes[l].steps[i], b.lanes[l].steps[i])) << l << " " << i;
    }
}

} // namespace

TEST(OnlyRank, IsTheFullPlansProgram)
{
    std::mt19937_64 random(3);
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        for (int nranks = 1; nranks <= most_ranks; nranks += nranks < 18 ? 1 : 9)
            for (int root : roots_of(coll, nranks, random)) {
                tw_algo_args args = {coll, nranks, root, -1, 1 + (uint32_t)nranks % 3, 0};
                Plan full = generate(algo, args);
                for (int r = 0; r < nranks; r++) {
                    args.only_rank = r;
                    Plan one = generate(algo, args);
                    SCOPED_TRACE(title(algo, args) + " rank " + std::to_string(r));
                    EXPECT_EQ(one->only_rank, r);
                    expect_same_facts(full.get(), one.get());
                    expect_same_program(full->ranks[r], one->ranks[r]);
                    for (int other = 0; other < nranks; other++)
                        ASSERT_TRUE(other == r || one->ranks[other].nlanes == 0);
                    if (testing::Test::HasFailure())
                        return;
                }
            }
    });
}

// What the plan states of its messages is what its steps have, not more.
TEST(OnlyRank, StatedFactsAreTight)
{
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        for (int nranks = 2; nranks <= most_ranks; nranks += nranks < 34 ? 1 : 5) {
            tw_algo_args args = {coll, nranks, 0, -1, 2, 0};
            Plan plan = generate(algo, args);
            uint32_t widest = 0, nfifos = 0, nsigs = 0, sig_max = 0, scratch = 0;
            for (int r = 0; r < nranks; r++)
                for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++)
                    for (uint32_t i = 0; i < plan->ranks[r].lanes[l].nsteps; i++) {
                        const tw_plan_step &step = plan->ranks[r].lanes[l].steps[i];
                        for (const tw_plan_span *span : {&step.src, &step.dst})
                            if (span->block && span->buf == TW_BUF_SCRATCH)
                                scratch = std::max(scratch, 1 + span->first + span->block - 1 +
                                                                (span->nblocks - 1) * span->stride);
                        if (step.op == TW_OP_SIGNAL) {
                            nsigs = std::max(nsigs, step.sig + 1);
                            sig_max = std::max(sig_max, step.sig_value);
                        }
                        if (step.op < TW_OP_SEND || step.op > TW_OP_RECV_REDUCE_SEND)
                            continue;
                        const tw_plan_span &span = step.src.block ? step.src : step.dst;
                        widest = std::max(widest, span.block * span.nblocks);
                        nfifos = std::max({nfifos, step.fifo_in + 1u, step.fifo_out + 1u});
                    }
            EXPECT_EQ(tw_plan_widest(plan.get()), std::max(widest, 1u)) << title(algo, args);
            EXPECT_EQ(plan->nfifos, nfifos) << title(algo, args);
            EXPECT_EQ(plan->nsigs, nsigs) << title(algo, args);
            EXPECT_EQ(plan->sig_max, sig_max) << title(algo, args);
            EXPECT_LE(scratch, plan->scratch_cells) << title(algo, args);
        }
    });
}

// One rank of a large job costs its own steps: a ring of tens of thousands of ranks is made for one
// rank in the time that its own program takes.
TEST(OnlyRank, CostsItsOwnSteps)
{
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        int nranks = algo->caps ? 1000 : 16384;
        tw_algo_args args = {coll, nranks, 0, nranks - 2, 1, 0};
        Clock clock;
        Plan plan = generate(algo, args);
        ASSERT_TRUE(plan) << title(algo, args);
        EXPECT_LT(clock.seconds(), 1.0) << title(algo, args);
    });
}
