/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a case is: a job and its calls, all of it from one seed.
 * Never knows: buffers, results, how ranks come to be. */
#ifndef TESTS_PROPERTY_CASE_H
#define TESTS_PROPERTY_CASE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "twill.h"

namespace property
{

const int RANKS_MOST = 9;
const int COMMS = 3; /* of all ranks, of a split, of those that are left at the end */

inline uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* splitmix64 */
class Random
{
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15ull); }
    /* 0 to n - 1 */
    size_t below(size_t n) { return bits() % n; }
    /* one time in n */
    bool one_in(size_t n) { return below(n) == 0; }

  private:
    uint64_t state_;
};

enum Kind {
    ALL_REDUCE,
    REDUCE,
    BROADCAST,
    REDUCE_SCATTER,
    ALL_GATHER,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    ALL_GATHER_V,
    REDUCE_SCATTER_V,
    ALL_TO_ALL_V,
    GATHER_V,
    SCATTER_V,
    BARRIER,
    SENDS, /* all_to_all_v's blocks by send and recv */
    KINDS
};

const char *name(Kind kind);
bool reduces(Kind kind);
bool is_v(Kind kind); /* counts are in pairs */
bool has_root(Kind kind);
bool many_in(Kind kind); /* sendbuf has a block for each rank */
bool many_out(Kind kind);

const int PREMUL = TWILL_OP_CREATED; /* stands for a sum created by each rank */

/* EXACT: every order of operations gives the same. ROUGH: floats that round. WILD: any bits. */
enum Data { EXACT, ROUGH, WILD };
enum Layout { PACKED, SPREAD, REVERSED, LAYOUTS };

struct Call {
    Kind kind = BARRIER;
    twill_type_t type = TWILL_INT8;
    int op = TWILL_SUM;
    bool by_value = false; /* PREMUL: where the scalar is */
    Data data = EXACT;
    size_t count = 0;                       /* as the call takes it */
    std::vector<std::vector<size_t>> pairs; /* [from][to]; a count of a rank alone: [rank][rank] */
    std::vector<std::vector<int>> parts;    /* SENDS: messages of a pair; 0: none */
    int root = 0;
    Layout layout = PACKED;
    uint64_t in_place = 0;        /* bit for each rank */
    uint64_t seed = 0;            /* values, offsets, what is passed where an argument is ignored */
    uint64_t mapped = 0;          /* likewise: buffers of twill_mem_alloc */
    int comm = 0;                 /* of COMMS */
    int streams[RANKS_MOST] = {}; /* 0: blocking */

    std::string text() const;
};

/* Calls that are made together. */
struct Batch {
    bool group = false;
    bool sync = false; /* streams are synchronized after it */
    std::vector<Call> calls;
    uint64_t wrong = 0; /* bit for each rank: a call with a bad argument goes before its others */
    uint64_t simulated = 0;  /* its group is simulated first; of several in a thread, the first's */
    bool registered = false; /* with twill_register, each buffer that is read */
    bool fed = false; /* its one call's input comes by another communicator, stream and an event */
    uint64_t asked = 0; /* choices and memory are asked for first; likewise */

    std::string text(size_t number) const;
};

/* What goes wrong on purpose at the end of a case, with the communicator of all ranks. DIFFERS: the
 * guilty rank makes another call. CUT: ranks repeat their calls till its process is killed. ABORTS:
 * till it aborts. */
enum Trouble { NONE, DIFFERS, CUT, ABORTS };
struct Finale {
    Trouble trouble = NONE;
    int guilty = 0; /* rank */
    Batch batch;
    size_t which = 0; /* DIFFERS: of the batch's calls, the one that the guilty rank makes as... */
    Call other;
    unsigned after_us = 0; /* CUT, ABORTS */
    bool shrinks = false;
    Batch after; /* on the communicator of those that are left */
};

using Env = std::vector<std::pair<std::string, std::string>>;

struct Case {
    uint64_t seed = 0;
    int size = 1;
    int processes = 1;
    uint64_t alone = 0; /* bit for each process: one thread makes the calls of all its ranks */
    bool by_id = false; /* one process: by unique id rather than init_all */
    bool deterministic = false;
    bool nonblocking = false; /* config.blocking = 0 */
    bool finalizes = false;   /* before it destroys */
    bool splits = false;
    int color[RANKS_MOST] = {};
    int key[RANKS_MOST] = {};
    Env env;
    bool user_plans = false;
    bool streams_last = false;      /* are destroyed after communicators */
    const char *forced[KINDS] = {}; /* algorithm by TWILL_ALGO; NULL: chosen */
    std::vector<Batch> batches;
    Finale finale;

    int first_of(int process) const { return process * size / processes; }
    int process_of(int rank) const;
    bool is_killed(int process) const;
    std::string head() const; /* all but the calls */
    std::string text() const;
};

Case draw(uint64_t seed);
Call draw_call(const Case &c, Random *random, size_t *bytes_left);
void draw_pairs(Call *call, Random *random, int size, size_t most);
/* env.cc: the parameters of c, whose ranks are drawn. */
void draw_env(Case *c, Random *random);
/* trouble.cc: whose memory, and what orders calls. */
void draw_memory(Case *c, Random *random);
/* User plans, of docs/plans. */
void draw_plans(Case *c, Random *random);
/* trouble.cc: what goes wrong in c, which is drawn otherwise. */
void draw_trouble(Case *c, Random *random);
std::string text_of(const Finale &finale);

/* A rank's place in one of its communicators: its number there, and which of the case's are in. */
struct Place {
    int rank = -1; /* -1: none */
    std::vector<int> members;

    int size() const { return (int)members.size(); }
};
Place place(const Case &c, int comm, int rank);

} // namespace property

#endif
