/* SPDX-License-Identifier: Apache-2.0 */
/* One thread drives all ranks: calls of a group are simultaneous, so none waits for the next. */
#include <stdio.h>
#include <twill.h>

#define RANKS 4

int main(void)
{
    twill_comm_t comms[RANKS];
    int32_t in[RANKS], out[RANKS][RANKS];
    enum twill_status status = twill_comm_init_all(comms, RANKS, NULL, NULL);

    if (status != TWILL_OK) {
        fprintf(stderr, "init: %s\n", twill_last_error(NULL));
        return 1;
    }
    twill_group_start();
    for (int r = 0; r < RANKS; r++) {
        in[r] = 10 * r;
        twill_all_gather(&in[r], out[r], 1, TWILL_INT32, comms[r], NULL);
    }
    status = twill_group_end();
    if (status != TWILL_OK)
        fprintf(stderr, "all_gather: %s\n", twill_last_error(NULL));
    else
        printf("rank 2 has %d %d %d %d\n", out[2][0], out[2][1], out[2][2], out[2][3]);
    for (int r = 0; r < RANKS; r++)
        twill_comm_destroy(comms[r]);
    return status != TWILL_OK;
}
