/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of different sizes: rank r has r + 1 numbers, and every rank gets all of them. */
#include <stdio.h>
#include <twill.h>

enum { MOST = 64 };

int main(void)
{
    twill_comm_t comm;
    int rank, size, total = 0;
    size_t counts[MOST];
    int32_t mine[MOST], all[MOST * (MOST + 1) / 2];

    if (twill_comm_init_env(&comm, NULL) != TWILL_OK) {
        fprintf(stderr, "init: %s\n", twill_last_error(NULL));
        return 1;
    }
    twill_comm_rank(comm, &rank);
    twill_comm_size(comm, &size);
    if (size > MOST)
        return 1;
    for (int r = 0; r < size; r++) {
        counts[r] = (size_t)r + 1;
        mine[r] = 10 * rank + r;
        total += r + 1;
    }
    /* displacements NULL: packed */
    if (twill_all_gather_v(mine, all, counts, NULL, TWILL_INT32, comm, NULL) != TWILL_OK) {
        fprintf(stderr, "all_gather_v: %s\n", twill_last_error(comm));
        return 1;
    }
    for (int i = 0; rank == 0 && i < total; i++)
        printf("%d%c", all[i], i + 1 < total ? ' ' : '\n');
    return twill_comm_destroy(comm) != TWILL_OK;
}
