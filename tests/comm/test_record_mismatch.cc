/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "calls.h"

/* ---- mismatches ---- */

TEST_F(Record, DifferentCollectivesAreNamedInFull)
{
    make(3);
    struct tw_call_info reduce = coll(TW_COLL_ALL_REDUCE, 100);
    struct tw_call_info bcast = coll(TW_COLL_BROADCAST, 100);
    for (int i = 0; i < 6; i++) {
        for (int rank = 0; rank < 3; rank++) {
            tw_record_begin(comm(rank), &reduce);
            tw_record_end(comm(rank), &reduce);
        }
    }
    tw_record_begin(comm(0), &reduce);
    tw_record_begin(comm(1), &reduce);
    EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), reduce, 7)) << "rank 2 is only late";
    tw_record_begin(comm(2), &bcast);
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(0), reduce, 7));
    expect_all(TWILL_ERR_MISMATCH, "rank 2 called broadcast #7 count 100 float32 root 0, rank 0 "
                                   "called all_reduce #7 count 100 float32 sum");
}

TEST_F(Record, EveryFieldIsCompared)
{
    const char *expected[] = {
        "rank 1 called reduce #1 count 101 float32 sum root 0, rank 0 called reduce #1 count 100 "
        "float32 sum root 0",
        "rank 1 called reduce #1 count 100 float64 sum root 0, rank 0 called reduce #1 count 100 "
        "float32 sum root 0",
        "rank 1 called reduce #1 count 100 float32 max root 0, rank 0 called reduce #1 count 100 "
        "float32 sum root 0",
        "rank 1 called reduce #1 count 100 float32 sum root 1, rank 0 called reduce #1 count 100 "
        "float32 sum root 0",
        "rank 1 called reduce #1 count 100 float32 sum root 0, rank 0 called reduce #1 count 100 "
        "float32 sum root 0, but with another plan",
    };
    for (int change = 0; change < 5; change++) {
        make(2);
        struct tw_call_info mine = coll(TW_COLL_REDUCE, 100);
        struct tw_call_info theirs = mine;
        if (change == 0)
            theirs.count = 101;
        if (change == 1)
            theirs.type = TWILL_FLOAT64;
        if (change == 2)
            theirs.op = TWILL_MAX;
        if (change == 3)
            theirs.root = 1;
        if (change == 4)
            theirs.algo_hash = 78;
        tw_record_begin(comm(0), &mine);
        tw_record_begin(comm(1), &theirs);
        EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(0), mine, 1));
        expect_all(TWILL_ERR_MISMATCH, expected[change]);
        comms_.clear();
    }
}

/* All that each of them sent is in the other's slots, so both have ended, and the next call of both
 * waits for a slot. */
TEST_F(Record, CallsThatWentThroughAreComparedToo)
{
    make(2);
    struct tw_call_info next = coll(TW_COLL_ALL_REDUCE, 100);
    struct tw_call_info roots[2] = {coll(TW_COLL_GATHER, 100), coll(TW_COLL_GATHER, 100)};
    for (int rank = 0; rank < 2; rank++) {
        roots[rank].root = 1 - rank;
        tw_record_begin(comm(rank), &next);
        tw_record_end(comm(rank), &next);
        tw_record_begin(comm(rank), &roots[rank]);
        tw_record_end(comm(rank), &roots[rank]);
    }
    tw_record_begin(comm(0), &next);
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(0), next, 3)) << "may rank 1 be late or not";
    expect_all(TWILL_ERR_MISMATCH, "rank 1 called gather #2 count 100 float32 root 0, rank 0 "
                                   "called gather #2 count 100 float32 root 1");
}

TEST_F(Record, SendAndReceiveThatDiffer)
{
    make(2);
    struct tw_call_info send = pair(true, 1, 10);
    struct tw_call_info recv = pair(false, 0, 20);
    tw_record_begin(comm(0), &send);
    EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), send, 1));
    tw_record_begin(comm(1), &recv);
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(1), recv, 1));
    expect_all(TWILL_ERR_MISMATCH, "rank 0 called send #1 to rank 1 count 10 int32, rank 1 called "
                                   "recv #1 from rank 0 count 20 int32");
}

TEST_F(Record, AForeignMessageIsTracedToItsCall)
{
    make(2);
    struct tw_call_info first = coll(TW_COLL_ALL_REDUCE, 8);
    struct tw_call_info second = coll(TW_COLL_ALL_GATHER, 8);
    tw_record_begin(comm(1), &first);
    tw_record_end(comm(1), &first);
    uint64_t header = tw_record_begin(comm(1), &second);
    tw_record_begin(comm(0), &first);
    EXPECT_EQ(TWILL_ERR_MISMATCH, tw_record_mismatch(comm(0), &first, 1, 1, header));
    expect_all(TWILL_ERR_MISMATCH, "rank 1 called all_gather #2 count 8 float32, rank 0 called "
                                   "all_reduce #1 count 8 float32 sum");
}

TEST_F(Record, AForeignSendIsTracedToo)
{
    make(2);
    struct tw_call_info send = pair(true, 1, 10);
    struct tw_call_info recv = pair(false, 0, 12);
    uint64_t header = tw_record_begin(comm(0), &send);
    tw_record_begin(comm(1), &recv);
    EXPECT_EQ(TWILL_ERR_MISMATCH, tw_record_mismatch(comm(1), &recv, 1, 0, header));
    expect_all(TWILL_ERR_MISMATCH, "rank 0 called send #1 to rank 1 count 10 int32, rank 1 called "
                                   "recv #1 from rank 0 count 12 int32");
}

TEST_F(Record, AnUnknownMessageIsShownByItsHeader)
{
    make(2);
    struct tw_call_info info = coll(TW_COLL_BARRIER, 0);
    tw_record_begin(comm(0), &info);
    EXPECT_EQ(TWILL_ERR_MISMATCH, tw_record_mismatch(comm(0), &info, 1, 1, 0xabcdef));
    EXPECT_TRUE(contains(failure(0), "header 0xabcdef")) << failure(0);
    EXPECT_TRUE(contains(failure(0), "barrier #1")) << failure(0);
}

TEST_F(Record, ARankThatHasGoneAheadIsNoMismatch)
{
    make(2);
    struct tw_call_info info = coll(TW_COLL_BROADCAST, 4);
    struct tw_call_info other = coll(TW_COLL_ALL_GATHER, 4);
    tw_record_begin(comm(0), &info);
    for (int i = 0; i < 10; i++) { /* its record of #1 is overwritten meanwhile */
        tw_record_begin(comm(1), i == 0 ? &info : &other);
        EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), info, 1));
        tw_record_end(comm(1), i == 0 ? &info : &other);
        EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), info, 1));
    }
}
