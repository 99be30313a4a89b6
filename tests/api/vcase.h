/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls with a count for each rank: their buffers, what goes in, what must come out.
 * Never knows: how the library gets it there. */
#ifndef TESTS_API_VCASE_H
#define TESTS_API_VCASE_H

#include <string>
#include <vector>

#include "data.h"
#include "world.h"

namespace vcase
{

enum Kind { ALL_GATHER_V, REDUCE_SCATTER_V, ALL_TO_ALL_V, GATHER_V, SCATTER_V, KINDS };
enum Layout { PACKED, SPREAD, REVERSED, LAYOUTS };

inline const char *name(Kind kind)
{
    static const char *const names[] = {"all_gather_v", "reduce_scatter_v", "all_to_all_v",
                                        "gather_v", "scatter_v"};
    return names[kind];
}

struct Case {
    Kind kind;
    twill_type_t type;
    twill_redop_t op;
    std::vector<std::vector<size_t>> pairs; /* [from][to]; a count of a rank alone: [rank][rank] */
    int root;
    Layout layout;     /* of buffers with a block for each rank */
    uint64_t in_place; /* bit for each rank */
    uint64_t seed;

    int size() const { return (int)pairs.size(); }
    bool many_in() const
    {
        return kind == REDUCE_SCATTER_V || kind == ALL_TO_ALL_V || kind == SCATTER_V;
    }
    bool many_out() const
    {
        return kind == ALL_GATHER_V || kind == ALL_TO_ALL_V || kind == GATHER_V;
    }
    bool has_in(int rank) const { return kind != SCATTER_V || rank == root; }
    bool has_out(int rank) const { return kind != GATHER_V || rank == root; }
    size_t count_in(int rank, int block) const
    {
        if (kind == ALL_TO_ALL_V)
            return pairs[(size_t)rank][(size_t)block];
        const size_t whose = (size_t)(many_in() ? block : rank);
        return pairs[whose][whose];
    }
    size_t count_out(int rank, int block) const
    {
        if (kind == ALL_TO_ALL_V)
            return pairs[(size_t)block][(size_t)rank];
        const size_t whose = (size_t)(many_out() ? block : rank);
        return pairs[whose][whose];
    }
    std::string text() const;
};

/* One rank's side of a case. */
class Buffers
{
  public:
    Buffers(const Case &c, int rank);
    enum twill_status call(twill_comm_t comm, twill_stream_t stream);
    /* "": right. Input, gaps and guards are looked at too. */
    std::string check() const;
    /* The caller's arrays no longer hold what the call was given. */
    void forget();

  private:
    struct Side {
        std::vector<size_t> counts, displs;
        data::Bytes bytes, before;
        unsigned char *at = nullptr;
    };
    void lay(Side *side, bool in) const;
    data::Bytes want(int block) const;

    Case c_;
    int rank_;
    bool in_place_;
    Side in_, out_;
    unsigned char *send_, *recv_;
};

/* Counts drawn so that some are 0, some are large, or all are equal, or all are 0. */
Case draw(uint64_t *state, int size, size_t most);

} // namespace vcase

#endif
