/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which CPUs of a machine the calling thread may run on. Never knows: why. */
#include "config.h"

#include "topo/self.h"

#include <sched.h>
#include <stdlib.h>

#define NUMBERS_MOST (1u << 20) /* of CPUs; the kernel has fewer */

uint32_t tw_topo_cpus_allowed(const struct tw_topo_machine *machine, uint32_t *pus)
{
    uint32_t count = 0, room = CPU_SETSIZE;
    for (uint32_t i = 0; i < machine->nnodes; i++)
        if (machine->nodes[i].kind == TW_NODE_PU && machine->nodes[i].os_index >= room &&
            machine->nodes[i].os_index < NUMBERS_MOST)
            room = machine->nodes[i].os_index + 1;
    cpu_set_t *set = CPU_ALLOC(room);
    size_t bytes = CPU_ALLOC_SIZE(room);
    if (!set || sched_getaffinity(0, bytes, set)) {
        CPU_FREE(set);
        return 0;
    }
    for (uint32_t i = 0; i < machine->nnodes; i++)
        if (machine->nodes[i].kind == TW_NODE_PU && machine->nodes[i].os_index < room &&
            CPU_ISSET_S(machine->nodes[i].os_index, bytes, set))
            pus[count++] = i;
    CPU_FREE(set);
    return count;
}

uint32_t tw_topo_place_self(const struct tw_topo_machine *machine)
{
    uint32_t place = TW_TOPO_NONE;
    uint32_t *pus = malloc(machine->nnodes * sizeof(*pus));
    uint32_t count = pus ? tw_topo_cpus_allowed(machine, pus) : 0;
    if (count > 0)
        place = pus[0];
    for (uint32_t i = 1; i < count; i++)
        if (machine->nodes[pus[i]].parent != machine->nodes[pus[0]].parent)
            place = TW_TOPO_NONE;
    free(pus);
    return place;
}
