/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: nccl.h alone, as a program written for NCCL does: one thread with all ranks, host memory.
 * Never knows: twill. Valid C99 and, by basic_cxx.cc, C++. */
#include <nccl.h>

#include <stdio.h>
#include <string.h>

#define RANKS 3
#define COUNT 5

static int failures;

static void check(ncclResult_t result, const char *call)
{
    if (result == ncclSuccess)
        return;
    failures++;
    printf("%s: %s: %s\n", call, ncclGetErrorString(result), ncclGetLastError(NULL));
}
#define CHECK(call) check(call, #call)

static void expect(double found, double wanted, const char *what, int rank, int i)
{
    if (found == wanted)
        return;
    failures++;
    printf("%s: rank %d, element %d: %g, not %g\n", what, rank, i, found, wanted);
}

struct place {
    ncclComm_t comm;
    float in[RANKS * COUNT], out[RANKS * COUNT];
};

static void fill(struct place *places)
{
    int rank, i;
    for (rank = 0; rank < RANKS; rank++) {
        for (i = 0; i < RANKS * COUNT; i++) {
            places[rank].in[i] = (float)(100 * rank + i);
            places[rank].out[i] = -1;
        }
    }
}

static void sums(struct place *places)
{
    int rank, i;
    fill(places);
    CHECK(ncclGroupStart());
    for (rank = 0; rank < RANKS; rank++)
        CHECK(ncclAllReduce(places[rank].in, places[rank].out, COUNT, ncclFloat, ncclSum,
                            places[rank].comm, NULL));
    CHECK(ncclGroupEnd());
    for (rank = 0; rank < RANKS; rank++)
        for (i = 0; i < COUNT; i++)
            expect(places[rank].out[i], 300 + 3 * i, "all_reduce", rank, i);
    fill(places);
    CHECK(ncclGroupStart());
    for (rank = 0; rank < RANKS; rank++)
        CHECK(ncclReduceScatter(places[rank].in, places[rank].out, COUNT, ncclFloat, ncclMax,
                                places[rank].comm, NULL));
    CHECK(ncclGroupEnd());
    for (rank = 0; rank < RANKS; rank++)
        for (i = 0; i < COUNT; i++)
            expect(places[rank].out[i], 200 + rank * COUNT + i, "reduce_scatter", rank, i);
}

static void moves(struct place *places)
{
    int rank, i;
    fill(places);
    CHECK(ncclGroupStart());
    for (rank = 0; rank < RANKS; rank++)
        CHECK(ncclAllGather(places[rank].in, places[rank].out, COUNT, ncclFloat, places[rank].comm,
                            NULL));
    CHECK(ncclGroupEnd());
    for (rank = 0; rank < RANKS; rank++)
        for (i = 0; i < RANKS * COUNT; i++)
            expect(places[rank].out[i], 100 * (i / COUNT) + i % COUNT, "all_gather", rank, i);
    fill(places);
    CHECK(ncclGroupStart());
    for (rank = 0; rank < RANKS; rank++) {
        const int next = (rank + 1) % RANKS, last = (rank + RANKS - 1) % RANKS;
        CHECK(ncclSend(places[rank].in, COUNT, ncclFloat, next, places[rank].comm, NULL));
        CHECK(ncclRecv(places[rank].out, COUNT, ncclFloat, last, places[rank].comm, NULL));
    }
    CHECK(ncclGroupEnd());
    for (rank = 0; rank < RANKS; rank++)
        for (i = 0; i < COUNT; i++)
            expect(places[rank].out[i], 100 * ((rank + RANKS - 1) % RANKS) + i, "send, recv", rank,
                   i);
}

int main(void)
{
    static struct place places[RANKS];
    ncclComm_t comms[RANKS];
    const int devices[RANKS] = {0, 0, 0};
    int rank, version = 0, count = 0, found = -1;

    CHECK(ncclGetVersion(&version));
    if (version < NCCL_VERSION_CODE) {
        failures++;
        printf("version %d is older than the header's\n", version);
    }
    memset(places, 0, sizeof(places));
    CHECK(ncclCommInitAll(comms, RANKS, devices));
    if (failures > 0)
        return 1;
    for (rank = 0; rank < RANKS; rank++) {
        places[rank].comm = comms[rank];
        CHECK(ncclCommCount(comms[rank], &count));
        CHECK(ncclCommUserRank(comms[rank], &found));
        expect(count, RANKS, "ncclCommCount", rank, 0);
        expect(found, rank, "ncclCommUserRank", rank, 0);
    }
    sums(places);
    moves(places);
    for (rank = 0; rank < RANKS; rank++)
        CHECK(ncclCommDestroy(comms[rank]));
    printf("%d failures\n", failures);
    return failures > 0;
}
