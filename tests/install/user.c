/* SPDX-License-Identifier: Apache-2.0 */
/* What a user writes: the sum of the ranks, on every rank.
 *
 * Knows: twill.h. Never knows: twill's sources or its build. */
#include <stdio.h>
#include <twill.h>

int main(void)
{
    twill_comm_t comm;
    int rank = 0;
    int size = 0;
    float value[2] = {0, 1};

    if (twill_comm_init_env(&comm, NULL) != TWILL_OK) {
        fprintf(stderr, "%s\n", twill_last_error(NULL));
        return 1;
    }
    twill_comm_rank(comm, &rank);
    twill_comm_size(comm, &size);
    value[0] = (float)rank;
    if (twill_all_reduce(value, value, 2, TWILL_FLOAT32, TWILL_SUM, comm, NULL) != TWILL_OK) {
        fprintf(stderr, "%s\n", twill_last_error(comm));
        return 1;
    }
    printf("rank %d of %d: %g %g\n", rank, size, value[0], value[1]);
    return twill_comm_destroy(comm) != TWILL_OK;
}
