/* SPDX-License-Identifier: Apache-2.0 */
/* Overlap: calls on a stream return at once; errors of theirs come out of synchronize. */
#include <stdio.h>
#include <stdlib.h>
#include <twill.h>

enum { COUNT = 100000, BUCKETS = 4 };

int main(void)
{
    twill_comm_t comm;
    twill_stream_t stream;
    int rank;
    float *gradient = calloc(BUCKETS * COUNT, sizeof(*gradient));

    if (gradient == NULL || twill_comm_init_env(&comm, NULL) != TWILL_OK ||
        twill_stream_create(&stream) != TWILL_OK) {
        fprintf(stderr, "start: %s\n", twill_last_error(NULL));
        return 1;
    }
    twill_comm_rank(comm, &rank);
    for (int b = 0; b < BUCKETS; b++) {
        float *bucket = gradient + (size_t)b * COUNT;
        for (int i = 0; i < COUNT; i++) /* the work that is overlapped with bucket b - 1 */
            bucket[i] = (float)(rank + b);
        twill_all_reduce(bucket, bucket, COUNT, TWILL_FLOAT32, TWILL_AVG, comm, stream);
    }
    if (twill_stream_synchronize(stream) != TWILL_OK) {
        fprintf(stderr, "all_reduce: %s\n", twill_last_error(NULL));
        return 1;
    }
    if (rank == 0)
        printf("bucket 3 has %g\n", gradient[(size_t)3 * COUNT]);
    twill_stream_destroy(stream);
    free(gradient);
    return twill_comm_destroy(comm) != TWILL_OK;
}
