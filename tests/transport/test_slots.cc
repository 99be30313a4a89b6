/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: slots over plain memory, both ends at hand. Never knows: nets and peers. */
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

extern "C" {
#include "base/mem.h"
#include "transport/slots.h"
}

namespace
{

/* Both ends of one FIFO over memory of this process. */
struct Both {
    size_t bytes;
    void *memory;
    tw_slots out, in;

    explicit Both(size_t bytes_, uint64_t salt = 0x1234567890abcdefull) : bytes(bytes_)
    {
        memory = tw_alloc(tw_fifo_memory_bytes(bytes));
        tw_slots_format(memory, bytes, salt);
        EXPECT_EQ(TWILL_OK, tw_slots_init(&out, memory, bytes, salt, true));
        EXPECT_EQ(TWILL_OK, tw_slots_init(&in, memory, bytes, salt, false));
    }
    ~Both()
    {
        tw_slots_fini(&out);
        tw_slots_fini(&in);
        free(memory);
    }
    Both(const Both &) = delete;
    void layout(uint32_t subs, uint32_t depth)
    {
        ASSERT_EQ(TWILL_OK, tw_slots_layout(&in, subs, depth));
        ASSERT_EQ(TWILL_OK, tw_slots_layout(&out, subs, depth));
    }
    enum twill_status send(uint32_t sub, uint64_t value)
    {
        void *data = nullptr;
        enum twill_status status = tw_slots_reserve(&out, sub, &data);
        if (status == TWILL_OK) {
            memcpy(data, &value, sizeof(value));
            tw_slots_commit(&out, sub, sizeof(value), ~value);
        }
        return status;
    }
    enum twill_status take(uint32_t sub, uint64_t *value)
    {
        tw_msg msg = {};
        enum twill_status status = tw_slots_peek(&in, sub, &msg);
        if (status == TWILL_OK) {
            EXPECT_EQ(sizeof(*value), msg.bytes);
            memcpy(value, msg.data, sizeof(*value));
            EXPECT_EQ(~*value, msg.header);
            tw_slots_release(&in, sub);
        }
        return status;
    }
};

/* Slots and their headers share the bytes, a line each for the header, down to a line of payload.
 */
TEST(Slots, LayoutsFitTheMemory)
{
    for (size_t bytes : {(size_t)128, (size_t)1024, (size_t)4096, (size_t)65536, (size_t)262144}) {
        for (uint32_t subs = 1; subs <= 70; subs++) {
            for (uint32_t depth = 1; depth <= 20; depth++) {
                size_t slot = tw_fifo_slot_bytes(bytes, subs, depth);
                size_t each = bytes / subs / depth / 64 * 64; /* of a slot, header and all */
                if (slot == 0) {
                    EXPECT_TRUE(each < 128 || subs > tw_slots_subs_max(bytes));
                    continue;
                }
                EXPECT_EQ(0u, slot % 64);
                EXPECT_LE((slot + 64) * subs * depth, bytes);
                EXPECT_GT((slot + 128) * subs * depth, bytes) << "a line more would have fitted";
            }
        }
    }
    EXPECT_EQ(4u, tw_slots_subs_max(1024));
    EXPECT_EQ(64u, tw_slots_subs_max(262144));
}

/* Every slot of every layout lies inside the memory, apart from the others and from the counters.
 */
TEST(Slots, SlotsDoNotOverlap)
{
    Both both(4096);
    auto *start = static_cast<unsigned char *>(both.memory);
    auto *slots_start = start + tw_fifo_memory_bytes(4096) - 4096;
    for (uint32_t subs = 1; subs <= tw_slots_subs_max(4096); subs++) {
        for (uint32_t depth = 1; tw_fifo_slot_bytes(4096, subs, depth) != 0; depth++) {
            both.layout(subs, depth);
            std::vector<bool> taken(4096 / 64);
            for (uint32_t sub = 0; sub < subs; sub++) {
                for (uint32_t i = 0; i < depth; i++) {
                    void *data = nullptr;
                    ASSERT_EQ(TWILL_OK, tw_slots_reserve(&both.out, sub, &data));
                    auto *from = static_cast<unsigned char *>(data) - 64;
                    auto *to =
                        static_cast<unsigned char *>(data) + tw_fifo_slot_bytes(4096, subs, depth);
                    ASSERT_GE(from, slots_start);
                    ASSERT_LE(to, slots_start + 4096);
                    for (; from < to; from += 64) {
                        size_t line = (size_t)(from - slots_start) / 64;
                        ASSERT_FALSE(taken[line]);
                        taken[line] = true;
                    }
                    tw_slots_commit(&both.out, sub, 0, 0);
                }
                void *none = nullptr;
                EXPECT_EQ(TWILL_ERR_AGAIN, tw_slots_reserve(&both.out, sub, &none));
                for (uint32_t i = 0; i < depth; i++) {
                    tw_msg msg = {};
                    ASSERT_EQ(TWILL_OK, tw_slots_peek(&both.in, sub, &msg));
                    tw_slots_release(&both.in, sub);
                }
            }
        }
    }
}

/* Sequence words and counts pass 2^64 without a hitch. */
TEST(Slots, SequencesWrap)
{
    Both both(1024);
    both.layout(2, 3);
    for (tw_slots *end : {&both.out, &both.in}) {
        end->base = UINT64_MAX - 10;
        for (uint32_t sub = 0; sub < 2; sub++) {
            end->sub[sub].count = end->sub[sub].tail_seen = UINT64_MAX - 4;
            *end->sub[sub].tail = UINT64_MAX - 4;
        }
    }
    for (uint64_t i = 0, taken = 0; taken < 40;) {
        while (both.send(0, i) == TWILL_OK) {
            i++;
        }
        EXPECT_EQ(taken + 3, i);
        uint64_t value;
        ASSERT_EQ(TWILL_OK, both.take(0, &value));
        EXPECT_EQ(taken++, value);
    }
}

/* A tail that a hostile receiver makes up: the sender sees "full", or reuses a slot of the
 * receiver's own; it never leaves the FIFO. */
TEST(Slots, MadeUpTails)
{
    Both both(1024);
    both.layout(1, 2);
    for (uint64_t tail : {UINT64_MAX, (uint64_t)1 << 63, (uint64_t)5}) {
        while (both.send(0, 1) == TWILL_OK) {
        }
        __atomic_store_n(both.out.sub[0].tail, tail, __ATOMIC_RELEASE);
        EXPECT_EQ(TWILL_ERR_AGAIN, both.send(0, 1));
    }
}

/* The place that a new layout polls holds words of the old one, the sender's next ones among them:
 * none is taken for a message. */
TEST(Slots, OldWordsAreNoMessages)
{
    Both both(4096);
    for (uint32_t round = 0; round < 50; round++) {
        uint32_t depth = 2 + round % 7;
        both.layout(1, depth);
        for (uint32_t i = 0; i < 3 * depth; i++) {
            void *data = nullptr;
            ASSERT_EQ(TWILL_OK, tw_slots_reserve(&both.out, 0, &data));
            auto *words = static_cast<uint64_t *>(data);
            for (size_t w = 0; w < both.out.slot_bytes / 8; w++) {
                size_t line = w / 8; /* a new header lies at the start of some line */
                uint64_t next = line % 2 == 0 ? both.out.sub[0].count : both.out.sub[1].count;
                words[w] = both.out.base + next + line / 2 % 3;
            }
            tw_slots_commit(&both.out, 0, both.out.slot_bytes, 0);
            tw_msg msg = {};
            ASSERT_EQ(TWILL_OK, tw_slots_peek(&both.in, 0, &msg));
            tw_slots_release(&both.in, 0);
        }
        tw_msg msg = {}; /* the receiver changes first and polls */
        for (uint32_t next = 1; next < 9; next++) {
            tw_slots probe = both.in;
            probe.sub = static_cast<tw_slots_sub *>(tw_alloc(sizeof(tw_slots_sub) * 64));
            memcpy(probe.sub, both.in.sub, sizeof(tw_slots_sub) * both.in.subs_max);
            ASSERT_EQ(TWILL_OK, tw_slots_layout(&probe, 1 + next % 4, next));
            for (uint32_t sub = 0; sub < probe.subs && next != depth; sub++) {
                EXPECT_EQ(TWILL_ERR_AGAIN, tw_slots_peek(&probe, sub, &msg));
            }
            tw_slots_fini(&probe);
        }
    }
}

/* What a receiver that polls can see of a small message travels in the header's line alone. */
TEST(Slots, SmallMessagesStayInTheHeaderLine)
{
    Both both(1024);
    both.layout(1, 2);
    for (uint32_t bytes = 0; bytes <= 64; bytes++) {
        void *data = nullptr;
        ASSERT_EQ(TWILL_OK, tw_slots_reserve(&both.out, 0, &data));
        for (uint32_t b = 0; b < bytes; b++) {
            static_cast<unsigned char *>(data)[b] = (unsigned char)(b + bytes);
        }
        tw_slots_commit(&both.out, 0, bytes, 0);
        tw_msg msg = {};
        ASSERT_EQ(TWILL_OK, tw_slots_peek(&both.in, 0, &msg));
        auto *got = static_cast<const unsigned char *>(msg.data);
        auto *line = static_cast<const unsigned char *>(data) - 64;
        EXPECT_EQ(bytes <= 40, got + bytes <= line + 64) << bytes;
        for (uint32_t b = 0; b < bytes; b++) {
            ASSERT_EQ((unsigned char)(b + bytes), got[b]);
        }
        tw_slots_release(&both.in, 0);
    }
}

TEST(Slots, LifeOfTheSendEnd)
{
    Both both(1024, 99);
    EXPECT_FALSE(tw_slots_attach(both.memory, 98)) << "another FIFO's memory";
    EXPECT_TRUE(tw_slots_attach(both.memory, 99));
    EXPECT_FALSE(tw_slots_attach(both.memory, 99));
    EXPECT_FALSE(tw_slots_revoke(both.memory, 99)) << "the sender may still write";
    tw_slots_leave(both.memory, 99);
    EXPECT_TRUE(tw_slots_revoke(both.memory, 99));
    EXPECT_FALSE(tw_slots_attach(both.memory, 99));
    tw_slots_format(both.memory, 1024, 7);
    EXPECT_TRUE(tw_slots_revoke(both.memory, 7)) << "nobody came";
    EXPECT_TRUE(tw_slots_revoke(both.memory, 7));
    EXPECT_FALSE(tw_slots_attach(both.memory, 7));
}

} // namespace
