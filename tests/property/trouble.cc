/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which mistakes and losses a case may have. Never knows: what must come of them. */
#include <algorithm>

#include "device/reference.h"
#include "property/case.h"

namespace property
{

namespace
{

const size_t BYTES = 1u << 20; /* of all ranks' buffers in one call */

/* What a rank may do unlike the others. */
enum Difference { COUNT, TYPE, OP, ROOT, COLLECTIVE, DIFFERENCES };

bool is_legal(int op, twill_type_t type)
{
    return (op != TWILL_BAND && op != TWILL_BOR && op != TWILL_BXOR) || !reference::is_float(type);
}

/* Does the rank send to another one, or receive? */
bool is_heard(const Call &call, int rank)
{
    bool heard = false;
    for (int other = 0; other < (int)call.parts.size(); other++)
        heard = heard || (other != rank && call.parts[(size_t)rank][(size_t)other] +
                                                   call.parts[(size_t)other][(size_t)rank] >
                                               0);
    return heard;
}

/* Where counts are in pairs: one of those that another rank knows too. */
bool change_pair(Call *call, int guilty, int size, Random *random)
{
    auto from = (size_t)guilty, to = from;
    const auto other = (size_t)((guilty + 1 + (int)random->below((size_t)size - 1)) % size);
    switch (call->kind) {
    case ALL_GATHER_V:
    case REDUCE_SCATTER_V:
        from = to = random->below((size_t)size);
        break;
    case GATHER_V:
    case SCATTER_V:
        from = to = guilty == call->root ? other : from;
        break;
    default:
        (random->one_in(2) ? from : to) = other;
    }
    if (call->kind == SENDS && call->parts[from][to] == 0)
        return false;
    size_t &count = call->pairs[from][to];
    count = count && random->one_in(4) ? 0 : count + 1 + random->below(100);
    return true;
}

/* @return whether there is such a difference */
bool make_differ(Call *call, Difference how, int guilty, const Case &c, Random *random)
{
    const Call was = *call;
    call->data = WILD; /* of any type; nobody looks at the result */
    size_t bytes_left = BYTES;
    if (call->kind == SENDS && how != COUNT && !(how == TYPE && is_heard(*call, guilty)))
        return false;
    switch (how) {
    case COUNT:
        if (call->kind == BARRIER)
            return false;
        if (is_v(call->kind))
            return change_pair(call, guilty, c.size, random);
        call->count = call->count && random->one_in(4) ? 0 : call->count + 1 + random->below(100);
        return true;
    case TYPE:
        call->type = (twill_type_t)random->below(reference::type_count);
        return call->kind != BARRIER && call->type != was.type && is_legal(call->op, call->type);
    case OP:
        call->op = (int)random->below(9);
        call->op = call->op == 8 ? PREMUL : call->op;
        return reduces(call->kind) && call->op != was.op && is_legal(call->op, call->type);
    case ROOT:
        call->root = (int)random->below((size_t)c.size);
        return has_root(call->kind) && call->root != was.root;
    default:
        *call = draw_call(c, random, &bytes_left);
        call->comm = 0;
        return call->kind != was.kind && call->kind != SENDS;
    }
}

Batch draw_batch(const Case &c, Random *random, size_t calls, int comm)
{
    Batch batch;
    batch.group = calls > 1 || random->one_in(3);
    batch.sync = true;
    for (size_t i = 0; i < calls; i++) {
        size_t bytes_left = BYTES;
        batch.calls.push_back(draw_call(c, random, &bytes_left));
        batch.calls.back().comm = comm;
    }
    return batch;
}

void draw_difference(Finale *finale, const Case &c, Random *random)
{
    bool found = false;
    while (!found) {
        finale->batch = draw_batch(c, random, random->one_in(2) ? 1 : 1 + random->below(3), 0);
        finale->which = random->below(finale->batch.calls.size());
        finale->other = finale->batch.calls[finale->which];
        const auto how = (Difference)random->below(DIFFERENCES);
        found = make_differ(&finale->other, how, finale->guilty, c, random);
    }
}

} // namespace

void draw_trouble(Case *c, Random *random)
{
    for (Batch &batch : c->batches)
        batch.wrong = random->one_in(8) ? random->bits() : 0;
    if (c->size < 2 || !random->one_in(c->processes > 1 ? 3 : 7))
        return;
    Finale *finale = &c->finale;
    const size_t roll = random->below(4);
    finale->trouble = roll < 2 ? DIFFERS : roll == 2 || c->processes == 1 ? ABORTS : CUT;
    finale->guilty = (int)random->below((size_t)c->size);
    finale->shrinks = random->one_in(2);
    const unsigned most_us[] = {1, 300, 3000, 20000};
    finale->after_us = (unsigned)random->below(most_us[random->below(4)]);
    finale->after = draw_batch(*c, random, 1, COMMS - 1);
    if (finale->trouble == DIFFERS)
        draw_difference(finale, *c, random);
    else
        finale->batch = draw_batch(*c, random, 1 + random->below(3), 0);
}

void draw_memory(Case *c, Random *random)
{
    bool many = false; /* ranks of a thread could not wait for each other in twill_register */
    for (int i = 0; i < c->processes; i++)
        many = many || ((c->alone >> i & 1) && c->first_of(i + 1) - c->first_of(i) > 1);
    c->streams_last = random->one_in(2);
    for (Batch &batch : c->batches) {
        for (Call &call : batch.calls) {
            const size_t manner = random->below(4); /* 0, 1: none, 2: all, 3: a mix */
            call.mapped = manner < 2 ? 0 : manner == 2 ? UINT64_MAX : random->bits();
        }
        const Call &call = batch.calls[0];
        batch.registered = !many && random->one_in(4);
        const bool all_read = !is_v(call.kind) && call.kind != BARRIER && call.kind != BROADCAST &&
                              call.kind != SCATTER;
        batch.fed = c->splits && batch.calls.size() == 1 && all_read &&
                    !(call.comm && many_in(call.kind)) && random->one_in(2);
    }
}

std::string text_of(const Finale &finale)
{
    static const char *const troubles[] = {"", "differs", "is killed", "aborts"};
    if (finale.trouble == NONE)
        return "";
    std::string text =
        ", rank " + std::to_string(finale.guilty) + ' ' + troubles[finale.trouble] + " at the end";
    if (finale.trouble != DIFFERS)
        text += " after " + std::to_string(finale.after_us) + " us";
    return text + (finale.shrinks ? ", shrinks" : "");
}

} // namespace property
