/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: described machines by name, and clusters of them. Never knows: this host. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/value.h"
#include "topo/graph.h"
#include "topo/recipe.h"

#define TIER_PS 300000ull /* through a network switch, error correction included */

const char *tw_topo_synthetic_name(unsigned index, const char **text)
{
    const struct tw_topo_recipe *recipe = tw_topo_recipe_at(index);
    if (recipe && text)
        *text = recipe->text;
    return recipe ? recipe->name : NULL;
}

struct options {
    uint64_t hosts, leaf, oversub, rails;
};

static enum twill_status option_read(struct options *options, const char *name, const char *value)
{
    static const struct {
        const char *name;
        size_t offset;
        int64_t least, most;
    } known[] = {
        {"hosts", offsetof(struct options, hosts), 1, 65536},
        {"leaf", offsetof(struct options, leaf), 1, 65536},
        {"oversub", offsetof(struct options, oversub), 1, 64},
        {"rails", offsetof(struct options, rails), 0, 1},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(name, known[i].name) != 0)
            continue;
        int64_t number = 0;
        if (!tw_value_int(value, &number) || number < known[i].least || number > known[i].most)
            return tw_fail(TWILL_ERR_INVALID, "described machine: %s=%s: not %lld to %lld", name,
                           value, (long long)known[i].least, (long long)known[i].most);
        uint64_t taken = (uint64_t)number;
        memcpy((char *)options + known[i].offset, &taken, sizeof(taken));
        return TWILL_OK;
    }
    return tw_fail(TWILL_ERR_INVALID,
                   "described machine: no option '%s'; there are hosts, leaf, oversub, rails",
                   name);
}

/* "hosts=64,leaf=16"; text is cut up. */
static enum twill_status options_read(struct options *options, char *text)
{
    enum twill_status status = TWILL_OK;
    while (text && !tw_failed(status)) {
        char *next = strchr(text, ',');
        if (next)
            *next++ = '\0';
        char *value = strchr(text, '=');
        if (!value)
            return tw_fail(TWILL_ERR_INVALID, "described machine: '%s' is no option=number", text);
        *value++ = '\0';
        status = option_read(options, text, value);
        text = next;
    }
    return status;
}

static enum twill_status recipe_find(const char *name, const struct tw_topo_recipe **recipe)
{
    char all[256] = "";
    size_t used = 0;
    for (unsigned i = 0; tw_topo_recipe_at(i); i++) {
        const struct tw_topo_recipe *each = tw_topo_recipe_at(i);
        if (strcmp(name, each->name) == 0) {
            *recipe = each;
            return TWILL_OK;
        }
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", each->name);
    }
    return tw_fail(TWILL_ERR_INVALID, "no described machine '%s'; there are %s", name, all);
}

static void fabric_build(struct tw_topo_fabric *fabric, const struct tw_topo_recipe *recipe,
                         const struct options *options)
{
    uint64_t ports = options->rails ? 1 : recipe->nics; /* of a host at one switch */
    uint64_t joined = options->leaf < options->hosts ? options->leaf : options->hosts;
    bool two = options->hosts > options->leaf || options->rails;
    fabric->ntiers = two ? 2 : 1;
    fabric->rails = options->rails != 0;
    fabric->tier[0] = (struct tw_topo_tier){
        .down = (uint32_t)options->leaf,
        .latency_ps = TIER_PS,
        .up_bytes_per_s = two ? joined * ports * recipe->nic_bytes_per_s / options->oversub : 0,
    };
    if (two)
        fabric->tier[1] = (struct tw_topo_tier){
            .down = (uint32_t)((options->hosts + options->leaf - 1) / options->leaf),
            .latency_ps = TIER_PS,
        };
}

static enum twill_status graph_build(struct tw_topo_graph *graph,
                                     const struct tw_topo_recipe *recipe,
                                     const struct options *options)
{
    if (options->hosts > 1 && recipe->nics == 0)
        return tw_fail(TWILL_ERR_INVALID, "described machine %s has no NIC, so one host is all",
                       recipe->name);
    if (tw_topo_machine_add(graph) == TW_TOPO_NONE ||
        !tw_topo_hosts_add(graph, 0, (uint32_t)options->hosts))
        return TWILL_ERR_NOMEM;
    enum twill_status status = tw_topo_recipe_build(&graph->machines[0], recipe);
    if (tw_failed(status))
        return status;
    if (options->hosts > 1)
        fabric_build(&graph->fabric, recipe, options);
    return tw_topo_graph_seal(graph);
}

enum twill_status tw_topo_synthetic(struct tw_topo_graph **graph, const char *name)
{
    char text[TW_TOPO_NAME_BYTES], full[TW_TOPO_NAME_BYTES];
    const struct tw_topo_recipe *recipe = NULL;
    if (strncmp(name, TW_TOPO_SYNTHETIC_PREFIX, strlen(TW_TOPO_SYNTHETIC_PREFIX)) == 0)
        name += strlen(TW_TOPO_SYNTHETIC_PREFIX);
    if (strlen(name) >= sizeof(text) - strlen(TW_TOPO_SYNTHETIC_PREFIX))
        return tw_fail(TWILL_ERR_INVALID, "described machine: a name of more than %zu letters",
                       sizeof(text) - strlen(TW_TOPO_SYNTHETIC_PREFIX) - 1);
    (void)snprintf(text, sizeof(text), "%s", name);
    (void)snprintf(full, sizeof(full), TW_TOPO_SYNTHETIC_PREFIX "%.*s",
                   (int)(sizeof(full) - sizeof(TW_TOPO_SYNTHETIC_PREFIX)), name);
    char *rest = strchr(text, ':');
    if (rest)
        *rest++ = '\0';
    enum twill_status status = recipe_find(text, &recipe);
    if (tw_failed(status))
        return status;
    struct options options = {.hosts = 1, .leaf = 32, .oversub = 1};
    options.rails = recipe->gpus > 0 && recipe->nics == recipe->gpus;
    status = options_read(&options, rest);
    if (tw_failed(status))
        return status;
    struct tw_topo_graph *made = tw_topo_graph_create(full);
    if (!made)
        return TWILL_ERR_NOMEM;
    status = graph_build(made, recipe, &options);
    if (tw_failed(status)) {
        tw_topo_graph_free(made);
        return status;
    }
    *graph = made;
    return TWILL_OK;
}
