/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which algorithms there are and what each serves. Never knows: who asks. */
#include "algo/algo.h"

#include <string.h>

#include "algo/form.h"

#define SERVES(coll) (1u << TW_COLL_##coll)

static const struct tw_algo algos[] = {
    {"ring", SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(ALL_GATHER) | SERVES(BROADCAST),
     0, "Patarasu and Yuan 2009", tw_algo_ring},
    {"recursive_doubling", SERVES(ALL_REDUCE) | SERVES(ALL_GATHER), 0,
     "Thakur, Rabenseifner and Gropp 2005, sections 4.1 and 4.5", tw_algo_recursive_doubling},
    {"halving_doubling", SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER), 0,
     "Rabenseifner 2004; Traeff 2024 for counts that are no power of two",
     tw_algo_halving_doubling},
    {"circulant", SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(ALL_GATHER), 0,
     "Traeff 2024; Bruck et al. 1997", tw_algo_circulant},
    {"direct",
     SERVES(ALL_REDUCE) | SERVES(REDUCE_SCATTER) | SERVES(ALL_GATHER) | SERVES(ALL_TO_ALL), 0,
     "Shah et al. 2025 (all pairs)", tw_algo_direct},
    {"two_shot", SERVES(ALL_REDUCE), 0, "Shah et al. 2025 (all pairs)", tw_algo_two_shot},
    {"direct_put", SERVES(ALL_REDUCE), TW_CAP_PUT_SCRATCH, "Shah et al. 2025 (all pairs)",
     tw_algo_direct_put},
    {"two_shot_put", SERVES(ALL_REDUCE), TW_CAP_PUT_SCRATCH, "Shah et al. 2025 (all pairs)",
     tw_algo_two_shot_put},
    {"binomial", SERVES(BROADCAST) | SERVES(REDUCE), 0,
     "Thakur, Rabenseifner and Gropp 2005, sections 4.2 and 4.5", tw_algo_binomial},
    {"pairwise", SERVES(ALL_TO_ALL), 0, "Thakur, Rabenseifner and Gropp 2005, section 4.3",
     tw_algo_pairwise},
    {"dissemination", SERVES(BARRIER), 0, "Hensgen, Finkel and Manber 1988", tw_algo_dissemination},
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
    case TW_COLL_ALL_TO_ALL:
        name = nranks <= FEW_RANKS || bytes <= SHORT_BYTES ? "direct" : "pairwise";
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
