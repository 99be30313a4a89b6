/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: events in the order of time, then lane. Never knows: what happens in them. */
#include "plan/cost_sim.h"

static bool before(struct tw_cost_event a, struct tw_cost_event b)
{
    return a.time < b.time || (a.time == b.time && a.lane < b.lane);
}

void tw_cost_heap_push(struct tw_cost_heap *heap, struct tw_cost_event event)
{
    uint32_t at = heap->count++;
    while (at > 0) {
        uint32_t parent = (at - 1) / 4;
        if (!before(event, heap->events[parent]))
            break;
        heap->events[at] = heap->events[parent];
        at = parent;
    }
    heap->events[at] = event;
}

static uint32_t least_child(const struct tw_cost_heap *heap, uint32_t at)
{
    uint32_t first = 4 * at + 1, least = first;
    uint32_t end = first + 4 < heap->count ? first + 4 : heap->count;
    for (uint32_t child = first + 1; child < end; child++)
        if (before(heap->events[child], heap->events[least]))
            least = child;
    return least;
}

struct tw_cost_event tw_cost_heap_pop(struct tw_cost_heap *heap)
{
    struct tw_cost_event top = heap->events[0];
    struct tw_cost_event last = heap->events[--heap->count];
    uint32_t at = 0;
    while (4 * at + 1 < heap->count) {
        uint32_t child = least_child(heap, at);
        if (!before(heap->events[child], last))
            break;
        heap->events[at] = heap->events[child];
        at = child;
    }
    heap->events[at] = last;
    return top;
}
