/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what every transport's FIFOs promise. Never knows: how one keeps it. */
#include "pair.h"

using namespace twtest;

namespace
{

class Fifo : public testing::TestWithParam<Way>
{
};
INSTANTIATE_TEST_SUITE_P(Ways, Fifo, testing::Values(kSelf, kShmThreads, kShmProcesses),
                         [](const auto &info) { return std::string(info.param.name); });

constexpr size_t kBytes = 16384;
constexpr size_t kSlot = 4 * 1024 - 64; /* of kBytes in 4 slots: each gives a line to its header */

TEST_P(Fifo, SlotSizesAreWhatTheLayoutLeaves)
{
    EXPECT_EQ(kSlot, tw_fifo_slot_bytes(kBytes, 1, 4));
    EXPECT_EQ(kSlot, tw_fifo_slot_bytes(kBytes, 2, 2));
    EXPECT_EQ(64u, tw_fifo_slot_bytes(1024, 4, 2));
    EXPECT_EQ(0u, tw_fifo_slot_bytes(1024, 4, 3));
    EXPECT_EQ(0u, tw_fifo_slot_bytes(1024, 0, 1));
    EXPECT_EQ(0u, tw_fifo_slot_bytes(1024, 1, 0));
    EXPECT_EQ(0u, tw_fifo_slot_bytes(kBytes, UINT32_MAX, UINT32_MAX));
    EXPECT_EQ(0u, tw_fifo_slot_bytes(kBytes, 1, UINT32_MAX));
}

TEST_P(Fifo, MessagesArriveInOrderWhole)
{
    run_pair(GetParam(), [](Side &side) {
        Pipe pipe(side, kBytes);
        Random random(5);
        ASSERT_EQ(TWILL_OK, pipe.layout(1, 4));
        std::vector<unsigned char> user(kSlot + 8);
        for (uint64_t i = 0; i < 3000; i++) {
            uint32_t bytes = (uint32_t)(i % 2 == 0 ? random.below(80) : random.below(kSlot + 1));
            unsigned char *data = user.data() + i % 8; /* unaligned */
            if (side.index == 0) {
                fill(data, bytes, i);
                pipe.send(0, data, bytes, ~i);
            } else {
                tw_msg msg = pipe.await(0);
                ASSERT_EQ(bytes, msg.bytes);
                ASSERT_EQ(~i, msg.header);
                ASSERT_TRUE(filled(msg.data, bytes, i)) << "message " << i;
                pipe.release(0);
            }
        }
    });
}

TEST_P(Fifo, SizesAroundEachBoundary)
{
    const std::vector<uint32_t> sizes = {0,   1,   7,   8,   9,   39,        40,   41,
                                         47,  48,  63,  64,  65,  103,       104,  105,
                                         127, 128, 129, 255, 256, kSlot - 1, kSlot};
    run_pair(GetParam(), [&](Side &side) {
        Pipe pipe(side, kBytes);
        ASSERT_EQ(TWILL_OK, pipe.layout(1, 4));
        std::vector<unsigned char> data(kSlot);
        for (int round = 0; round < 3; round++) {
            for (uint32_t bytes : sizes) {
                if (side.index == 0) {
                    fill(data.data(), bytes, bytes + (uint64_t)round);
                    pipe.send(0, data.data(), bytes, bytes);
                    continue;
                }
                tw_msg msg = pipe.await(0);
                ASSERT_EQ(bytes, msg.bytes);
                ASSERT_EQ(bytes, msg.header);
                ASSERT_TRUE(filled(msg.data, bytes, bytes + (uint64_t)round)) << bytes;
                pipe.release(0);
            }
        }
    });
}

/* Payload that the executor reads with vector instructions is aligned to a line. */
TEST_P(Fifo, LargePayloadIsAligned)
{
    run_pair(GetParam(), [](Side &side) {
        Pipe pipe(side, kBytes);
        ASSERT_EQ(TWILL_OK, pipe.layout(2, 3));
        unsigned char data[100] = {};
        for (int i = 0; i < 6; i++) {
            if (side.index == 0) {
                pipe.send((uint32_t)i % 2, data, sizeof(data), 0);
                continue;
            }
            tw_msg msg = pipe.await((uint32_t)i % 2);
            EXPECT_EQ(0u, (uintptr_t)msg.data % 64);
            pipe.release((uint32_t)i % 2);
        }
    });
}

TEST_P(Fifo, FullSaysAgainAndLosesNothing)
{
    run_pair(GetParam(), [](Side &side) {
        Pipe pipe(side, kBytes);
        constexpr uint64_t kDepth = 4;
        ASSERT_EQ(TWILL_OK, pipe.layout(1, kDepth));
        uint64_t sent = 0, taken = 0;
        tw_msg msg;
        if (side.index == 1) {
            EXPECT_EQ(TWILL_ERR_AGAIN, pipe.peek(0, &msg)); /* empty */
        }
        side.meet();
        for (uint64_t round = 0; round < 9; round++) {
            uint64_t take = round % (kDepth + 1);
            if (side.index == 0) {
                while (pipe.try_send(0, &sent, sizeof(sent), sent) == TWILL_OK) {
                    sent++;
                }
                EXPECT_EQ(taken + kDepth, sent);
            }
            side.meet();
            for (uint64_t i = 0; i < take; i++, taken++) {
                if (side.index == 1) {
                    ASSERT_EQ(TWILL_OK, pipe.peek(0, &msg));
                    EXPECT_EQ(taken, msg.header);
                    pipe.release(0);
                }
            }
            side.meet();
        }
    });
}

TEST_P(Fifo, PeekAloneTakesNothing)
{
    run_pair(GetParam(), [](Side &side) {
        Pipe pipe(side, kBytes);
        ASSERT_EQ(TWILL_OK, pipe.layout(1, 2));
        uint64_t value = 42;
        if (side.index == 0) {
            pipe.send(0, &value, sizeof(value), 1);
            return;
        }
        for (int i = 0; i < 3; i++) {
            tw_msg msg = pipe.await(0);
            EXPECT_EQ(8u, msg.bytes);
            EXPECT_EQ(0, memcmp(msg.data, &value, sizeof(value)));
        }
    });
}

TEST_P(Fifo, SubsDoNotHoldUpEachOther)
{
    run_pair(GetParam(), [](Side &side) {
        Pipe pipe(side, kBytes);
        ASSERT_EQ(TWILL_OK, pipe.layout(3, 2));
        uint64_t value = 1;
        if (side.index == 0) { /* 0 fills up and is read last */
            while (pipe.try_send(0, &value, sizeof(value), value) == TWILL_OK) {
                value++;
            }
            EXPECT_EQ(3u, value);
            for (uint64_t i = 0; i < 100; i++) {
                pipe.send(1 + (uint32_t)i % 2, &i, sizeof(i), i);
            }
            EXPECT_EQ(TWILL_ERR_INVALID, pipe.try_send(3, &value, sizeof(value), 0));
            return;
        }
        for (uint64_t i = 0; i < 100; i++) {
            EXPECT_EQ(i, pipe.await(1 + (uint32_t)i % 2).header);
            pipe.release(1 + (uint32_t)i % 2);
        }
        for (uint64_t i = 1; i < 3; i++) {
            EXPECT_EQ(i, pipe.await(0).header);
            pipe.release(0);
        }
        tw_msg msg;
        EXPECT_EQ(TWILL_ERR_INVALID, pipe.peek(3, &msg));
    });
}

/* ---- layouts -------------------------------------------------------------------------------- */

TEST_P(Fifo, NewLayoutWaitsForTheDrain)
{
    run_pair(GetParam(), [](Side &side) {
        Pipe pipe(side, kBytes);
        ASSERT_EQ(TWILL_OK, pipe.layout(2, 2));
        uint64_t value = 3;
        if (side.index == 0) {
            pipe.send(1, &value, sizeof(value), 0);
            EXPECT_EQ(TWILL_OK, pipe.layout(2, 2)) << "the same layout changes nothing";
            EXPECT_EQ(TWILL_ERR_AGAIN, pipe.layout(1, 4));
        }
        side.meet();
        if (side.index == 1) {
            (void)pipe.await(1);
            pipe.release(1);
        }
        side.meet();
        EXPECT_EQ(TWILL_OK, pipe.layout(1, 4));
        if (side.index == 0) {
            pipe.send(0, &value, sizeof(value), 5);
        } else {
            EXPECT_EQ(5u, pipe.await(0).header);
        }
    });
}

TEST_P(Fifo, LayoutThatDoesNotFitIsRefused)
{
    run_pair(GetParam(), [](Side &side) {
        Pipe pipe(side, 1024);
        EXPECT_EQ(TWILL_ERR_INVALID, pipe.layout(1, 9));
        EXPECT_EQ(TWILL_ERR_INVALID, pipe.layout(0, 1));
        EXPECT_EQ(TWILL_ERR_INVALID, pipe.layout(1, 0));
        EXPECT_EQ(TWILL_ERR_INVALID, pipe.layout(UINT32_MAX, 2));
        EXPECT_EQ(TWILL_OK, pipe.layout(1, 8));
        uint64_t value = 3;
        if (side.index == 0) {
            pipe.send(0, &value, sizeof(value), 5);
        } else {
            EXPECT_EQ(5u, pipe.await(0).header);
        }
    });
}

/* Layouts change as fast as they can, and payload is made of words that a slot's header had. */
TEST_P(Fifo, LayoutsChangeUnderLoad)
{
    run_pair(GetParam(), [](Side &side) {
        Pipe pipe(side, 4096);
        Random random(77);
        std::vector<uint64_t> words(4096 / 8);
        for (int round = 0; round < 400; round++) {
            uint32_t subs = 1 + (uint32_t)random.below(4), depth = 1 + (uint32_t)random.below(4);
            size_t slot = tw_fifo_slot_bytes(4096, subs, depth);
            ASSERT_NE(0u, slot);
            pipe.layout_wait(subs, depth);
            for (uint64_t i = 0; i < random.below(20); i++) {
                uint32_t sub = (uint32_t)random.below(subs);
                auto bytes = (uint32_t)(random.below(slot / 8 + 1) * 8);
                uint64_t header = random.next();
                if (side.index == 1) {
                    tw_msg msg = pipe.await(sub);
                    ASSERT_EQ(bytes, msg.bytes);
                    ASSERT_EQ(header, msg.header);
                    pipe.release(sub);
                    continue;
                }
                void *data;
                while (side.transport->fifo->reserve(pipe.fifo, sub, &data) != TWILL_OK) {
                    std::this_thread::yield();
                }
                uint64_t last; /* the slot's newest sequence word: ours to read while reserved */
                memcpy(&last, static_cast<char *>(data) - 64, sizeof(last));
                for (size_t w = 0; w < bytes / 8; w++) {
                    words[w] = last + w % 16;
                }
                memcpy(data, words.data(), bytes);
                side.transport->fifo->commit(pipe.fifo, sub, bytes, header);
            }
        }
    });
}

/* ---- many, and memory ----------------------------------------------------------------------- */

TEST_P(Fifo, ManyAtOnceBothWays)
{
    run_pair(GetParam(), [](Side &side) {
        std::vector<std::unique_ptr<Pipe>> pipes;
        for (int i = 0; i < 60; i++) {
            pipes.push_back(std::make_unique<Pipe>(side, 1024, i % 2));
            ASSERT_EQ(TWILL_OK, pipes.back()->layout(1, 2));
        }
        for (uint64_t round = 0; round < 40; round++) {
            for (int i = 0; i < 60; i++) {
                uint64_t value = round * 1000 + (uint64_t)i;
                if (side.index == i % 2) {
                    pipes[(size_t)i]->send(0, &value, sizeof(value), ~value);
                }
            }
            for (int i = 0; i < 60; i++) {
                if (side.index != i % 2) {
                    ASSERT_EQ(~(round * 1000 + (uint64_t)i), pipes[(size_t)i]->await(0).header);
                    pipes[(size_t)i]->release(0);
                }
            }
        }
        side.meet();
        pipes.clear();
        side.meet();
        for (int turn = 0; turn < 2; turn++) { /* looking takes a line itself, maybe of one net */
            if (side.index == turn) {
                EXPECT_EQ(0u, side.staging_used());
            }
            side.meet();
        }
    });
}

TEST_P(Fifo, ShortStagingIsACleanError)
{
    PairOptions options;
    options.staging_bytes = 1 << 20;
    run_pair(
        GetParam(),
        [](Side &side) {
            side.meet();
            if (side.index == 1) {
                const tw_fifo_ops *ops = side.transport->fifo;
                for (int round = 0; round < 2; round++) {
                    std::vector<tw_fifo *> made;
                    tw_blob blob;
                    tw_fifo *fifo = nullptr;
                    enum twill_status status;
                    while ((status = ops->create(side.ep, 65536, &fifo, &blob)) == TWILL_OK) {
                        made.push_back(fifo);
                    }
                    EXPECT_EQ(TWILL_ERR_NOMEM, status);
                    EXPECT_EQ((1u << 20) / tw_fifo_memory_bytes(65536), made.size());
                    for (tw_fifo *each : made) {
                        ops->destroy(each);
                    }
                    EXPECT_EQ(0u, side.staging_used());
                }
            }
            side.meet();
        },
        options);
}

TEST_P(Fifo, NonsenseSizesAreRefused)
{
    run_pair(GetParam(), [](Side &side) {
        tw_fifo *fifo = nullptr;
        tw_blob blob;
        for (size_t bytes : {(size_t)0, (size_t)64, (size_t)1000, SIZE_MAX, SIZE_MAX - 63}) {
            EXPECT_EQ(TWILL_ERR_INVALID,
                      side.transport->fifo->create(side.ep, bytes, &fifo, &blob));
        }
        EXPECT_EQ(nullptr, fifo);
    });
}

/* The receiver goes first: its memory must not serve anybody else while the sender can write. */
TEST_P(Fifo, MemoryStaysWhileTheSenderMayWrite)
{
    run_pair(GetParam(), [](Side &side) {
        auto pipe = std::make_unique<Pipe>(side, kBytes);
        ASSERT_EQ(TWILL_OK, pipe->layout(1, 4));
        side.meet();
        if (side.index == 1) {
            pipe.reset();
            EXPECT_EQ(tw_fifo_memory_bytes(kBytes), side.staging_used());
        }
        side.meet();
        if (side.index == 0) {
            std::vector<unsigned char> data(kSlot, 0xff);
            EXPECT_EQ(TWILL_OK, pipe->try_send(0, data.data(), kSlot, 0));
            pipe.reset();
        }
        side.meet();
        if (side.index == 1) {
            EXPECT_EQ(0u, side.staging_used());
        }
    });
}

TEST_P(Fifo, OneSenderAttachesWhileTheReceiverIsThere)
{
    run_pair(GetParam(), [](Side &side) {
        const tw_fifo_ops *ops = side.transport->fifo;
        tw_fifo *fifo = nullptr, *second = nullptr;
        tw_blob blob = {};
        if (side.index == 1) {
            EXPECT_EQ(TWILL_OK, ops->create(side.ep, kBytes, &fifo, &blob));
        }
        blob = side.swap(blob);
        if (side.index == 0) {
            EXPECT_EQ(TWILL_OK, ops->attach(side.ep, &blob, &fifo));
            EXPECT_EQ(TWILL_ERR_PEER, ops->attach(side.ep, &blob, &second));
        }
        side.meet();
        ops->destroy(fifo);
        blob = {};
        if (side.index == 1) { /* gone before anybody came */
            EXPECT_EQ(TWILL_OK, ops->create(side.ep, kBytes, &fifo, &blob));
            ops->destroy(fifo);
        }
        blob = side.swap(blob);
        if (side.index == 0) {
            EXPECT_EQ(TWILL_ERR_PEER, ops->attach(side.ep, &blob, &second));
        }
    });
}

/* ---- hostile peers -------------------------------------------------------------------------- */

TEST_P(Fifo, AbsurdLengthsAreFound)
{
    run_pair(GetParam(), [](Side &side) {
        for (uint32_t bytes : {(uint32_t)kSlot + 1, UINT32_MAX, 0x80000000u}) {
            Pipe pipe(side, kBytes);
            ASSERT_EQ(TWILL_OK, pipe.layout(1, 4));
            void *slot;
            if (side.index == 0) {
                ASSERT_EQ(TWILL_OK, side.transport->fifo->reserve(pipe.fifo, 0, &slot));
                side.transport->fifo->commit(pipe.fifo, 0, bytes, 0);
            }
            side.meet();
            tw_msg msg;
            if (side.index == 1) {
                EXPECT_EQ(TWILL_ERR_PEER, pipe.peek(0, &msg));
            }
            side.meet();
        }
    });
}

TEST_P(Fifo, ScribbledMemoryNeverReachesBeyondASlot)
{
    if (strcmp(GetParam().transport, "self") == 0 || !GetParam().processes) {
        /* a process that scribbles over its own memory is no peer: nothing to defend against */
        SUCCEED();
        return;
    }
    run_pair(GetParam(), [](Side &side) {
        Pipe pipe(side, kBytes);
        ASSERT_EQ(TWILL_OK, pipe.layout(1, 4));
        void *slot = nullptr;
        if (side.index == 0) {
            ASSERT_EQ(TWILL_OK, side.transport->fifo->reserve(pipe.fifo, 0, &slot));
        }
        side.meet();
        if (side.index == 0) { /* control lines, headers, payload: all of it */
            auto *start =
                static_cast<unsigned char *>(slot) - 64 - (tw_fifo_memory_bytes(kBytes) - kBytes);
            for (uint64_t i = 0; i < 50; i++) {
                fill(start, tw_fifo_memory_bytes(kBytes), i);
            }
        } else {
            for (int i = 0; i < 200000; i++) {
                tw_msg msg;
                if (pipe.peek(0, &msg) == TWILL_OK) {
                    ASSERT_LE(msg.bytes, kSlot);
                    pipe.release(0);
                }
            }
        }
        side.meet();
    });
}

TEST_P(Fifo, DamagedBlobsAreRefusedOrHarmless)
{
    run_pair(GetParam(), [](Side &side) {
        const tw_fifo_ops *ops = side.transport->fifo;
        tw_fifo *fifo = nullptr;
        tw_blob blob = {};
        if (side.index == 1) {
            ASSERT_EQ(TWILL_OK, ops->create(side.ep, 1024, &fifo, &blob));
        }
        blob = side.swap(blob);
        if (side.index == 0) {
            int refused = 0;
            for (uint32_t bit = 0; bit < blob.bytes * 8; bit++) {
                tw_blob damaged = blob;
                tw_fifo *end = nullptr;
                damaged.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
                if (ops->attach(side.ep, &damaged, &end) == TWILL_OK) {
                    ops->destroy(end);
                } else {
                    refused++;
                }
            }
            EXPECT_GT(refused, 200);
            for (uint32_t bytes = 0; bytes < blob.bytes; bytes++) {
                tw_blob cut = blob;
                cut.bytes = bytes;
                EXPECT_EQ(TWILL_ERR_INVALID, ops->attach(side.ep, &cut, &fifo));
            }
            fifo = nullptr;
        }
        side.meet();
        ops->destroy(fifo);
    });
}

} // namespace
