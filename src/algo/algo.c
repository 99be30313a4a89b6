/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which algorithms there are and what each serves. Never knows: who asks. */
#include "algo/algo.h"

#include <string.h>

#include "algo/form.h"

#define SERVES(coll) (1u << TW_COLL_##coll)
#define ORDERED_ALL                                                                                \
    (SERVES(ALL_REDUCE) | SERVES(REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(REDUCE_SCATTER_V))

/* ---- parameters ------------------------------------------------------------------------------ */

static uint32_t radix_value(int nranks, size_t i)
{
    uint32_t radix = i < 6 ? 2u << i : 0;
    return radix < (uint32_t)nranks ? radix : 0;
}

/* Powers of two up to half of the ranks, rounded up. */
static uint32_t aggregation_value(int nranks, size_t i)
{
    return i < 30 && 1u << i < (uint32_t)nranks ? 1u << i : 0;
}

/* Divisors, but for those that make one level of two. */
static uint32_t group_value(int nranks, size_t i)
{
    for (int group = 2; group <= nranks / 2; group++)
        if (nranks % group == 0 && i-- == 0)
            return (uint32_t)group;
    return 0;
}

static const struct tw_algo_param by_radix = {"radix", radix_value};
static const struct tw_algo_param by_aggregation = {"aggregation", aggregation_value};
static const struct tw_algo_param by_group = {"group", group_value};

/* ---- the registry ---------------------------------------------------------------------------- */

static const struct tw_algo algos[] = {
    {.name = "ring",
     .colls = SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(ALL_GATHER) | SERVES(BROADCAST) |
              SERVES(REDUCE) | SERVES(REDUCE_SCATTER_V) | SERVES(ALL_GATHER_V),
     .source = "Patarasu and Yuan 2009; Traeff et al. 2008 for unequal counts",
     .generate = tw_algo_ring},
    {.name = "recursive_doubling",
     .colls = SERVES(ALL_REDUCE) | SERVES(ALL_GATHER),
     .source = "Thakur, Rabenseifner and Gropp 2005, sections 4.1 and 4.5",
     .generate = tw_algo_recursive_doubling},
    {.name = "halving_doubling",
     .colls = SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER),
     .source = "Rabenseifner 2004; Traeff 2024 for counts that are no power of two",
     .generate = tw_algo_halving_doubling},
    {.name = "circulant",
     .colls = SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(ALL_GATHER) |
              SERVES(REDUCE_SCATTER_V) | SERVES(ALL_GATHER_V),
     .source = "Traeff 2024; Bruck et al. 1997",
     .generate = tw_algo_circulant},
    {.name = "direct",
     .colls = SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(ALL_GATHER) |
              SERVES(ALL_TO_ALL) | SERVES(REDUCE_SCATTER_V) | SERVES(ALL_GATHER_V) |
              SERVES(ALL_TO_ALL_V),
     .source = "Shah et al. 2025 (all pairs)",
     .generate = tw_algo_direct},
    {.name = "two_shot",
     .colls = SERVES(ALL_REDUCE),
     .source = "Shah et al. 2025 (all pairs)",
     .generate = tw_algo_two_shot},
    {.name = "ordered",
     .colls = ORDERED_ALL,
     .deterministic = ORDERED_ALL,
     .source = "Shah et al. 2025 (all pairs); Higham 1993 for the order",
     .generate = tw_algo_ordered},
    {.name = "ordered_direct",
     .colls = SERVES(ALL_REDUCE) | SERVES(REDUCE),
     .deterministic = SERVES(ALL_REDUCE) | SERVES(REDUCE),
     .source = "Shah et al. 2025 (all pairs); Higham 1993 for the order",
     .generate = tw_algo_ordered_direct},
    {.name = "ordered_tree",
     .colls = SERVES(ALL_REDUCE) | SERVES(REDUCE),
     .deterministic = SERVES(ALL_REDUCE) | SERVES(REDUCE),
     .source = "Thakur, Rabenseifner and Gropp 2005; Higham 1993 for the order",
     .generate = tw_algo_ordered_tree},
    {.name = "ordered_halving",
     .colls = SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(REDUCE_SCATTER_V),
     .deterministic = SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(REDUCE_SCATTER_V),
     .source = "Rabenseifner 2004; Higham 1993 for the order",
     .generate = tw_algo_ordered_halving},
    {.name = "direct_put",
     .colls = SERVES(ALL_REDUCE),
     .caps = TW_CAP_PUT_SCRATCH,
     .source = "Shah et al. 2025 (all pairs)",
     .generate = tw_algo_direct_put},
    {.name = "two_shot_put",
     .colls = SERVES(ALL_REDUCE),
     .caps = TW_CAP_PUT_SCRATCH,
     .source = "Shah et al. 2025 (all pairs)",
     .generate = tw_algo_two_shot_put},
    /* knomial of radix 2, in a row of its own, so that a choice by price has both */
    {.name = "binomial",
     .colls = SERVES(BROADCAST) | SERVES(REDUCE) | SERVES(GATHER) | SERVES(SCATTER),
     .source = "Thakur, Rabenseifner and Gropp 2005, sections 4.2, 4.4 and 4.5",
     .generate = tw_algo_binomial},
    {.name = "knomial",
     .colls = SERVES(BROADCAST) | SERVES(REDUCE) | SERVES(GATHER) | SERVES(SCATTER),
     .param = &by_radix,
     .source = "Bar-Noy and Kipnis 1994; Thakur, Rabenseifner and Gropp 2005",
     .generate = tw_algo_knomial},
    {.name = "double_tree",
     .colls = SERVES(ALL_REDUCE),
     .source = "Sanders, Speck and Traeff 2009, sections 2 and 4",
     .generate = tw_algo_double_tree},
    {.name = "bruck",
     .colls = SERVES(ALL_GATHER) | SERVES(ALL_GATHER_V) | SERVES(ALL_TO_ALL),
     .source = "Bruck et al. 1997",
     .generate = tw_algo_bruck},
    {.name = "pat",
     .colls = SERVES(ALL_GATHER) | SERVES(ALL_GATHER_V) | SERVES(REDUCE_SCATTER),
     .param = &by_aggregation,
     .source = "Jeaugey 2025",
     .generate = tw_algo_pat},
    {.name = "linear",
     .colls = SERVES(BROADCAST) | SERVES(REDUCE) | SERVES(GATHER) | SERVES(SCATTER) |
              SERVES(GATHER_V) | SERVES(SCATTER_V),
     .source = "Pjesivac-Grbovic et al. 2007, section 3",
     .generate = tw_algo_linear},
    {.name = "pairwise",
     .colls = SERVES(ALL_TO_ALL) | SERVES(ALL_TO_ALL_V),
     .source = "Thakur, Rabenseifner and Gropp 2005, section 4.3; Mendelsohn and Rosa 1985",
     .generate = tw_algo_pairwise},
    {.name = "two_level",
     .colls = SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(ALL_GATHER) | SERVES(BROADCAST),
     .param = &by_group,
     .source = "Karonis et al. 2000; Jain and Sabharwal 2010, section 4",
     .generate = tw_algo_two_level},
    {.name = "dissemination",
     .colls = SERVES(BARRIER),
     .source = "Hensgen, Finkel and Manber 1988",
     .generate = tw_algo_dissemination},
};

const struct tw_algo *tw_algo_at(size_t i)
{
    return i < sizeof(algos) / sizeof(algos[0]) ? &algos[i] : NULL;
}

const struct tw_algo *tw_algo_find(const char *name, enum tw_coll coll)
{
    const struct tw_algo *algo;
    for (size_t i = 0; (algo = tw_algo_at(i)) != NULL; i++)
        if (strcmp(algo->name, name) == 0)
            return (unsigned)coll < TW_COLL_COUNT && (algo->colls >> coll & 1) ? algo : NULL;
    return NULL;
}

/* ---- choice ---------------------------------------------------------------------------------- */

/*
 * Thresholds until the cost model prices plans on measured links. Small calls pay for rounds: one
 * round while everybody to everybody is cheap, then log2 n. Large calls pay for bytes: a schedule
 * of least volume, in two rounds where n-1 messages a round are few, else around the ring. No
 * algorithm that needs a capability is chosen here.
 */
#define FEW_RANKS 8
#define ONE_SHOT_BYTES (4u << 10)
#define SHORT_BYTES (32u << 10)
#define MIDDLE_BYTES (512u << 10)

static const char *reducing_choice(int nranks, uint64_t bytes, bool all)
{
    if (nranks <= FEW_RANKS && bytes <= ONE_SHOT_BYTES)
        return "direct";
    if (all && bytes <= SHORT_BYTES)
        return "recursive_doubling";
    if (nranks <= FEW_RANKS)
        return all ? "two_shot" : "direct";
    return bytes <= MIDDLE_BYTES ? "halving_doubling" : "ring";
}

const struct tw_algo *tw_algo_choose(enum tw_coll coll, int nranks, uint64_t bytes)
{
    const char *name = NULL;
    switch (coll) {
    case TW_COLL_ALL_REDUCE:
    case TW_COLL_REDUCE_SCATTER:
        name = reducing_choice(nranks, bytes, coll == TW_COLL_ALL_REDUCE);
        break;
    case TW_COLL_ALL_GATHER:
        if (nranks <= FEW_RANKS)
            name = "direct";
        else
            name = bytes <= MIDDLE_BYTES ? "circulant" : "ring";
        break;
    case TW_COLL_BROADCAST:
        name = bytes <= SHORT_BYTES ? "binomial" : "ring";
        break;
    case TW_COLL_REDUCE:
        name = "binomial";
        break;
    case TW_COLL_REDUCE_SCATTER_V:
    case TW_COLL_ALL_GATHER_V:
        name = nranks <= FEW_RANKS ? "direct" : bytes <= MIDDLE_BYTES ? "circulant" : "ring";
        break;
    case TW_COLL_ALL_TO_ALL:
        name = nranks <= FEW_RANKS       ? "direct"
               : bytes <= ONE_SHOT_BYTES ? "bruck"
               : bytes <= SHORT_BYTES    ? "direct"
                                         : "pairwise";
        break;
    case TW_COLL_ALL_TO_ALL_V: /* ranks know different counts: those do not decide */
        name = nranks <= 2 * FEW_RANKS ? "direct" : "pairwise";
        break;
    case TW_COLL_GATHER:
    case TW_COLL_SCATTER:
        name = nranks > FEW_RANKS && bytes <= SHORT_BYTES ? "binomial" : "linear";
        break;
    case TW_COLL_GATHER_V:
    case TW_COLL_SCATTER_V:
        name = "linear";
        break;
    case TW_COLL_BARRIER:
        name = "dissemination";
        break;
    case TW_COLL_P2P:
    case TW_COLL_COUNT:
        break;
    }
    return name ? tw_algo_find(name, coll) : NULL;
}

const struct tw_algo *tw_algo_choose_ordered(enum tw_coll coll, int nranks, uint64_t bytes)
{
    const struct tw_coll_rule *rule = tw_coll_rule(coll);
    if (!rule || !rule->reduces)
        return tw_algo_choose(coll, nranks, bytes);
    if (coll == TW_COLL_REDUCE_SCATTER || coll == TW_COLL_REDUCE_SCATTER_V)
        return tw_algo_find("ordered", coll);
    if (nranks <= FEW_RANKS && bytes <= ONE_SHOT_BYTES)
        return tw_algo_find("ordered_direct", coll);
    return tw_algo_find(bytes <= SHORT_BYTES ? "ordered_tree" : "ordered", coll);
}

bool tw_algo_serves(const struct tw_algo *algo, enum tw_coll coll, bool ordered)
{
    uint32_t served = ordered && tw_coll_rule(coll)->reduces ? algo->deterministic : algo->colls;
    return served >> coll & 1;
}
