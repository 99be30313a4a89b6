/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a case of the cover is, all of it from one number.
 * Never knows: buffers, communicators, results. */
#ifndef TESTS_GPU_CASE_H
#define TESTS_GPU_CASE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "property/case.h"
#include "twill.h"

namespace gpu
{

using property::mix;
using property::Random;

enum Kind {
    ALL_REDUCE,
    REDUCE,
    BROADCAST,
    REDUCE_SCATTER,
    ALL_GATHER,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    REDUCE_SCATTER_V,
    ALL_GATHER_V,
    ALL_TO_ALL_V,
    GATHER_V,
    SCATTER_V,
    BARRIER,
    KINDS
};

const char *name(Kind kind);
bool reduces(Kind kind);
bool has_root(Kind kind);
bool varies(Kind kind);  /* blocks have counts of their own */
bool many_in(Kind kind); /* sendbuf has a block for each rank */
bool many_out(Kind kind);
/* Does the rank read, write a buffer? Else it is ignored. */
bool has_in(Kind kind, bool at_root);
bool has_out(Kind kind, bool at_root);

/* Sums that each rank creates with a scalar of its own, which lies in device memory or not. */
const int PREMUL_VALUE = 8, PREMUL_POINTER = 9;
const char *op_name(int op);

enum Bits { WILD, TAME, SPECIAL };               /* any; of like size; NaN, infinity, tiny ones */
enum Streams { OWN, DEFAULT, SHARED, CHANGING }; /* of a rank in the rounds of a case */
enum How { PLAIN, GRAPH, MIXED };                /* MIXED: rounds of both sorts in turn */
enum Capture { THREAD_LOCAL, RELAXED };

struct RankCase {
    bool in_place = false;
    bool null_ignored = false;          /* buffers that are ignored are NULL */
    size_t in_shift = 0, out_shift = 0; /* elements off the alignment of an allocation */
    /* of a call that varies: where blocks begin in buffers that have one for each rank, as the call
     * says it; empty: packed, and not said */
    std::vector<size_t> in_at, out_at;
    int current = 0; /* device of the thread that calls, before and after */
};

struct Case {
    uint64_t seed = 0;
    int size = 1, placement = 0;
    Kind kind = BARRIER;
    twill_type_t type = TWILL_INT8;
    int op = TWILL_SUM;
    size_t count = 0;           /* of a block */
    std::vector<size_t> counts; /* of a call that varies: of each rank's block, or [from][to] */
    int root = 0;
    Bits bits = WILD;
    bool threads = false; /* one for each rank; else one for all, with groups */
    int first = 0;        /* of the ranks, in a group */
    bool one_group = false;
    Streams streams = OWN;
    How how = PLAIN;
    Capture capture = RELAXED;
    int rounds = 1;
    bool await_each = false; /* round, before the next is given to the device */
    std::vector<RankCase> ranks;

    /* In elements, of buffers that are read or written. */
    size_t block(int from, int to) const;
    size_t in_count(int rank) const;          /* without gaps between blocks */
    size_t in_before(int rank, int to) const; /* of that, before a block */
    size_t in_extent(int rank) const, out_extent(int rank) const;
    size_t in_first(int rank, int to) const, out_first(int rank, int from) const;
    size_t total() const; /* of the largest buffer there is */
};

struct Limits {
    int sizes = 0;                  /* 0: any; else the number of ranks */
    int placements = 1;             /* a case's is below */
    size_t buffer_bytes = 64 << 20; /* of a rank's larger buffer */
    /* Not 0: sizes are drawn near these, else near what the library has: of a block that goes by
     * lines, at most, and of a slot of a ring. */
    size_t line_bytes = 0, piece_bytes = 0;
};

/* The same seed and limits give the same case. 2585 seeds that follow each other have every
 * collective with every type, operation and number of ranks. */
Case draw(uint64_t seed, const Limits &limits);
std::string text(const Case &c);

} // namespace gpu

#endif
