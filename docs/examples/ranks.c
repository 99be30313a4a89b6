/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as processes: each sums a vector over all of them. */
#include <stdio.h>
#include <twill.h>

static int failed(const char *what, twill_comm_t comm)
{
    fprintf(stderr, "%s: %s\n", what, twill_last_error(comm));
    return 1;
}

int main(void)
{
    twill_comm_t comm;
    int rank, size;
    float in[1000], out[1000];

    if (twill_comm_init_env(&comm, NULL) != TWILL_OK)
        return failed("init", NULL);
    twill_comm_rank(comm, &rank);
    twill_comm_size(comm, &size);
    for (int i = 0; i < 1000; i++)
        in[i] = (float)(rank + i);
    if (twill_all_reduce(in, out, 1000, TWILL_FLOAT32, TWILL_SUM, comm, NULL) != TWILL_OK)
        return failed("all_reduce", comm);
    if (rank == 0)
        printf("%d ranks: %g to %g\n", size, out[0], out[999]);
    if (twill_comm_destroy(comm) != TWILL_OK)
        return failed("destroy", NULL);
    return 0;
}
