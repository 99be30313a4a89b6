/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/small.h"

#include <algorithm>

extern "C" {
#include "comm/gpu.h"
}

namespace emu
{

using gpu::Local;

static const size_t BUFFER_BYTES = (size_t)192 << 10, ARENA_BYTES = (size_t)8 << 20;

std::string text(const Shape &shape)
{
    static const char *const ways[WAYS] = {"direct", "rings", "registered"};
    return gpu::format(
        "%d ranks, placement %d, %s, lines of %u bytes, %u slots, chunks of %u, counters at "
        "%#x%s%s",
        shape.size, shape.placement, ways[shape.way], shape.line_bytes, shape.slots,
        shape.chunk_bytes, shape.start, shape.copies ? ", copy engines" : "",
        shape.cheap < 0 ? "" : gpu::format(", protocol %d is free", shape.cheap).c_str());
}

/* Before the first call of any rank: what all of them have in common, and what kernels have left
 * behind, is as it would be after other calls. */
Small::Small(const Shape &shape) : shape_(shape), world_(gpu::place(shape.size, shape.placement))
{
    shorten();
    age();
    for (auto &local : world_.locals())
        local->arena.reset(ARENA_BYTES, ARENA_BYTES);
    if (shape.way == REGISTERED)
        enlist();
    if (shape.way != DIRECT)
        part();
}

/* For the ranks, others are of other processes; their memory is found already. */
void Small::part()
{
    for (auto &local : world_.locals()) {
        struct tw_gpu *gpu = local->comm->gpu;

        gpu->all_here = false;
        for (int peer = 0; peer < shape_.size; peer++)
            gpu->here[peer] = peer == local->rank;
    }
}

void Small::shorten()
{
    for (auto &local : world_.locals()) {
        struct tw_gpu *gpu = local->comm->gpu;

        if (shape_.copies)
            gpu->copy_from = 1;
        for (int p = 0; p < TW_COST_PROTO_KERNELS && shape_.cheap >= 0; p++)
            gpu->costs.value[tw_cost_proto_index((enum tw_cost_proto)p, TW_COST_PROTO_START)] =
                p == shape_.cheap ? 0 : (uint64_t)1 << 40;
        gpu->push_from = gpu->push_scatter_from = shape_.chunk_bytes != 0;
        gpu->push_same_from = 0;
        gpu->push_chunk = shape_.chunk_bytes;
        gpu->push_blocks = 1;
        gpu->base.layout.line_each = 2 * shape_.line_bytes;
        gpu->base.layout.ring_each =
            std::min(gpu->base.layout.ring_each, TW_GK_SLOT_BYTES * shape_.slots);
    }
}

void Small::enlist()
{
    regs_.resize(world_.locals().size());
    gpu::on_threads(world_.size(), [this](int i) {
        Local &local = *world_.locals()[(size_t)i];
        TWILL(
            twill_register(local.comm, local.arena.take_device(0), ARENA_BYTES, &regs_[(size_t)i]),
            local.comm);
    });
}

/* ---- counters ----------------------------------------------------------------------------------
 */

static void record_age(struct tw_gk_record *record, uint32_t epoch)
{
    for (auto &pair : record->pair)
        pair[1] = epoch;
}

static void door_age(struct tw_gk_door *door, uint32_t number)
{
    for (uint32_t i = 0; i < TW_GK_POSTS; i++) {
        record_age(&door->posts[(number - i) % TW_GK_POSTS], number - i);
        door->done[(number - i) % TW_GK_POSTS] = number - i;
    }
}

static void state_age(struct tw_gk_state *state, int size, uint32_t start)
{
    state->epoch = start;
    for (uint32_t &chunks : state->pushed)
        chunks = start;
    for (int peer = 0; peer < size; peer++)
        for (auto &slot : state->counts[peer])
            slot.sent = slot.taken = start;
    for (auto &peer : state->ways)
        for (auto &way : peer)
            way.number = start;
}

/* What peers have written: nobody writes what would be of the rank itself. */
static void memory_age(const struct tw_gk_call *base, char *mem, uint32_t start)
{
    const struct tw_gk_layout *layout = &base->layout;
    auto *flags = (struct tw_gk_flags *)(mem + TW_GK_FLAGS_AT);

    for (int peer = 0; peer < base->size; peer++) {
        if (peer == base->rank)
            continue;
        auto *records = (struct tw_gk_record *)mem + 2 * peer;

        record_age(&records[start & 1], start);
        record_age(&records[(start - 1) & 1], start - 1);
        door_age((struct tw_gk_door *)(mem + TW_GK_DOORS_AT) + peer, start);
        std::fill(std::begin(flags[peer].drained), std::end(flags[peer].drained), start);
        for (auto &marks : flags[peer].blocks)
            marks = {start, start};
    }
    /* lines of a call soon to come, as they would lie there if none had been swept */
    uint32_t *lines = (uint32_t *)(mem + layout->lines), *ring = (uint32_t *)(mem + layout->ring);
    std::fill(lines, ring, ((start + 8) & ~15u) + 4);
    std::fill(ring, (uint32_t *)(mem + layout->bytes), start << 16); /* all packets' tags */
}

void Small::age()
{
    for (auto &local : world_.locals()) {
        const struct tw_gpu *gpu = local->comm->gpu;

        if (shape_.start != 0 && shape_.size > 1)
            memory_age(&gpu->base, (char *)gpu->mem, shape_.start);
        if (shape_.start != 0)
            state_age(gpu->state, shape_.size, shape_.start);
    }
}

/* ---- cases -------------------------------------------------------------------------------------
 */

gpu::Limits Small::limits() const
{
    gpu::Limits limits;

    limits.sizes = shape_.size;
    limits.buffer_bytes = BUFFER_BYTES;
    limits.line_bytes = shape_.line_bytes;
    limits.piece_bytes = TW_GK_SLOT_DATA;
    return limits;
}

void Small::destroy()
{
    if (!regs_.empty())
        gpu::on_threads(world_.size(), [this](int i) {
            Local &local = *world_.locals()[(size_t)i];
            TWILL(twill_deregister(local.comm, regs_[(size_t)i]), local.comm);
        });
    regs_.clear();
    world_.destroy();
}

} // namespace emu
