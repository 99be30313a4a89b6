/* SPDX-License-Identifier: Apache-2.0 */
/* A weighted sum: each rank's part is multiplied by its own scalar on the way. */
#include <stdio.h>
#include <twill.h>

int main(void)
{
    twill_comm_t comm;
    twill_redop_t weigh;
    int rank;
    float weight, in = 2, out = 0;

    if (twill_comm_init_env(&comm, NULL) != TWILL_OK) {
        fprintf(stderr, "init: %s\n", twill_last_error(NULL));
        return 1;
    }
    twill_comm_rank(comm, &rank);
    weight = 1.0f / (float)(1 << rank);
    if (twill_op_create_premul_sum(&weigh, &weight, TWILL_FLOAT32, TWILL_SCALAR_VALUE, comm) !=
            TWILL_OK ||
        twill_all_reduce(&in, &out, 1, TWILL_FLOAT32, weigh, comm, NULL) != TWILL_OK) {
        fprintf(stderr, "all_reduce: %s\n", twill_last_error(comm));
        return 1;
    }
    twill_op_destroy(weigh, comm);
    if (rank == 0)
        printf("the weighted sum is %g\n", out);
    return twill_comm_destroy(comm) != TWILL_OK;
}
