/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: expression trees over the ranks' inputs, one id a tree. Never knows: who computes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/check.h"

static bool exprs_grow(struct tw_exprs *exprs, uint32_t room)
{
    struct tw_expr *nodes = realloc(exprs->nodes, room * sizeof(*nodes));
    if (!nodes)
        return false;
    exprs->nodes = nodes;
    if (exprs->words) {
        uint64_t *sets = realloc(exprs->sets, (size_t)room * exprs->words * sizeof(*sets));
        if (!sets)
            return false;
        exprs->sets = sets;
    }
    exprs->room = room;
    return true;
}

bool tw_exprs_init(struct tw_exprs *exprs, int nranks, bool sets)
{
    *exprs = (struct tw_exprs){.words = sets ? ((uint32_t)nranks + 63) / 64 : 0, .nslots = 256};
    exprs->slots = calloc(exprs->nslots, sizeof(*exprs->slots));
    if (!exprs->slots || !exprs_grow(exprs, 256))
        return false;
    exprs->nodes[0] = (struct tw_expr){.kind = TW_EXPR_UNDEF, .cell = TW_EXPR_MIXED};
    if (sets)
        memset(exprs->sets, 0, exprs->words * sizeof(*exprs->sets));
    exprs->count = 1;
    return true;
}

void tw_exprs_fini(struct tw_exprs *exprs)
{
    free(exprs->nodes);
    free(exprs->sets);
    free(exprs->slots);
    *exprs = (struct tw_exprs){0};
}

static uint64_t *set_of(const struct tw_exprs *exprs, uint32_t id)
{
    return exprs->sets + (size_t)id * exprs->words;
}

/* A new node at the end, its set empty; 0 without memory. */
static uint32_t node_add(struct tw_exprs *exprs, const struct tw_expr *node)
{
    if (exprs->count == exprs->room &&
        (exprs->room > UINT32_MAX / 4 || !exprs_grow(exprs, 2 * exprs->room)))
        return 0;
    exprs->nodes[exprs->count] = *node;
    if (exprs->words)
        memset(set_of(exprs, exprs->count), 0, exprs->words * sizeof(uint64_t));
    return exprs->count++;
}

uint32_t tw_exprs_leaves(struct tw_exprs *exprs, int nranks, uint32_t cells)
{
    uint32_t first = exprs->count;
    for (int rank = 0; rank < nranks; rank++) {
        for (uint32_t cell = 0; cell < cells; cell++) {
            struct tw_expr leaf = {TW_EXPR_LEAF, (uint32_t)rank, 0, cell, 1, false, false};
            uint32_t id = node_add(exprs, &leaf);
            if (id == 0)
                return 0;
            if (exprs->words)
                set_of(exprs, id)[rank / 64] = 1ull << (rank % 64);
        }
    }
    return first;
}

static uint32_t hash(uint32_t kind, uint32_t left, uint32_t right)
{
    uint64_t x = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u + kind;
    x ^= x >> 32;
    return (uint32_t)(x * 0xd6e8feb86659fd93u >> 32);
}

static bool table_grow(struct tw_exprs *exprs)
{
    uint32_t nslots = 2 * exprs->nslots;
    uint32_t *slots = calloc(nslots, sizeof(*slots));
    if (!slots)
        return false;
    for (uint32_t i = 0; i < exprs->nslots; i++) {
        uint32_t id = exprs->slots[i];
        if (id == 0)
            continue;
        const struct tw_expr *node = &exprs->nodes[id];
        uint32_t at = hash(node->kind, node->left, node->right) & (nslots - 1);
        while (slots[at])
            at = (at + 1) & (nslots - 1);
        slots[at] = id;
    }
    free(exprs->slots);
    exprs->slots = slots;
    exprs->nslots = nslots;
    return true;
}

/* What is known of a tree from its parts; true if their sets meet. */
static bool sets_join(const struct tw_exprs *exprs, uint32_t id, uint32_t left, uint32_t right)
{
    bool meet = false;
    for (uint32_t w = 0; w < exprs->words; w++) {
        uint64_t a = set_of(exprs, left)[w], b = right ? set_of(exprs, right)[w] : 0;
        meet = meet || (a & b);
        set_of(exprs, id)[w] = a | b;
    }
    return meet;
}

static uint32_t expr_create(struct tw_exprs *exprs, enum tw_expr_kind kind, uint32_t left,
                            uint32_t right)
{
    struct tw_expr node = exprs->nodes[left];
    node.kind = kind;
    node.left = left;
    node.right = right;
    node.finals = node.finals || kind == TW_EXPR_FINAL;
    if (right) {
        const struct tw_expr *other = &exprs->nodes[right];
        node.cell = node.cell == other->cell ? node.cell : TW_EXPR_MIXED;
        node.ranks += other->ranks;
        node.twice = node.twice || other->twice;
        node.finals = node.finals || other->finals;
    }
    uint32_t id = node_add(exprs, &node);
    if (id && sets_join(exprs, id, left, right))
        exprs->nodes[id].twice = true;
    return id;
}

uint32_t tw_expr_make(struct tw_exprs *exprs, enum tw_expr_kind kind, uint32_t left, uint32_t right)
{
    uint32_t at = hash(kind, left, right) & (exprs->nslots - 1);
    for (uint32_t id; (id = exprs->slots[at]) != 0; at = (at + 1) & (exprs->nslots - 1)) {
        const struct tw_expr *node = &exprs->nodes[id];
        if (node->kind == kind && node->left == left && node->right == right)
            return id;
    }
    uint32_t id = expr_create(exprs, kind, left, right);
    if (id == 0)
        return 0;
    exprs->slots[at] = id;
    return exprs->count > exprs->nslots / 2 && !table_grow(exprs) ? 0 : id;
}

uint32_t tw_expr_round(struct tw_exprs *exprs, uint32_t id)
{
    uint32_t kind = exprs->nodes[id].kind;
    return kind == TW_EXPR_LEAF || kind == TW_EXPR_ROUND
               ? id
               : tw_expr_make(exprs, TW_EXPR_ROUND, id, 0);
}

struct printer {
    char *text;
    size_t bytes, used;
};

static void put_text(struct printer *to, const char *text)
{
    size_t length = strlen(text);
    if (to->used + length + 1 > to->bytes)
        length = to->bytes - to->used - 1;
    memcpy(to->text + to->used, text, length);
    to->used += length;
    to->text[to->used] = '\0';
}

static void print_node(const struct tw_exprs *exprs, uint32_t id, struct printer *to, int depth)
{
    const struct tw_expr *node = &exprs->nodes[id];
    char leaf[48];
    if (to->used + 1 >= to->bytes)
        return;
    if (depth == 0 || node->kind == TW_EXPR_UNDEF) {
        put_text(to, depth == 0 ? "..." : "undefined");
        return;
    }
    if (node->kind == TW_EXPR_LEAF) {
        snprintf(leaf, sizeof(leaf), "r%u.%u", node->left, node->cell);
        put_text(to, leaf);
        return;
    }
    put_text(to, node->kind == TW_EXPR_OP      ? "("
                 : node->kind == TW_EXPR_FINAL ? "final("
                                               : "round(");
    print_node(exprs, node->left, to, depth - 1);
    if (node->right) {
        put_text(to, " + ");
        print_node(exprs, node->right, to, depth - 1);
    }
    put_text(to, ")");
}

void tw_expr_print(const struct tw_exprs *exprs, uint32_t id, char *text, size_t bytes)
{
    struct printer to = {text, bytes, 0};
    text[0] = '\0';
    print_node(exprs, id, &to, 64);
}
