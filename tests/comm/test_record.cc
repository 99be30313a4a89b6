/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "calls.h"

/* ---- headers ---- */

TEST_F(Record, HeadersAreEqualOnAllRanksAndDifferOtherwise)
{
    make(3);
    struct tw_call_info info = coll(TW_COLL_ALL_REDUCE, 100);
    uint64_t first = tw_record_begin(comm(0), &info);
    EXPECT_EQ(first, tw_record_begin(comm(1), &info));
    EXPECT_EQ(first, tw_record_begin(comm(2), &info));
    EXPECT_EQ(1u, tw_record_number(comm(0), &info));
    std::vector<uint64_t> headers = {first};
    headers.push_back(tw_record_begin(comm(0), &info)); /* the number */
    for (int change = 0; change < 6; change++) {
        struct tw_call_info other = coll(TW_COLL_REDUCE, 100);
        if (change == 1)
            other.count = 101;
        if (change == 2)
            other.type = TWILL_FLOAT64;
        if (change == 3)
            other.op = TWILL_MAX;
        if (change == 4)
            other.root = 1;
        if (change == 5)
            other.algo_hash = 78;
        struct tw_record_call call;
        tw_record_pack(&other, 3, &call);
        headers.push_back(tw_record_hash(comm(0)->id_hash, &call));
        headers.push_back(tw_record_hash(comm(0)->id_hash + 1, &call));
    }
    for (size_t i = 0; i < headers.size(); i++) {
        for (size_t k = 0; k < i; k++)
            EXPECT_NE(headers[i], headers[k]) << i << " " << k;
    }
}

TEST_F(Record, WhatHasNoMeaningDoesNotCount)
{
    make(1);
    struct tw_call_info a = coll(TW_COLL_ALL_GATHER, 5);
    struct tw_call_info b = a;
    b.op = TWILL_MIN;
    b.root = 9;
    struct tw_record_call ca;
    struct tw_record_call cb;
    tw_record_pack(&a, 1, &ca);
    tw_record_pack(&b, 1, &cb);
    EXPECT_EQ(tw_record_hash(1, &ca), tw_record_hash(1, &cb));
}

/* ---- counts of pairs ---- */

static struct tw_call_info all_to_all_v(const std::vector<size_t> &in,
                                        const std::vector<size_t> &out)
{
    struct tw_call_info info = coll(TW_COLL_ALL_TO_ALL_V, 0);
    info.counts.in = in.data();
    info.counts.out = out.data();
    return info;
}

TEST_F(Record, EachPairHasItsCountInItsHeader)
{
    make(3);
    /* rank 0 sends 1, 2, 3; rank 1 sends 4, 5, 6, and believes that it gets 7 from rank 2 */
    const std::vector<size_t> in0 = {1, 2, 3}, out0 = {1, 4, 0}, in1 = {4, 5, 6}, out1 = {2, 5, 7};
    const std::vector<size_t> in2 = {0, 8, 9}, out2 = {3, 6, 9};
    struct tw_call_info calls[3] = {all_to_all_v(in0, out0), all_to_all_v(in1, out1),
                                    all_to_all_v(in2, out2)};
    for (int rank = 0; rank < 3; rank++) {
        EXPECT_NE(0u, tw_record_begin(comm(rank), &calls[rank]));
    }
    for (int from = 0; from < 3; from++) {
        for (int to = 0; to < 3; to++) {
            const uint64_t sent = tw_record_headers(comm(from), &calls[from])[2 * to];
            const uint64_t wanted = tw_record_headers(comm(to), &calls[to])[2 * from + 1];
            EXPECT_EQ(sent == wanted, from != 2 || to != 1) << from << " " << to;
        }
    }
    EXPECT_EQ(TWILL_OK, tw_comm_status(comm(0)));
    EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), calls[0], 1)) << "its own pairs agree";
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(1), calls[1], 1));
    expect_all(TWILL_ERR_MISMATCH,
               "rank 2 called all_to_all_v #1 float32 with 8 elements to rank 1 and 6 from it, "
               "rank 1 called all_to_all_v #1 float32 with 6 elements to rank 2 and 7 from it");
}

TEST_F(Record, AMessageOfAnotherCountNamesBoth)
{
    make(2);
    const std::vector<size_t> two = {2, 2}, three = {2, 3};
    struct tw_call_info calls[2] = {all_to_all_v(two, three), all_to_all_v(two, two)};
    for (int rank = 0; rank < 2; rank++) {
        tw_record_begin(comm(rank), &calls[rank]);
    }
    const uint64_t found = tw_record_headers(comm(1), &calls[1])[0];
    EXPECT_NE(found, tw_record_headers(comm(0), &calls[0])[3]);
    EXPECT_EQ(TWILL_ERR_MISMATCH, tw_record_mismatch(comm(0), &calls[0], 1, 1, found));
    expect_all(TWILL_ERR_MISMATCH,
               "rank 1 called all_to_all_v #1 float32 with 2 elements to rank 0 and 2 from it, "
               "rank 0 called all_to_all_v #1 float32 with 2 elements to rank 1 and 3 from it");
}

TEST_F(Record, AllCountsAreInTheHeaderWhereAllRanksKnowThem)
{
    make(3);
    const std::vector<size_t> a = {1, 2, 3}, b = {1, 2, 4};
    struct tw_call_info calls[3];
    for (int rank = 0; rank < 3; rank++) {
        const std::vector<size_t> &counts = rank == 1 ? b : a;
        calls[rank] = coll(TW_COLL_ALL_GATHER_V, counts[(size_t)rank]);
        calls[rank].counts.out = counts.data();
        calls[rank].spread = tw_record_spread(counts.data(), 3);
        EXPECT_EQ(nullptr, tw_record_headers(comm(rank), &calls[rank]));
    }
    const uint64_t header = tw_record_begin(comm(0), &calls[0]);
    EXPECT_NE(header, tw_record_begin(comm(1), &calls[1]));
    EXPECT_EQ(header, tw_record_begin(comm(2), &calls[2]));
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(0), calls[0], 1));
    expect_all(TWILL_ERR_MISMATCH,
               "rank 1 called all_gather_v #1 float32 with 2 elements to rank 0 and 1 from it, "
               "rank 0 called all_gather_v #1 float32 with 1 elements to rank 1 and 2 from it, "
               "but rank 1 has count 4 for rank 2, rank 0 has 3");
}

TEST_F(Record, PairsHaveOneHeaderAndNumbersOfTheirOwn)
{
    make(3);
    struct tw_call_info send01 = pair(true, 1, 10);
    struct tw_call_info recv10 = pair(false, 0, 10);
    struct tw_call_info send02 = pair(true, 2, 10);
    struct tw_call_info send10 = pair(true, 0, 10);
    uint64_t header = tw_record_begin(comm(0), &send01);
    EXPECT_EQ(header, tw_record_begin(comm(1), &recv10));
    EXPECT_NE(header, tw_record_begin(comm(0), &send02));
    EXPECT_NE(header, tw_record_begin(comm(1), &send10)) << "the other direction";
    EXPECT_NE(header, tw_record_begin(comm(0), &send01)) << "the next one";
    EXPECT_EQ(2u, tw_record_number(comm(0), &send01));
    EXPECT_EQ(1u, tw_record_number(comm(0), &send02));
    struct tw_call_info all = coll(TW_COLL_BARRIER, 0);
    EXPECT_EQ(0u, tw_record_number(comm(0), &all));
}

TEST_F(Record, HashesOfManyCallsDoNotMeet)
{
    std::vector<uint64_t> all;
    for (uint64_t number = 1; number < 300; number++) {
        for (uint64_t count = 0; count < 300; count++) {
            struct tw_record_call call = {number, 0x0700, count, 5, 0, 0, 0};
            all.push_back(tw_record_hash(1234567, &call));
        }
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all.end(), std::adjacent_find(all.begin(), all.end()));
}

/* ---- reading while it is written ---- */

TEST(RecordBoard, ReadersSeeWholeRecordsOnly)
{
    struct tw_board_lane lane = {};
    std::atomic<bool> stop{false};
    uint64_t seen = 0;
    std::thread reader([&] {
        while (!stop) {
            struct tw_record_call call;
            uint64_t begun = tw_record_word(&lane.begun);
            if (!tw_record_read(&lane, begun, &call))
                continue;
            seen++;
            ASSERT_EQ(begun, call.number);
            ASSERT_EQ(call.number * 3, call.what);
            ASSERT_EQ(call.number * 5, call.count);
            ASSERT_EQ(call.number * 7, call.algo_hash);
        }
    });
    for (uint64_t number = 1; number <= 200000; number++) {
        struct tw_record_call call = {number, number * 3, number * 5, number * 7, number * 9, 0, 0};
        tw_record_publish(&lane, &call);
    }
    stop = true;
    reader.join();
    struct tw_record_call last;
    EXPECT_TRUE(tw_record_read(&lane, 200000, &last));
    EXPECT_FALSE(tw_record_read(&lane, 199996, &last)) << "overwritten";
    EXPECT_FALSE(tw_record_read(&lane, 0, &last));
}

TEST(RecordBoard, NonsenseOnABoardIsOnlyPrinted)
{
    char text[TW_RECORD_TEXT_BYTES];
    struct tw_record_call call = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                  UINT64_MAX, UINT64_MAX, UINT64_MAX};
    tw_record_text(&call, text);
    EXPECT_TRUE(contains(text, "unknown call")) << text;
    call.what = TW_COLL_REDUCE | 0xee00 | 0xee0000;
    tw_record_text(&call, text);
    EXPECT_TRUE(contains(text, "unknown type")) << text;
    EXPECT_TRUE(contains(text, "unknown operation")) << text;
}

TEST(RecordBoard, SizeGrowsWithTheRanks)
{
    EXPECT_EQ(sizeof(struct tw_board) + 2 * sizeof(struct tw_board_lane) + 2 * TW_RECORD_DEPTH * 8,
              tw_record_board_bytes(1));
    EXPECT_LT(tw_record_board_bytes(64), 128u * 1024);
}
