/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: packets that come late, one by one, and slots that hold any bits.
 * Never knows: how a call is made and judged (gpu/run.h). */
#include <thread>

extern "C" {
#include "comm/gpu.h"
}

#include "emu/block.h"
#include "emu/small.h"
#include "gpu/p2p_batch.h"
#include "gpu/run.h"

namespace emu
{

using namespace gpu;

namespace
{

/* Ranks that reach each other by slots only: eight for each pair, so that an all_reduce has two
 * rings and other calls have eight. */
Shape by_slots(int size, uint32_t start)
{
    Shape shape;

    shape.size = size;
    shape.way = RINGS;
    shape.start = start;
    return shape;
}

Case call_of(int size, Kind kind, size_t count)
{
    Case c;

    c.seed = count;
    c.size = size;
    c.kind = kind;
    c.type = TWILL_INT32;
    c.count = count;
    c.bits = TAME;
    c.rounds = 1;
    c.ranks.resize((size_t)size);
    return c;
}

/* One packet that rank 0 sends to rank 1 is held back while `run` runs what goes through the slot.
 */
template <class Run> void late_packet(Small *small, uint32_t slot, uint32_t packet, const Run &run)
{
    const struct tw_gpu *from = small->world().rank(0).comm->gpu;
    const auto *to = (const char *)small->world().rank(1).comm->gpu->mem;
    const auto *flags = (const struct tw_gk_flags *)((const char *)from->mem + TW_GK_FLAGS_AT);
    const uint32_t *drained = &flags[1].drained[slot], before = *drained;
    const auto given_back = [=] { return __atomic_load_n(drained, __ATOMIC_RELAXED) != before; };

    held = to + from->base.layout.ring + slot * TW_GK_SLOT_BYTES + packet * 16;
    std::thread rest([=] {
        EXPECT_FALSE(within(0.03, given_back)) << "packet " << packet << " of slot " << slot;
        held = nullptr;
    });
    run();
    rest.join();
    EXPECT_TRUE(given_back()) << "slot " << slot << " is not used";
}

/* Of each of a thread's eight, and of any thread. */
uint32_t packet_of(uint32_t i) { return i * TW_GK_WARP + i * 11 % TW_GK_WARP; }

/* start: of the uses, whose tags are their lower 16 bits */
void late_in_call(int size, Kind kind, uint32_t slot, uint32_t start)
{
    step(format("%d ranks, kind %d, slot %u, uses from %#x", size, (int)kind, slot, start));
    for (uint32_t i = 0; i < TW_GK_SLOT_BYTES / TW_GK_WARP / 16; i++) {
        Small small(by_slots(size, start));

        late_packet(&small, slot, packet_of(i), [&] {
            run_case(call_of(size, kind, (size_t)2000 * (size_t)size), &small.world());
        });
        small.destroy();
    }
}

} // namespace

TEST(Packets, ALateOneIsWaitedFor)
{
    late_in_call(2, ALL_GATHER, 0, 0);
    late_in_call(2, ALL_REDUCE, 0, 0xfffe); /* a share, and then a sum, which the tag 0 has */
    late_in_call(2, ALL_REDUCE, 4, 0xffff);
    late_in_call(3, ALL_REDUCE, 0, 0xffffffff); /* rank 0 is not rank 1's next one */
    late_in_call(2, REDUCE_SCATTER, 0, 0);
}

TEST(Packets, ALateOneOfAMessage)
{
    for (uint32_t i = 0; i < TW_GK_SLOT_BYTES / TW_GK_WARP / 16; i++) {
        Random random(i);
        Batch batch = {message(&random, 0, 1, 9000)};
        Small small(by_slots(2, 0));
        Post post(&small.world(), &batch, &random);

        late_packet(&small, 4 + i % 3, packet_of(i), /* of the way of the first message, the third
                                                        warp's part is the last one */
                    [&] { run_batch(&small.world(), &post, true, 0, false); });
        small.destroy();
    }
}

} // namespace emu
