/* SPDX-License-Identifier: Apache-2.0 */
/* Send to the right, receive from the left; in a group, so that nobody has to go first. */
#include <stdio.h>
#include <twill.h>

int main(void)
{
    twill_comm_t comm;
    int rank, size;
    double mine, left = -1;

    if (twill_comm_init_env(&comm, NULL) != TWILL_OK) {
        fprintf(stderr, "init: %s\n", twill_last_error(NULL));
        return 1;
    }
    twill_comm_rank(comm, &rank);
    twill_comm_size(comm, &size);
    mine = rank;
    twill_group_start();
    twill_send(&mine, 1, TWILL_FLOAT64, (rank + 1) % size, comm, NULL);
    twill_recv(&left, 1, TWILL_FLOAT64, (rank + size - 1) % size, comm, NULL);
    if (twill_group_end() != TWILL_OK) {
        fprintf(stderr, "exchange: %s\n", twill_last_error(comm));
        return 1;
    }
    if (left != (rank + size - 1) % size)
        return 1;
    if (rank == 0)
        printf("rank 0 heard from rank %g\n", left);
    return twill_comm_destroy(comm) != TWILL_OK;
}
