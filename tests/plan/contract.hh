// SPDX-License-Identifier: Apache-2.0
// Knows: which buffers each collective has where, and whose data ends up in them, written down a
// second time. Never knows: plans, the tables of src/plan.
#ifndef TW_TESTS_PLAN_CONTRACT_HH
#define TW_TESTS_PLAN_CONTRACT_HH

#include <cstdint>

extern "C" {
#include "plan/plan.h"
}

namespace contract
{

// The collective of equal counts that a v-variant is otherwise like.
inline tw_coll plain(int coll)
{
    switch (coll) {
    case TW_COLL_ALL_GATHER_V:
        return TW_COLL_ALL_GATHER;
    case TW_COLL_REDUCE_SCATTER_V:
        return TW_COLL_REDUCE_SCATTER;
    case TW_COLL_ALL_TO_ALL_V:
        return TW_COLL_ALL_TO_ALL;
    case TW_COLL_GATHER_V:
        return TW_COLL_GATHER;
    case TW_COLL_SCATTER_V:
        return TW_COLL_SCATTER;
    default:
        return (tw_coll)coll;
    }
}

inline bool is_v(int coll) { return plain(coll) != coll; }

inline bool rooted(int coll)
{
    tw_coll c = plain(coll);
    return c == TW_COLL_REDUCE || c == TW_COLL_BROADCAST || c == TW_COLL_GATHER ||
           c == TW_COLL_SCATTER;
}

inline bool reduces(int coll)
{
    tw_coll c = plain(coll);
    return c == TW_COLL_ALL_REDUCE || c == TW_COLL_REDUCE || c == TW_COLL_REDUCE_SCATTER;
}

inline bool has_in(int coll, int root, int rank)
{
    tw_coll c = plain(coll);
    return c != TW_COLL_BARRIER &&
           ((c != TW_COLL_BROADCAST && c != TW_COLL_SCATTER) || rank == root);
}

inline bool has_out(int coll, int root, int rank)
{
    tw_coll c = plain(coll);
    return c != TW_COLL_BARRIER && ((c != TW_COLL_REDUCE && c != TW_COLL_GATHER) || rank == root);
}

// A group for each rank; else one.
inline bool many_in(int coll)
{
    tw_coll c = plain(coll);
    return c == TW_COLL_REDUCE_SCATTER || c == TW_COLL_ALL_TO_ALL || c == TW_COLL_SCATTER;
}

inline bool many_out(int coll)
{
    tw_coll c = plain(coll);
    return c == TW_COLL_ALL_GATHER || c == TW_COLL_ALL_TO_ALL || c == TW_COLL_GATHER;
}

// Elements of group `group` of IN and OUT on a rank, pairs[from][to] being what a pair exchanges.
// Where counts belong to ranks, rank r's is pairs[r][r].
template <class Pairs>
uint64_t count_in(int coll, uint64_t count, const Pairs &pairs, int rank, int group)
{
    if (!is_v(coll))
        return count;
    if (coll == TW_COLL_ALL_TO_ALL_V)
        return pairs.at(rank).at(group);
    int whose = many_in(coll) ? group : rank;
    return pairs.at(whose).at(whose);
}

template <class Pairs>
uint64_t count_out(int coll, uint64_t count, const Pairs &pairs, int rank, int group)
{
    if (!is_v(coll))
        return count;
    if (coll == TW_COLL_ALL_TO_ALL_V)
        return pairs.at(group).at(rank);
    int whose = many_out(coll) ? group : rank;
    return pairs.at(whose).at(whose);
}

// Where OUT's group comes from when nothing is reduced: whose IN, which group of it. For
// reductions, the group of every rank's IN.
inline int source_rank(int coll, int root, int group) { return many_out(coll) ? group : root; }
inline int source_group(int coll, int rank) { return many_in(coll) ? rank : 0; }

} // namespace contract

#endif
