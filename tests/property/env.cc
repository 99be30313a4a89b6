/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which parameters change the way that data takes, and which values are legal together.
 * Never knows: calls. */
#include <cstring>

#include "property/case.h"

extern "C" {
#include "algo/algo.h"
#include "device/reduce.h"
}

namespace property
{

namespace
{

const size_t TEXT_MOST = 200; /* a parameter has fewer than 256 bytes, a part at most 40 */

/* The library's number of a kind: by its name. */
int coll_of(Kind kind)
{
    for (int coll = 0; coll < TW_COLL_COUNT; coll++)
        if (strcmp(tw_coll_name((enum tw_coll)coll), name(kind)) == 0)
            return coll;
    return -1; /* sends */
}

bool serves(const struct tw_algo *algo, Kind kind, bool deterministic)
{
    const uint32_t served = deterministic && reduces(kind) ? algo->deterministic : algo->colls;
    return coll_of(kind) >= 0 && (served >> coll_of(kind) & 1);
}

const struct tw_algo *draw_algo(Random *random, Kind kind, bool deterministic)
{
    std::vector<const struct tw_algo *> all;
    for (size_t i = 0; tw_algo_at(i); i++)
        if (serves(tw_algo_at(i), kind, deterministic))
            all.push_back(tw_algo_at(i));
    return all.empty() ? nullptr : all[random->below(all.size())];
}

std::string with_param(const struct tw_algo *algo, Random *random, int size)
{
    std::string text = algo->name;
    std::vector<uint32_t> values;
    for (size_t i = 0; algo->param && algo->param->value(size, i); i++)
        values.push_back(algo->param->value(size, i));
    if (!values.empty() && random->one_in(2))
        text += ':' + std::to_string(values[random->below(values.size())]);
    return text;
}

/* Could the choice do without it for every collective? */
bool can_miss(const struct tw_algo *left_out, bool deterministic)
{
    for (int kind = 0; kind < KINDS; kind++) {
        int others = 0;
        for (size_t i = 0; tw_algo_at(i); i++) {
            const struct tw_algo *algo = tw_algo_at(i);
            const bool ordered = algo->deterministic != 0;
            const bool taken = !reduces((Kind)kind) || ordered == deterministic;
            others +=
                algo != left_out && !algo->caps && taken && serves(algo, (Kind)kind, deterministic);
        }
        if (kind != SENDS && others == 0)
            return false;
    }
    return true;
}

std::string draw_choice(Case *c, Random *random)
{
    std::string text;
    const size_t manner = random->below(5); /* 0: none, 1: one for all, 2: left out, else each */
    if (manner == 1) {
        const auto *algo = draw_algo(random, (Kind)random->below(BARRIER), c->deterministic);
        text = with_param(algo, random, c->size);
        for (int kind = 0; kind < KINDS; kind++)
            if (serves(algo, (Kind)kind, c->deterministic))
                c->forced[kind] = algo->name;
    } else if (manner == 2) {
        const auto *algo = draw_algo(random, (Kind)random->below(BARRIER), c->deterministic);
        text = can_miss(algo, c->deterministic) ? std::string("^") + algo->name : "";
    } else if (manner > 2) {
        const size_t first = random->below(BARRIER);
        for (size_t i = 0; i < BARRIER && text.size() < TEXT_MOST; i++) {
            const size_t kind = (first + i) % BARRIER;
            const auto *algo = draw_algo(random, (Kind)kind, c->deterministic);
            text += std::string(text.empty() ? "" : ",") + name((Kind)kind) + '=' +
                    with_param(algo, random, c->size);
            c->forced[kind] = algo->name;
        }
    }
    return text;
}

void put(Case *c, const char *parameter, const std::string &value)
{
    c->env.emplace_back(std::string("TWILL_") + parameter, value);
}

} // namespace

void draw_env(Case *c, Random *random)
{
    static const char *const stagings[] = {"2M", "4M", "8M", "16M", "64M", "256M"};
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    const std::string choice = draw_choice(c, random);
    put(c, "LOG", "error");
    if (!choice.empty())
        put(c, "ALGO", choice);
    if (random->one_in(2))
        put(c, "CHANNELS", std::to_string(1 + random->below(4)));
    /* Depth and size of the FIFOs, and scratch, are cut from it. What is forced may not find room
     * in the least ones, and what puts wants a cell for each pair of ranks, in each of them. */
    const bool forced = !choice.empty() && choice[0] != '^';
    const bool puts = choice.find("_put") != std::string::npos;
    const size_t least = puts ? 4 : forced ? 3 : 0;
    if (random->one_in(2))
        put(c, "STAGING", stagings[least + random->below(6 - least)]);
    if (!random->one_in(4))
        put(c, "PROBE", "0");
    if (random->one_in(8))
        put(c, "PROTO", "simple");
    if (random->one_in(4))
        put(c, "CMA", "0");
    if (c->processes == 1 && random->one_in(4))
        put(c, "SHM", "0");
    if (random->one_in(8))
        put(c, "CHECK_PLANS", "1");
    const char *isa = isas[random->below(3)];
    enum tw_isa found;
    if (random->one_in(3) && tw_isa_select(isa, &found) == TWILL_OK)
        put(c, "ISA", isa);
}

/* A communicator whose number of ranks is none of theirs has no use for them. */
void draw_plans(Case *c, Random *random)
{
    static const char *const names[] = {"star", "neighbour", "chain"};
    std::string paths;
    const size_t most = c->deterministic ? 2 : 3; /* chain's order is not the defined one */
    for (size_t i = 0; i < most; i++)
        if (random->one_in(2))
            paths += (paths.empty() ? "" : ":") + TW_PROPERTY_PLANS + "/" + names[i] + ".plan";
    if (paths.empty() || !random->one_in(3))
        return;
    c->user_plans = true;
    put(c, "PLAN_FILE", paths);
}

} // namespace property
