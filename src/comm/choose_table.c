/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which costs of the table a measurement of the host replaces. Never knows: what is chosen
 * by them. */
#include "config.h"

#include "base/status.h"
#include "comm/choose.h"

static void rate_set(struct tw_cost_table *table, enum tw_cost_exec_field copy,
                     enum tw_cost_exec_field reduce, uint64_t bytes_per_s)
{
    uint32_t c = tw_cost_exec_index(TW_COST_HOST, copy);
    uint32_t r = tw_cost_exec_index(TW_COST_HOST, reduce);
    struct tw_cost_row row;
    uint64_t rate = bytes_per_s / 1000000;
    if (rate == 0 || !tw_cost_row_get(c, &row))
        return;
    rate = rate < row.least ? row.least : rate > row.most ? row.most : rate;
    /* adding keeps its share of the speed of copying */
    uint64_t add = rate * table->value[r] / table->value[c];
    table->value[c] = rate;
    if (tw_cost_row_get(r, &row))
        table->value[r] = add < row.least ? row.least : add > row.most ? row.most : add;
}

/* What ranks pay that share a CPU: whoever waits yields it. */
static void switch_set(struct tw_cost_table *table, uint64_t switch_ps)
{
    uint32_t index = tw_cost_exec_index(TW_COST_HOST, TW_COST_SWITCH);
    struct tw_cost_row row;
    if (switch_ps == 0 || !tw_cost_row_get(index, &row))
        return;
    table->value[index] = switch_ps < row.least  ? row.least
                          : switch_ps > row.most ? row.most
                                                 : switch_ps;
}

enum twill_status tw_choose_table(const struct tw_facts *facts, const char *file,
                                  struct tw_cost_table *table)
{
    const uint64_t *copy = facts->measured.copy_bytes_per_s;
    tw_cost_table_default(table);
    rate_set(table, TW_COST_COPY_NEAR, TW_COST_REDUCE_NEAR, copy[TW_TOPO_COPY_L2]);
    rate_set(table, TW_COST_COPY_MID, TW_COST_REDUCE_MID, copy[TW_TOPO_COPY_L3]);
    rate_set(table, TW_COST_COPY_FAR, TW_COST_REDUCE_FAR, copy[TW_TOPO_COPY_MEMORY]);
    switch_set(table, facts->measured.switch_ps);
    enum twill_status status = file[0] ? tw_cost_table_load(file, table) : TWILL_OK;
    return tw_failed(status) ? tw_fail(status, "TWILL_COST_FILE: %s", tw_fail_text()) : TWILL_OK;
}
