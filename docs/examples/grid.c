/* SPDX-License-Identifier: Apache-2.0 */
/* A grid of ranks, two wide: sums along the rows, then of these along the columns. */
#include <stdio.h>
#include <twill.h>

int main(void)
{
    twill_comm_t comm, row = NULL, column = NULL;
    twill_stream_t first = NULL, second = NULL;
    twill_event_t summed = NULL;
    int rank;
    float x;

    if (twill_comm_init_env(&comm, NULL) != TWILL_OK) {
        fprintf(stderr, "init: %s\n", twill_last_error(NULL));
        return 1;
    }
    twill_comm_rank(comm, &rank);
    if (twill_comm_split(comm, rank / 2, rank, &row, NULL) != TWILL_OK ||
        twill_comm_split(comm, rank % 2, rank, &column, NULL) != TWILL_OK) {
        fprintf(stderr, "split: %s\n", twill_last_error(comm));
        return 1;
    }
    if (twill_stream_create(&first) != TWILL_OK || twill_stream_create(&second) != TWILL_OK ||
        twill_event_create(&summed) != TWILL_OK) {
        fprintf(stderr, "start: %s\n", twill_last_error(NULL));
        return 1;
    }
    x = (float)(1 << rank);
    twill_all_reduce(&x, &x, 1, TWILL_FLOAT32, TWILL_SUM, row, first);
    twill_event_record(summed, first);
    twill_event_wait(second, summed); /* what second gets from now on begins after the sum */
    twill_all_reduce(&x, &x, 1, TWILL_FLOAT32, TWILL_SUM, column, second);
    twill_event_destroy(summed); /* in any order; who waits for it still does */
    if (twill_stream_synchronize(first) != TWILL_OK ||
        twill_stream_synchronize(second) != TWILL_OK) {
        fprintf(stderr, "all_reduce: %s\n", twill_last_error(NULL));
        return 1;
    }
    if (rank == 0)
        printf("the sum over the grid is %g\n", x);
    twill_stream_destroy(first);
    twill_stream_destroy(second);
    twill_comm_destroy(row);
    twill_comm_destroy(column);
    return twill_comm_destroy(comm) != TWILL_OK;
}
