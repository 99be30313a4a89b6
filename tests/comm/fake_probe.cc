/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the self-test's kernel, done by the host on made up devices, some of which lie.
 * Never knows: who tries whom. */
#include <mutex>

#include "fake_gpu.h"

using namespace fake;

static enum tw_gk_seen item_do(const struct tw_gk_probe_item &item, Lie lie)
{
    uint32_t right = 0, nothing = 0;

    for (uint32_t i = 0; i < TW_GK_PROBE_WORDS; i++) {
        const uint32_t word = TW_GK_PROBE_WORD(item.seed, i);
        if (item.verb == TW_GK_PROBE_WRITE) {
            if (lie != LOST)
                item.at[i] = lie == TWISTED_WRITES && i == 17 ? word ^ 0x100 : word;
            continue;
        }
        const uint32_t there = lie == TWISTED_READS && i == 5 ? item.at[4] : item.at[i];
        const uint32_t read = lie == STALE ? 0 : there;
        right += read == word;
        nothing += read == 0;
        if (item.verb == TW_GK_PROBE_TAKE)
            item.at[i] = 0;
    }
    if (item.verb == TW_GK_PROBE_WRITE)
        return TW_GK_SEEN_NOT;
    return right == TW_GK_PROBE_WORDS     ? TW_GK_SEEN_RIGHT
           : nothing == TW_GK_PROBE_WORDS ? TW_GK_SEEN_NOTHING
                                          : TW_GK_SEEN_OTHER;
}

extern "C" {

enum twill_status tw_gk_probe_load(int) { return TWILL_OK; }

enum twill_status tw_gk_probe_start(int device, const struct tw_gk_probe *probe, void *stream)
{
    static std::mutex one; /* ranks read and write each other's memory */
    const std::lock_guard<std::mutex> guard(one);

    if (!probe_note(device, stream))
        return TWILL_ERR_SYSTEM;
    for (uint32_t i = 0; i < probe->items; i++)
        probe->seen[i] = item_do(probe->item[i], lie_of(device, probe->item[i].at));
    return TWILL_OK;
}
}
