// SPDX-License-Identifier: Apache-2.0
// Knows: the textbook amounts: what each rank sends and how many rounds it takes.
// Never knows: how the plans come about.
#include "algo/cases.hh"
#include "algo/model.hh"

#include <functional>
#include <map>

namespace
{

// An exact amount of data in units of the call's count.
struct Amount {
    uint64_t num, den;
};
bool operator==(Amount a, Amount b) { return a.num * b.den == b.num * a.den; }
std::ostream &operator<<(std::ostream &out, Amount a) { return out << a.num << "/" << a.den; }

bool sends(const tw_plan_step &step)
{
    return step.op == TW_OP_SEND || step.op == TW_OP_RECV_SEND ||
           step.op == TW_OP_RECV_REDUCE_SEND || step.op == TW_OP_PUT;
}

// Cells that a step moves to its peer: what a fused step sends has the size of its operand.
uint64_t cells_of(const tw_plan_step &step)
{
    const tw_plan_span &span = step.src.block ? step.src : step.dst;
    return (uint64_t)span.block * span.nblocks;
}

uint64_t per_of(const tw_plan *plan) { return plan->nparts ? plan->parts[0].per : 1; }

Amount sent_by(const tw_plan *plan, int rank)
{
    uint64_t cells = 0;
    for (uint32_t l = 0; l < plan->ranks[rank].nlanes; l++)
        for (uint32_t i = 0; i < plan->ranks[rank].lanes[l].nsteps; i++)
            if (sends(plan->ranks[rank].lanes[l].steps[i]))
                cells += cells_of(plan->ranks[rank].lanes[l].steps[i]);
    return {cells, per_of(plan)};
}

Amount sent_by_all(const tw_plan *plan)
{
    uint64_t cells = 0;
    for (int r = 0; r < plan->nranks; r++)
        cells += sent_by(plan, r).num;
    return {cells, per_of(plan)};
}

// The same for a concrete count: elements, where some cells have one more than others.
uint64_t elements_of_all(const tw_plan *plan, uint64_t count)
{
    uint64_t elements = 0, per = per_of(plan);
    for (int r = 0; r < plan->nranks; r++)
        for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++)
            for (uint32_t i = 0; i < plan->ranks[r].lanes[l].nsteps; i++) {
                const tw_plan_step &step = plan->ranks[r].lanes[l].steps[i];
                const tw_plan_span &span = step.src.block ? step.src : step.dst;
                for (uint32_t c = 0; sends(step) && c < span.block * span.nblocks; c++) {
                    uint32_t cell = span.first + c / span.block * span.stride + c % span.block;
                    elements += count / per + (cell % per < count % per);
                }
            }
    return elements;
}

int log2_floor(int n)
{
    int k = 0;
    while (n >> (k + 1))
        k++;
    return k;
}
int log2_ceil(int n) { return log2_floor(n) + ((n & (n - 1)) != 0); }

// What the literature says, for n >= 2 ranks. Rounds: all ports at once, or one (0: not stated).
struct Textbook {
    std::function<Amount(int n)> total; // all ranks together
    std::function<Amount(int n)> each;  // every rank alike; empty where ranks differ
    std::function<int(int n)> chain;
    std::function<int(int n)> one_port;
};

Amount twice_less_one(int n) { return {2u * (n - 1), (uint64_t)n}; }
Amount less_one(int n) { return {(uint64_t)n - 1, 1}; }
Amount times_n(Amount a, int n) { return {a.num * n, a.den}; }

Textbook even(Amount (*each)(int), std::function<int(int)> chain, std::function<int(int)> one_port)
{
    return {[each](int n) { return times_n(each(n), n); }, each, chain, one_port};
}

// Digits of a number that are not zero, for numbers below n: all of them, or the most of any.
uint64_t digits(int n, int radix, bool most)
{
    uint64_t sum = 0, max = 0;
    for (int i = 1; i < n; i++) {
        uint64_t here = 0;
        for (int v = i; v; v /= radix)
            here += v % radix != 0;
        sum += here;
        max = here > max ? here : max;
    }
    return most ? max : sum;
}

// Steps of PAT with messages of up to `aggregation` groups.
int pat_rounds(int n, int aggregation)
{
    int levels = std::min(log2_floor(aggregation), std::max(log2_ceil(n) - 1, 0));
    return levels + std::min(n, (1 << log2_ceil(n)) >> levels) - 1;
}

Amount doubling_total(int n)
{
    int p = 1 << log2_floor(n);
    return {(uint64_t)p * log2_floor(n) + 2u * (n - p), 1};
}

std::map<std::string, Textbook> textbook()
{
    auto n_less_1 = [](int n) { return n - 1; };
    auto twice_n_less_1 = [](int n) { return 2 * (n - 1); };
    auto logarithm = [](int n) { return log2_ceil(n); };
    auto twice_logarithm = [](int n) { return 2 * log2_ceil(n); };
    auto constant = [](int k) { return [k](int) { return k; }; };
    auto whole_to_each = [](int n) { return Amount{(uint64_t)n - 1, 1}; };
    std::map<std::string, Textbook> book;
    book["ring all_reduce"] = even(twice_less_one, twice_n_less_1, twice_n_less_1);
    book["ring reduce_scatter"] = even(less_one, n_less_1, n_less_1);
    book["ring all_gather"] = even(less_one, n_less_1, n_less_1);
    book["ring broadcast"] = {whole_to_each, nullptr, n_less_1, n_less_1};
    book["recursive_doubling all_reduce"] = {doubling_total, nullptr, nullptr, nullptr};
    book["recursive_doubling all_gather"] = even(less_one, logarithm, logarithm);
    book["halving_doubling all_reduce"] = even(twice_less_one, twice_logarithm, twice_logarithm);
    book["halving_doubling reduce_scatter"] = even(less_one, logarithm, logarithm);
    book["circulant all_reduce"] = even(twice_less_one, twice_logarithm, twice_logarithm);
    book["circulant reduce_scatter"] = even(less_one, logarithm, logarithm);
    book["circulant all_gather"] = even(less_one, logarithm, logarithm);
    book["direct all_reduce"] = even(less_one, constant(1), nullptr);
    book["direct reduce_scatter"] = even(less_one, constant(1), n_less_1);
    book["direct all_gather"] = even(less_one, constant(1), n_less_1);
    book["direct all_to_all"] = even(less_one, constant(1), nullptr);
    book["two_shot all_reduce"] = even(twice_less_one, constant(2), twice_n_less_1);
    // and one more for "I have read"
    book["direct_put all_reduce"] = even(less_one, constant(2), nullptr);
    book["two_shot_put all_reduce"] = even(twice_less_one, constant(3), nullptr);
    book["binomial broadcast"] = {whole_to_each, nullptr, nullptr, logarithm};
    book["binomial reduce"] = {whole_to_each, nullptr, nullptr, logarithm};
    // who rests in a round may go ahead: fewer than n rounds in a chain
    book["pairwise all_to_all"] = even(less_one, nullptr, [](int n) { return n - 1 + n % 2; });
    book["ring reduce"] = {whole_to_each, nullptr, n_less_1, n_less_1};
    for (const char *coll : {"broadcast", "reduce", "gather", "scatter", "gather_v", "scatter_v"})
        book[std::string("linear ") + coll] = {whole_to_each, nullptr, constant(1), n_less_1};
    for (const char *coll : {"gather", "scatter"}) {
        book[std::string("binomial ") + coll] = {[](int n) {
                                                     return Amount{digits(n, 2, false), 1};
                                                 },
                                                 nullptr, nullptr, nullptr};
        book[std::string("knomial ") + coll] = {
            [](int n) {
                return Amount{digits(n, 4, false), 1};
            },
            nullptr, [](int n) { return (int)digits(n, 4, true); }, nullptr};
    }
    book["knomial broadcast"] = {whole_to_each, nullptr,
                                 [](int n) { return (int)digits(n, 4, true); }, nullptr};
    book["knomial reduce"] = book["knomial broadcast"];
    book["double_tree all_reduce"] = {[](int n) {
                                          return Amount{2 * ((uint64_t)n - 1), 1};
                                      },
                                      nullptr, nullptr, nullptr};
    book["bruck all_gather"] = even(less_one, logarithm, logarithm);
    book["bruck all_to_all"] = even(
        [](int n) {
            return Amount{digits(n, 2, false), 1};
        },
        logarithm, logarithm);
    book["ordered all_reduce"] = even(twice_less_one, constant(2), nullptr);
    book["ordered reduce"] = {[](int n) {
                                  return Amount{((uint64_t)n - 1) * (n + 1), (uint64_t)n};
                              },
                              nullptr, constant(2), nullptr};
    book["ordered reduce_scatter"] = even(less_one, constant(1), nullptr);
    book["ordered reduce_scatter_v"] = book["ordered reduce_scatter"];
    book["ordered_direct all_reduce"] = even(less_one, constant(1), nullptr);
    book["ordered_direct reduce"] = {whole_to_each, nullptr, constant(1), n_less_1};
    book["ordered_tree reduce"] = {whole_to_each, nullptr, nullptr, logarithm};
    book["ordered_tree all_reduce"] = {
        [](int n) {
            bool power = (n & (n - 1)) == 0;
            return Amount{(uint64_t)(power ? n * log2_floor(n) : 2 * (n - 1)), 1};
        },
        nullptr, nullptr, [](int n) { return (n & (n - 1) ? 2 : 1) * log2_ceil(n); }};
    book["ordered_halving all_reduce"] = even(twice_less_one, nullptr, nullptr);
    book["ordered_halving reduce_scatter"] = even(less_one, nullptr, nullptr);
    book["ordered_halving reduce_scatter_v"] = book["ordered_halving reduce_scatter"];
    // as much as in one level
    book["two_level all_reduce"] = even(twice_less_one, nullptr, nullptr);
    book["two_level reduce_scatter"] = even(less_one, nullptr, nullptr);
    book["two_level all_gather"] = even(less_one, nullptr, nullptr);
    book["two_level broadcast"] = {whole_to_each, nullptr, nullptr, nullptr};
    auto pat = [](int n) { return pat_rounds(n, 8); };
    book["pat all_gather"] = even(less_one, nullptr, pat);
    book["pat reduce_scatter"] = even(less_one, nullptr, pat);
    for (const char *v :
         {"bruck all_gather_v", "pat all_gather_v", "ring reduce_scatter_v", "ring all_gather_v",
          "circulant reduce_scatter_v", "circulant all_gather_v", "direct reduce_scatter_v",
          "direct all_gather_v", "direct all_to_all_v", "pairwise all_to_all_v"})
        book[v] = book.at(std::string(v, strlen(v) - 2)); // in groups, whatever their counts
    book["dissemination barrier"] = {[](int) {
                                         return Amount{0, 1};
                                     },
                                     nullptr, logarithm, logarithm};
    return book;
}

} // namespace

TEST(Cost, VolumeIsTheTextbooks)
{
    std::map<std::string, Textbook> book = textbook();
    std::mt19937_64 random(2);
    size_t pages = 0;
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        std::string key = std::string(algo->name) + " " + tw_coll_name(coll);
        ASSERT_EQ(book.count(key), 1u) << key;
        pages++;
        for (int nranks = 2; nranks <= most_ranks;
             nranks += nranks < 20 ? 1 : 1 + (int)(random() % 5)) {
            int root = has_root(coll) ? (int)(random() % (uint64_t)nranks) : 0;
            tw_algo_args args = {coll, nranks, root, -1, 1 + (uint32_t)nranks % 3, 0};
            Plan plan = generate(algo, args);
            Amount total = book[key].total(nranks);
            ASSERT_EQ(sent_by_all(plan.get()), total) << title(algo, args);
            for (int r = 0; book[key].each && r < nranks; r++)
                ASSERT_EQ(sent_by(plan.get(), r), book[key].each(nranks)) << title(algo, args);
            // where every cell goes alike total.den divides any count; else only whole cells count
            uint64_t whole = key == "ordered reduce" ? per_of(plan.get()) : 1;
            for (uint64_t count : {0, 1, 7, 63, 1000})
                ASSERT_EQ(elements_of_all(plan.get(), count * whole) * total.den,
                          count * whole * total.num)
                    << title(algo, args) << " count " << count;
        }
    });
    EXPECT_EQ(pages, book.size());
}

// A tree's ranks differ: every rank but the root receives the whole once (reduce: sends it), a leaf
// sends nothing on.
TEST(Cost, TreesMoveTheWholeOncePerRank)
{
    for (int nranks = 2; nranks <= most_ranks; nranks++)
        for (const char *name : {"binomial", "knomial", "linear", "ring"}) {
            Plan plan = generate(tw_algo_find(name, TW_COLL_BROADCAST),
                                 {TW_COLL_BROADCAST, nranks, nranks / 3, -1, 2, 0});
            std::vector<uint64_t> received(nranks);
            for (int r = 0; r < nranks; r++)
                for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++)
                    for (uint32_t i = 0; i < plan->ranks[r].lanes[l].nsteps; i++)
                        if (sends(plan->ranks[r].lanes[l].steps[i]))
                            received[plan->ranks[r].lanes[l].steps[i].to] +=
                                cells_of(plan->ranks[r].lanes[l].steps[i]);
            for (int r = 0; r < nranks; r++)
                EXPECT_EQ((Amount{received[r], per_of(plan.get())}),
                          (Amount{r == nranks / 3 ? 0u : 1u, 1}));
        }
    for (int nranks = 2; nranks <= most_ranks; nranks++) {
        Plan plan = generate(tw_algo_find("binomial", TW_COLL_REDUCE),
                             {TW_COLL_REDUCE, nranks, nranks / 3, -1, 2, 0});
        for (int r = 0; r < nranks; r++)
            EXPECT_EQ(sent_by(plan.get(), r), (Amount{r == nranks / 3 ? 0u : 1u, 1}));
    }
}

// Each value of PAT's parameter moves the same and takes as many rounds as it should.
TEST(Cost, AggregationBuysRounds)
{
    for (tw_coll coll : {TW_COLL_ALL_GATHER, TW_COLL_REDUCE_SCATTER})
        for (int nranks = 2; nranks <= most_ranks; nranks += nranks < 18 ? 1 : 15)
            for (uint32_t aggregation : {1, 2, 3, 4, 8, 16, 64}) {
                tw_algo_args args = {coll, nranks, 0, -1, 1, aggregation};
                Plan plan = generate(tw_algo_find("pat", coll), args);
                for (int r = 0; r < nranks; r++)
                    ASSERT_EQ(sent_by(plan.get(), r), less_one(nranks)) << nranks;
                EXPECT_LE(plan->widest, aggregation);
                model::Run run({plan.get()}, model::Options());
                ASSERT_EQ(run.go(), "") << nranks << " " << aggregation;
                EXPECT_EQ((int)run.one_port(), pat_rounds(nranks, (int)aggregation))
                    << nranks << " " << aggregation;
            }
}

// Only 1/group of what moves leaves a group of ranks, whatever the collective.
TEST(Cost, TwoLevelsSpareTheFarLinks)
{
    for (tw_coll coll :
         {TW_COLL_ALL_REDUCE, TW_COLL_REDUCE_SCATTER, TW_COLL_ALL_GATHER, TW_COLL_BROADCAST})
        for (int group : {2, 3, 4, 8})
            for (int hosts = 1; hosts * group <= 48; hosts++) {
                int nranks = group * hosts, root = coll == TW_COLL_BROADCAST ? nranks / 2 : 0;
                tw_algo_args args = {coll, nranks, root, -1, 1, (uint32_t)group};
                Plan plan = generate(tw_algo_find("two_level", coll), args);
                uint64_t far = 0;
                for (int r = 0; r < nranks; r++)
                    for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++)
                        for (uint32_t i = 0; i < plan->ranks[r].lanes[l].nsteps; i++) {
                            const tw_plan_step &step = plan->ranks[r].lanes[l].steps[i];
                            if (sends(step) && step.to / group != r / group)
                                far += cells_of(step);
                        }
                // of hosts, each with one copy (or sum) of the data, as in one level
                uint64_t whole = coll == TW_COLL_BROADCAST    ? hosts - 1
                                 : coll == TW_COLL_ALL_REDUCE ? 2 * (hosts - 1)
                                                              : nranks * (hosts - 1);
                EXPECT_EQ((Amount{far, per_of(plan.get())}), (Amount{whole, 1}))
                    << title(tw_algo_find("two_level", coll), args);
            }
}

// In the double tree a message passes 2 log2 n ranks at most, and no rank sends more than two whole
// buffers but the roots, who have one more half to give.
TEST(Cost, DoubleTreeIsLowAndEven)
{
    const tw_algo *algo = tw_algo_find("double_tree", TW_COLL_ALL_REDUCE);
    for (int nranks = 2; nranks <= most_ranks; nranks++) {
        Plan plan = generate(algo, {TW_COLL_ALL_REDUCE, nranks, 0, -1, 1, 0});
        for (int r = 0; r < nranks; r++)
            EXPECT_LE(sent_by(plan.get(), r).num, 2 * 2u) << nranks;
        model::Run run({plan.get()}, model::Options());
        ASSERT_EQ(run.go(), "") << nranks;
        EXPECT_LE((int)run.chain(), 2 * log2_floor(nranks)) << nranks;
    }
}

// Recursive doubling's ranks differ where some fold: log2 p for those that stay, one more for the
// odd one of a pair, one for the even one.
TEST(Cost, FoldedRanksPayForTheirPair)
{
    const tw_algo *algo = tw_algo_find("recursive_doubling", TW_COLL_ALL_REDUCE);
    for (int nranks = 2; nranks <= most_ranks; nranks++) {
        Plan plan = generate(algo, {TW_COLL_ALL_REDUCE, nranks, 0, -1, 1, 0});
        uint64_t log = (uint64_t)log2_floor(nranks);
        int pairs = nranks - (1 << log2_floor(nranks));
        for (int r = 0; r < nranks; r++) {
            uint64_t want = r >= 2 * pairs ? log : r % 2 ? log + 1 : 1;
            EXPECT_EQ(sent_by(plan.get(), r), (Amount{want, 1})) << nranks << " rank " << r;
        }
    }
}

TEST(Cost, RoundsAreTheTextbooks)
{
    std::map<std::string, Textbook> book = textbook();
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        const Textbook &page = book[std::string(algo->name) + " " + tw_coll_name(coll)];
        for (int nranks = 2; nranks <= most_ranks; nranks += nranks < 10   ? 1
                                                             : nranks < 14 ? 3
                                                                           : 20) {
            tw_algo_args args = {coll, nranks, has_root(coll) ? nranks / 2 : 0, -1, 1, 0};
            Plan plan = generate(algo, args);
            model::Run run({plan.get()}, model::Options());
            ASSERT_EQ(run.go(), "") << title(algo, args);
            if (page.chain) {
                ASSERT_EQ((int)run.chain(), page.chain(nranks)) << title(algo, args);
            }
            if (page.one_port) {
                ASSERT_EQ((int)run.one_port(), page.one_port(nranks)) << title(algo, args);
            }
        }
    });
}

// log2 p exchanges, and where ranks fold a round before and one behind, which only those pay that
// wait for a folded rank.
TEST(Cost, RoundsOfRecursiveDoubling)
{
    const tw_algo *algo = tw_algo_find("recursive_doubling", TW_COLL_ALL_REDUCE);
    for (int nranks = 2; nranks <= most_ranks; nranks++) {
        Plan plan = generate(algo, {TW_COLL_ALL_REDUCE, nranks, 0, -1, 1, 0});
        model::Run run({plan.get()}, model::Options());
        ASSERT_EQ(run.go(), "") << nranks;
        int log = log2_floor(nranks), pairs = nranks - (1 << log);
        EXPECT_GE((int)run.chain(), log + (pairs ? 1 : 0)) << nranks;
        EXPECT_LE((int)run.chain(), log + (pairs ? 2 : 0)) << nranks;
        EXPECT_LE((int)run.one_port(), log + (pairs ? 2 : 0)) << nranks;
    }
}
