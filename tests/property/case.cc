/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a case is drawn from its seed, and its text. Never knows: how it is run. */
#include "property/case.h"

#include <algorithm>
#include <sstream>

#include "device/reference.h"

namespace property
{

namespace
{

const size_t CALL_BYTES = 2u << 20;  /* of one rank's buffer, at most */
const size_t CASE_BYTES = 24u << 20; /* of all ranks' buffers together */
const size_t CALLS_MOST = 12;
const Kind reducing[] = {ALL_REDUCE, ALL_REDUCE, REDUCE, REDUCE_SCATTER};

struct Traits {
    const char *name;
    bool reduces, root, many_in, many_out;
};
const Traits traits[KINDS] = {
    {"all_reduce", true, false, false, false},   {"reduce", true, true, false, false},
    {"broadcast", false, true, false, false},    {"reduce_scatter", true, false, true, false},
    {"all_gather", false, false, false, true},   {"all_to_all", false, false, true, true},
    {"gather", false, true, false, true},        {"scatter", false, true, true, false},
    {"all_gather_v", false, false, false, true}, {"reduce_scatter_v", true, false, true, false},
    {"all_to_all_v", false, false, true, true},  {"gather_v", false, true, false, true},
    {"scatter_v", false, true, true, false},     {"barrier", false, false, false, false},
    {"sends", false, false, true, true},
};

/* In elements; none, one, few, around powers of two of bytes or elements, many. */
size_t draw_count(Random *random, size_t width, size_t most)
{
    size_t count = 0;
    switch (random->below(12)) {
    case 0:
        break;
    case 1:
        count = 1;
        break;
    case 2:
    case 3:
    case 4:
        count = 1 + random->below(64);
        break;
    case 5:
    case 6:
    case 7: {
        const size_t power = (size_t)1 << (3 + random->below(16));
        count = (random->one_in(2) ? power : power / width) + random->below(3);
        count -= count > 0;
        break;
    }
    case 8:
    case 9:
    case 10:
        count = random->below(6000);
        break;
    default:
        count = random->below(most + 1);
    }
    return std::min(count, most);
}

} // namespace

void draw_pairs(Call *call, Random *random, int size, size_t most)
{
    const size_t width = reference::bytes(call->type);
    const size_t manner = random->below(8); /* 0: all none, 1: all equal, 2 and 3: symmetric */
    const size_t same = draw_count(random, width, most);
    const auto n = (size_t)size;
    call->pairs.assign(n, std::vector<size_t>(n));
    call->parts.assign(n, std::vector<int>(n));
    for (size_t from = 0; from < n; from++) {
        for (size_t to = 0; to < n; to++) {
            size_t count = random->one_in(3) ? 0 : draw_count(random, width, most);
            count = manner == 0 ? 0 : manner == 1 ? same : count;
            if ((manner == 2 || manner == 3) && to < from)
                count = call->pairs[to][from];
            call->parts[from][to] = (int)((random->below(4) + 1) / 2); /* 0, 1, 1, 2 */
            call->pairs[from][to] = call->kind == SENDS && !call->parts[from][to] ? 0 : count;
        }
    }
}

namespace
{

void draw_op(Call *call, Random *random, bool deterministic)
{
    static const int ops[] = {TWILL_SUM, TWILL_SUM,  TWILL_PROD, TWILL_MAX,  TWILL_MIN, TWILL_AVG,
                              PREMUL,    TWILL_BAND, TWILL_BOR,  TWILL_BXOR, TWILL_SUM};
    const bool floats = reference::is_float(call->type);
    call->op = ops[random->below(floats ? 7 : 11)];
    call->by_value = random->one_in(2);
    const bool selects = call->op == TWILL_MAX || call->op == TWILL_MIN;
    const size_t roll = random->below(10);
    if (!reduces(call->kind) || !floats)
        call->data = WILD;
    else if (selects || deterministic)
        call->data = roll < 3 ? WILD : roll < 8 ? ROUGH : EXACT;
    else
        call->data = roll < 4 ? ROUGH : EXACT;
}

void draw_streams(Call *call, Random *random, int size)
{
    const size_t manner = random->below(4); /* 0, 1: all block, 2: one stream, 3: a mix */
    const int one = 1 + (int)random->below(2);
    for (int rank = 0; rank < size; rank++)
        call->streams[rank] = manner < 2 ? 0 : manner == 2 ? one : (int)random->below(3);
}

} // namespace

Call draw_call(const Case &c, Random *random, size_t *bytes_left)
{
    Call call;
    call.kind = (Kind)random->below(KINDS);
    if (!reduces(call.kind) && random->one_in(4)) /* they have most ways to be wrong */
        call.kind = reducing[random->below(4)];
    call.type = (twill_type_t)random->below(reference::type_count);
    draw_op(&call, random, c.deterministic);
    const size_t width = reference::bytes(call.type), ranks = (size_t)c.size;
    const size_t blocks = many_in(call.kind) || many_out(call.kind) ? ranks : 1;
    const size_t room = std::min(CALL_BYTES, *bytes_left / 2 / ranks);
    const size_t most = room / width / blocks;
    call.count = draw_count(random, width, most);
    if (is_v(call.kind))
        draw_pairs(&call, random, c.size, most);
    call.root = (int)random->below(ranks);
    call.layout = is_v(call.kind) ? (Layout)random->below(LAYOUTS) : PACKED;
    const size_t manner = random->below(4);
    call.in_place = manner == 0 ? 0 : manner == 1 ? UINT64_MAX : random->bits();
    call.seed = random->bits();
    call.comm = c.splits && random->one_in(2);
    draw_streams(&call, random, c.size);
    size_t count = call.count; /* of a block, in the mean */
    for (size_t from = 0; from < call.pairs.size(); from++)
        for (const size_t pair : call.pairs[from])
            count = from ? count + pair / ranks / ranks : pair / ranks / ranks;
    *bytes_left -= std::min(*bytes_left, 2 * ranks * blocks * count * width);
    return call;
}

namespace
{

void draw_job(Case *c, Random *random)
{
    c->size = 1 + (int)random->below(RANKS_MOST);
    switch (random->below(4)) {
    case 0:
        c->processes = c->size;
        break;
    case 1:
        c->processes = 1 + (int)random->below((size_t)c->size);
        break;
    default:
        c->processes = 1;
    }
    c->alone = random->one_in(3) ? UINT64_MAX : random->one_in(3) ? random->bits() : 0;
    c->by_id = random->one_in(3);
    c->deterministic = random->one_in(3);
    c->nonblocking = random->one_in(6);
    c->finalizes = random->one_in(2);
    c->splits = random->one_in(3);
    const size_t colors = 1 + random->below(3);
    for (int rank = 0; rank < c->size; rank++) {
        c->color[rank] = random->one_in(8) ? TWILL_SPLIT_NOCOLOR : (int)random->below(colors);
        c->key[rank] = (int)random->below(5) - 2;
    }
}

} // namespace

const char *name(Kind kind) { return traits[kind].name; }
bool reduces(Kind kind) { return traits[kind].reduces; }
bool is_v(Kind kind) { return (kind >= ALL_GATHER_V && kind <= SCATTER_V) || kind == SENDS; }
bool has_root(Kind kind) { return traits[kind].root; }
bool many_in(Kind kind) { return traits[kind].many_in; }
bool many_out(Kind kind) { return traits[kind].many_out; }

Case draw(uint64_t seed)
{
    Random random(seed);
    Case c;
    c.seed = seed;
    draw_job(&c, &random);
    draw_env(&c, &random);
    size_t bytes_left = CASE_BYTES >> random.below(6);
    for (size_t left = 1 + random.below(CALLS_MOST); left > 0;) {
        Batch batch;
        const size_t calls = std::min(left, random.one_in(2) ? 1 : 1 + random.below(6));
        batch.group = calls > 1 || random.one_in(4);
        batch.sync = random.one_in(2);
        for (size_t i = 0; i < calls; i++)
            batch.calls.push_back(draw_call(c, &random, &bytes_left));
        /* neighbours alike: they may run as one */
        for (size_t i = 1; i < calls; i++) {
            Call &call = batch.calls[i], &before = batch.calls[i - 1];
            if (before.kind != ALL_REDUCE || call.kind != ALL_REDUCE || random.one_in(3))
                continue;
            call.type = before.type;
            call.op = before.op;
            call.data = before.data;
            call.comm = before.comm;
            call.count = random.below(4000);
        }
        left -= calls;
        c.batches.push_back(batch);
    }
    Random more(seed ^ 0x74726f75626c65);
    draw_trouble(&c, &more);
    draw_plans(&c, &more);
    for (Batch &one : c.batches) {
        one.simulated = more.one_in(6) ? more.bits() : 0;
        one.asked = more.one_in(4) ? more.bits() : 0;
    }
    draw_memory(&c, &more);
    return c;
}

int Case::process_of(int rank) const
{
    int process = 0;
    while (first_of(process + 1) <= rank)
        process++;
    return process;
}

bool Case::is_killed(int process) const
{
    return finale.trouble == CUT && process_of(finale.guilty) == process;
}

Place place(const Case &c, int comm, int rank)
{
    Place at;
    for (int i = 0; i < c.size; i++) {
        const bool together = c.color[rank] >= 0 && c.color[i] == c.color[rank];
        const bool left = !c.is_killed(c.process_of(i));
        if (comm == 0 || (comm == 1 ? together : left))
            at.members.push_back(i);
    }
    if (comm == 1)
        std::stable_sort(at.members.begin(), at.members.end(),
                         [&](int a, int b) { return c.key[a] < c.key[b]; });
    for (size_t i = 0; i < at.members.size(); i++)
        if (at.members[i] == rank)
            at.rank = (int)i;
    return at;
}

/* ---- text ------------------------------------------------------------------------------------ */

std::string Call::text() const
{
    static const char *const manners[] = {"exact", "rough", "wild"};
    std::ostringstream out;
    out << property::name(kind) << (comm == 1 ? " on split" : comm ? " on shrunk" : "");
    if (kind != BARRIER)
        out << ' ' << reference::name(type);
    if (property::reduces(kind) && op == PREMUL)
        out << " premul" << (by_value ? " value " : " pointer ") << manners[data];
    else if (property::reduces(kind))
        out << ' ' << reference::name((twill_redop_t)op) << ' ' << manners[data];
    if (is_v(kind)) {
        const bool matrix = kind == ALL_TO_ALL_V || kind == SENDS;
        out << " layout " << layout << " counts";
        for (size_t from = 0; from < pairs.size(); from++) {
            out << (from && matrix ? " |" : "");
            for (size_t to = 0; to < pairs.size(); to++)
                if (matrix || from == to)
                    out << ' ' << pairs[from][to];
        }
    } else if (kind != BARRIER) {
        out << " count " << count;
    }
    if (property::has_root(kind))
        out << " root " << root;
    out << " inplace " << std::hex << (in_place & ((1u << RANKS_MOST) - 1)) << std::dec
        << " mapped " << std::hex << (mapped & ((1u << RANKS_MOST) - 1)) << std::dec << " streams ";
    for (const int stream : streams)
        out << stream;
    return out.str();
}

std::string Case::head() const
{
    std::ostringstream out;
    out << size << " ranks in " << processes << " processes, alone " << std::hex
        << (alone & ((1u << processes) - 1)) << std::dec << (by_id ? ", by id" : "")
        << (deterministic ? ", deterministic" : "") << (nonblocking ? ", nonblocking" : "")
        << (finalizes ? ", finalizes" : "") << (streams_last ? ", streams last" : "");
    for (int rank = 0; splits && rank < size; rank++)
        out << (rank ? " " : ", split ") << color[rank] << '/' << key[rank];
    for (const auto &entry : env)
        out << ' ' << entry.first << '=' << entry.second;
    return out.str() + text_of(finale);
}

std::string Batch::text(size_t number) const
{
    std::ostringstream out;
    for (size_t i = 0; i < calls.size(); i++) {
        out << "  " << number << '.' << i << (group ? " group" : "") << (sync ? " sync " : " ");
        if (wrong)
            out << "after wrong ones of " << std::hex << wrong << std::dec << ' ';
        out << (simulated ? "simulated " : "") << (registered ? "registered " : "")
            << (fed ? "fed " : "") << (asked ? "asked " : "");
        out << calls[i].text() << '\n';
    }
    return out.str();
}

std::string Case::text() const
{
    std::string out = head() + '\n';
    for (size_t b = 0; b < batches.size(); b++)
        out += batches[b].text(b);
    if (finale.trouble == NONE)
        return out;
    out += finale.batch.text(batches.size());
    if (finale.trouble == DIFFERS)
        out += "  rank " + std::to_string(finale.guilty) + ": " + finale.other.text() + '\n';
    return out + (finale.shrinks ? finale.after.text(batches.size() + 1) : "");
}

} // namespace property
