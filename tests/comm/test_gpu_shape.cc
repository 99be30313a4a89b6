/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what calls on devices must be cut into, from their definition. Never knows: how kernels
 * go about it. */
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "comm/gpu.h"
}

namespace
{

constexpr enum tw_coll served[] = {TW_COLL_ALL_REDUCE,     TW_COLL_REDUCE,     TW_COLL_BROADCAST,
                                   TW_COLL_REDUCE_SCATTER, TW_COLL_ALL_GATHER, TW_COLL_ALL_TO_ALL,
                                   TW_COLL_BARRIER,        TW_COLL_GATHER,     TW_COLL_SCATTER};

bool is_rooted(enum tw_coll coll)
{
    return coll == TW_COLL_REDUCE || coll == TW_COLL_BROADCAST || coll == TW_COLL_GATHER ||
           coll == TW_COLL_SCATTER;
}
bool is_sum(enum tw_coll coll)
{
    return coll == TW_COLL_ALL_REDUCE || coll == TW_COLL_REDUCE || coll == TW_COLL_REDUCE_SCATTER;
}
/* The input, the output has a block for each rank. */
bool has_many_in(enum tw_coll coll)
{
    return coll == TW_COLL_REDUCE_SCATTER || coll == TW_COLL_ALL_TO_ALL || coll == TW_COLL_SCATTER;
}
bool has_many_out(enum tw_coll coll)
{
    return coll == TW_COLL_ALL_GATHER || coll == TW_COLL_ALL_TO_ALL || coll == TW_COLL_GATHER;
}

/* A rank of a communicator on devices, as far as calls are cut by it. */
class Rank
{
  public:
    /* Of as much memory as there is for a peer: docs/gpu.md has the rule; or of so many bytes. */
    Rank(int rank, int size, int most_blocks, bool all_here, uint32_t peer_bytes = 0)
        : comm_(std::make_unique<struct twill_comm>()), gpu_(std::make_unique<struct tw_gpu>())
    {
        const uint32_t each = std::clamp(((uint32_t)16 << 20) / (uint32_t)std::max(1, size - 1),
                                         (uint32_t)256 << 10, (uint32_t)4 << 20);

        comm_->rank = rank;
        comm_->size = size;
        gpu_->comm = comm_.get();
        gpu_->most_blocks = most_blocks;
        gpu_->all_here = all_here;
        tw_gpu_shape_init(gpu_.get());
        gpu_->base.rank = rank;
        gpu_->base.size = size;
        tw_cost_table_default(&gpu_->costs);
        gpu_->base.layout.line_each = each / 4 / 4096 * 4096;
        gpu_->base.layout.ring_each = (each / 2 - 65536) / 4096 * 4096;
        if (peer_bytes == 0)
            return;
        struct tw_gpu_parts parts = {};
        tw_gpu_peer_cut(peer_bytes, &parts);
        gpu_->base.layout.line_each = parts.line_each;
        gpu_->base.layout.ring_each = parts.ring_each;
    }
    struct tw_call call(enum tw_coll coll, size_t count, twill_type_t type, twill_redop_t op,
                        int root) const
    {
        struct tw_call call = {};
        call.info.coll = coll;
        call.info.count = count;
        call.info.type = type;
        call.info.op = op;
        call.info.root = root;
        call.comm = comm_.get();
        return call;
    }
    struct tw_gpu_shape shape(const struct tw_call &call) const
    {
        struct tw_gpu_shape shape = {};
        tw_gpu_shape(gpu_.get(), &call, &shape);
        return shape;
    }
    std::unique_ptr<struct tw_gk_call> fill(const struct tw_call &call) const
    {
        auto filled = std::make_unique<struct tw_gk_call>();
        const struct tw_gpu_shape cut = shape(call);
        memset(filled.get(), 0xa5, sizeof *filled);
        tw_gpu_fill(gpu_.get(), &call, &cut, filled.get());
        return filled;
    }
    /* Whatever has room goes by lines, and whoever can read does so: prices move no border. */
    Rank &by_rules()
    {
        for (auto proto : {TW_COST_PROTO_LINES, TW_COST_PROTO_READS}) {
            gpu_->costs.value[tw_cost_proto_index(proto, TW_COST_PROTO_START)] =
                proto == TW_COST_PROTO_LINES ? 0 : 1000000; /* ps */
            for (auto field : {TW_COST_PROTO_RATE, TW_COST_PROTO_BLOCK})
                gpu_->costs.value[tw_cost_proto_index(proto, field)] = 100000000;
        }
        return *this;
    }
    uint64_t line_most() const { return gpu_->base.layout.line_each / 2; }
    uint64_t ring_bytes() const { return gpu_->base.layout.ring_each; }
    const struct tw_gpu *gpu() const { return gpu_.get(); }

  private:
    std::unique_ptr<struct twill_comm> comm_;
    std::unique_ptr<struct tw_gpu> gpu_;
};

/* Counts around every border there could be. */
std::vector<size_t> counts(const Rank &rank, size_t elem)
{
    std::vector<size_t> all = {0, 1, 2, 3, 31, 32, 33, 1000};
    for (uint64_t bytes = 64; bytes <= (uint64_t)1 << 41; bytes *= 8)
        all.push_back(bytes / elem + 1);
    for (uint64_t bytes : {rank.line_most(), (uint64_t)8192, (uint64_t)32768, (uint64_t)1 << 21})
        for (int more : {-1, 0, 1})
            all.push_back(bytes / elem + (size_t)more);
    return all;
}

constexpr int sizes[] = {1, 2, 3, 4, 5, 8, 9, 16, 33, 43, 44, 63, 64};

/* ---- kernel, blocks, threads ---------------------------------------------------------------- */

TEST(GpuShape, KernelBySizeAndReach)
{
    for (int size : sizes)
        for (int i = 0; i < 4; i++) {
            const bool all_here = i % 2 != 0;
            Rank rank(0, size, 64, all_here, i < 2 ? 0 : TW_GPU_PEER_BYTES_LEAST);
            if (size > 2) /* of two, the built-in costs say the same */
                rank.by_rules();
            for (enum tw_coll coll : served)
                for (twill_type_t type : {TWILL_INT8, TWILL_FLOAT64})
                    for (size_t count : counts(rank, tw_type_bytes(type))) {
                        const bool small = count * tw_type_bytes(type) <= rank.line_most();
                        const bool all = coll == TW_COLL_ALL_REDUCE;
                        const auto kernel =
                            rank.shape(rank.call(coll, count, type, TWILL_SUM, 0)).kernel;
                        const auto expected =
                            !is_sum(coll) ? (small ? TW_GK_LINE_MOVE : TW_GK_RING_MOVE)
                            : small       ? TW_GK_LINE_REDUCE
                            : all_here    ? (all ? TW_GK_DIRECT_ALL : TW_GK_DIRECT_SCATTER)
                                          : (all ? TW_GK_RING_ALL : TW_GK_RING_SCATTER);
                        ASSERT_EQ(kernel, expected)
                            << tw_coll_name(coll) << " count " << count << " size " << size;
                    }
        }
}

TEST(GpuShape, CreatedSumsDoNotReadPeersInputs)
{
    const Rank rank(0, 4, 64, true);
    const auto kernel = [&](enum tw_coll coll, size_t count) {
        return rank.shape(rank.call(coll, count, TWILL_FLOAT32, TW_REDOP_PREMUL_SUM, 0)).kernel;
    };
    EXPECT_EQ(kernel(TW_COLL_ALL_REDUCE, 1 << 20), TW_GK_PUSH_ALL) << "but write sums there";
    EXPECT_EQ(kernel(TW_COLL_REDUCE_SCATTER, 1 << 24), TW_GK_RING_SCATTER);
    EXPECT_EQ(kernel(TW_COLL_REDUCE, 1 << 24), TW_GK_RING_SCATTER);
    EXPECT_EQ(kernel(TW_COLL_ALL_REDUCE, 8), TW_GK_LINE_REDUCE);
}

/* Sums of two ranks, from 16 MiB for each to sum on: both come to the same, in place or not. */
TEST(GpuShape, TwoRanksPushLargeSums)
{
    const size_t each = (size_t)8 << 20, each_scatter = (size_t)256 << 20;
    for (int size : {1, 2, 3})
        for (bool all_here : {false, true})
            for (enum tw_coll coll : served)
                for (twill_redop_t op : {TWILL_SUM, TWILL_MAX, (twill_redop_t)TW_REDOP_PREMUL_SUM})
                    for (size_t share : {each - 2, each, 3 * each + 10, each_scatter - 2,
                                         each_scatter, (size_t)1 << 34}) {
                        const Rank first(0, size, 132, all_here),
                            last(size - 1, size, 132, all_here);
                        const size_t count =
                            share / 2 * (coll == TW_COLL_ALL_REDUCE ? (size_t)size : 1);
                        const auto shape =
                            first.shape(first.call(coll, count, TWILL_FLOAT16, op, 0));
                        const auto other = last.shape(last.call(coll, count, TWILL_FLOAT16, op, 0));
                        const bool pushes =
                            size == 2 && all_here && op != TW_REDOP_PREMUL_SUM &&
                            ((coll == TW_COLL_ALL_REDUCE && share >= each) ||
                             (coll == TW_COLL_REDUCE_SCATTER && share >= each_scatter));
                        ASSERT_EQ(shape.chunk != 0, pushes)
                            << tw_coll_name(coll) << " size " << size << " share " << share;
                        ASSERT_EQ(shape.chunk, other.chunk);
                        ASSERT_EQ(shape.blocks, other.blocks);
                        if (!pushes)
                            continue;
                        ASSERT_EQ(shape.chunk, share < 2 * each       ? 32768u
                                               : share < each_scatter ? 65536u
                                                                      : 131072u);
                        ASSERT_EQ(shape.blocks, 128u);
                        ASSERT_STREQ(tw_gpu_algo_name(&shape),
                                     coll == TW_COLL_ALL_REDUCE ? "two_shot_put" : "direct_put");
                    }
}

TEST(GpuShape, BlocksAndThreadsKeepToTheirBounds)
{
    for (int size : sizes)
        for (int most : {1, 2, 7, 16, 64, 1000})
            for (bool all_here : {false, true}) {
                const Rank rank(size - 1, size, most, all_here);
                for (enum tw_coll coll : served)
                    for (size_t count : counts(rank, 2)) {
                        const auto shape =
                            rank.shape(rank.call(coll, count, TWILL_FLOAT16, TWILL_SUM, 0));
                        ASSERT_GE(shape.blocks, 1u);
                        ASSERT_LE(shape.blocks, (uint32_t)std::min(most, 128));
                        ASSERT_EQ(shape.threads % 32, 0u);
                        ASSERT_GE(shape.threads, 64u) << "clerks, and others";
                        ASSERT_LE(shape.threads, (uint32_t)TW_GK_LINE_THREADS_MOST);
                        if (shape.kernel == TW_GK_LINE_REDUCE || shape.kernel == TW_GK_LINE_MOVE)
                            continue;
                        ASSERT_EQ(shape.threads, 512u);
                        ASSERT_LE(shape.blocks, shape.chunk != 0 ? 128u : 64u);
                    }
            }
}

/* Rings take as many slots as there are; sums take four to a ring, messages four at once. */
TEST(GpuShape, EveryRingHasRoom)
{
    for (int size = 2; size <= TW_GK_RANKS_MAX; size++) {
        const Rank rank(0, size, 1000, false), least(0, size, 1000, false, TW_GPU_PEER_BYTES_LEAST);
        EXPECT_GE(rank.ring_bytes() / TW_GK_SLOT_BYTES, 16u) << size << " ranks";
        EXPECT_LE(rank.ring_bytes() / TW_GK_SLOT_BYTES, (uint64_t)TW_GK_SLOTS_MAX) << "of no use";
        EXPECT_GE(least.ring_bytes() / TW_GK_SLOT_BYTES, 8u) << "the least";
        EXPECT_EQ(least.ring_bytes() % TW_GK_SLOT_BYTES, 0u);
        EXPECT_GE(least.line_most(), 4096u) << "small calls are still small";
    }
}

TEST(GpuShape, SmallCallsHaveAThreadForEachUnit)
{
    const Rank rank(0, 2, 64, true);
    const auto shape = [&](size_t bytes) {
        return rank.shape(rank.call(TW_COLL_ALL_REDUCE, bytes, TWILL_INT8, TWILL_SUM, 0));
    };
    for (size_t bytes = 1; bytes <= 64 * 480 * 8; bytes = bytes * 3 / 2 + 1) {
        const auto cut = shape(bytes);
        EXPECT_GE((uint64_t)cut.blocks * (cut.threads - 32) * 8, bytes);
        EXPECT_LT((uint64_t)(cut.blocks - 1) * (cut.threads - 32) * 8, bytes) << "idle blocks";
    }
    EXPECT_EQ(shape(8).threads, 64u);
    EXPECT_EQ(shape(480 * 8).blocks, 1u);
    EXPECT_EQ(shape(480 * 8 + 1).blocks, 2u);
}

/* ---- what kernels are told ------------------------------------------------------------------ */

/* Bit p: rank gives a block to p, takes one from p. */
struct Masks {
    uint64_t sends, takes;
};
Masks masks(enum tw_coll coll, int rank, int size, int root)
{
    Masks all = {0, 0};
    for (int peer = 0; peer < size; peer++) {
        const bool to_root = coll == TW_COLL_REDUCE || coll == TW_COLL_GATHER;
        const bool from_root = coll == TW_COLL_BROADCAST || coll == TW_COLL_SCATTER;
        const uint64_t bit = (uint64_t)1 << peer;
        if ((!to_root || peer == root) && (!from_root || rank == root))
            all.sends |= bit;
        if ((!to_root || rank == root) && (!from_root || peer == root))
            all.takes |= bit;
    }
    return all;
}

TEST(GpuFill, BlocksGoWhereTheCollectiveSays)
{
    for (int size : sizes)
        for (enum tw_coll coll : served)
            for (int root = 0; root < (is_rooted(coll) ? size : 1); root++)
                for (int r = 0; r < size; r++)
                    for (size_t count : {(size_t)5, (size_t)1 << 22}) {
                        const Rank rank(r, size, 64, true);
                        if (coll == TW_COLL_BARRIER)
                            count = 0;
                        auto call = rank.call(coll, count, TWILL_INT32, TWILL_SUM, root);
                        const auto told = rank.fill(call);
                        const Masks expected = masks(coll, r, size, root);
                        ASSERT_EQ(told->sends, expected.sends)
                            << tw_coll_name(coll) << " rank " << r << " of " << size << " root "
                            << root;
                        ASSERT_EQ(told->takes, expected.takes)
                            << tw_coll_name(coll) << " rank " << r << " of " << size << " root "
                            << root;
                        ASSERT_EQ(told->bytes, count * 4);
                        ASSERT_EQ(told->in_stride, has_many_in(coll) ? count * 4 : 0);
                        ASSERT_EQ(told->out_stride, has_many_out(coll) ? count * 4 : 0);
                        ASSERT_EQ(told->elem_bytes, 4u);
                    }
}

/* What one rank sends another it is to take. */
TEST(GpuFill, SendersAndTakersAgree)
{
    const int size = 9;
    for (enum tw_coll coll : served)
        for (int root = 0; root < (is_rooted(coll) ? size : 1); root++)
            for (int from = 0; from < size; from++)
                for (int to = 0; to < size; to++) {
                    const Rank sender(from, size, 64, false), taker(to, size, 64, false);
                    const auto sent =
                        sender.fill(sender.call(coll, 8, TWILL_INT8, TWILL_MAX, root))->sends;
                    const auto taken =
                        taker.fill(taker.call(coll, 8, TWILL_INT8, TWILL_MAX, root))->takes;
                    EXPECT_EQ(sent >> to & 1, taken >> from & 1);
                }
}

/* Ranks compare these: they may hold nothing of one rank alone. */
TEST(GpuFill, RecordsAreEqualOnAllRanks)
{
    char memory[64];
    for (int size : {2, 3, 8, 64})
        for (bool all_here : {false, true})
            for (enum tw_coll coll : served)
                for (size_t count : counts(Rank(0, size, 64, all_here), 4)) {
                    const int root = is_rooted(coll) ? size - 1 : 0;
                    const Rank first(0, size, 64, all_here);
                    const auto expected =
                        first.fill(first.call(coll, count, TWILL_FLOAT32, TWILL_SUM, root));
                    for (int r : {1, size - 1}) {
                        const Rank rank(r, size, 64, all_here);
                        auto call = rank.call(coll, count, TWILL_FLOAT32, TWILL_SUM, root);
                        call.in = memory + 4 * r % 64;
                        call.out = r % 2 != 0 ? memory + 4 * r % 64 : memory; /* in place or not */
                        ASSERT_EQ(
                            memcmp(rank.fill(call)->words, expected->words, sizeof expected->words),
                            0)
                            << tw_coll_name(coll) << " count " << count << " size " << size;
                    }
                }
}

TEST(GpuFill, RecordsSayWhatIsCalled)
{
    const Rank rank(1, 64, 64, false);
    const size_t count = ((size_t)1 << 40) + 3;
    const auto call = rank.call(TW_COLL_REDUCE, count, TWILL_BFLOAT16, TWILL_AVG, 63);
    const auto shape = rank.shape(call);
    const auto told = rank.fill(call);
    EXPECT_EQ(told->words[TW_GK_WORD_CALL] >> 24, (uint32_t)TW_COLL_REDUCE);
    EXPECT_EQ(told->words[TW_GK_WORD_CALL] >> 16 & 0xff, (uint32_t)TWILL_BFLOAT16);
    EXPECT_EQ(told->words[TW_GK_WORD_CALL] >> 8 & 0xff, (uint32_t)TWILL_AVG);
    EXPECT_EQ(told->words[TW_GK_WORD_PATH] >> 16, 63u);
    EXPECT_EQ(told->words[TW_GK_WORD_PATH] >> 8 & 0xff, (uint32_t)shape.kernel);
    EXPECT_EQ(told->words[TW_GK_WORD_PATH] & 0xff, shape.blocks);
    EXPECT_EQ(told->words[TW_GK_WORD_COUNT], 6u);
    EXPECT_EQ(told->words[TW_GK_WORD_COUNT + 1], 512u);
    char text[TW_GPU_CALL_TEXT_BYTES];
    tw_gpu_call_text(told->words, text);
    EXPECT_STREQ(text, "reduce count 1099511627779 bfloat16 avg root 63");
}

/* Any difference that ranks are to be told of shows in the words. */
TEST(GpuFill, DifferentCallsHaveDifferentRecords)
{
    const Rank rank(0, 4, 64, true);
    const auto words = [&](enum tw_coll coll, size_t count, twill_type_t type, twill_redop_t op,
                           int root) {
        const auto told = rank.fill(rank.call(coll, count, type, op, root));
        return std::vector<uint32_t>(told->words, told->words + TW_GK_WORDS);
    };
    const auto base = words(TW_COLL_REDUCE, 100, TWILL_INT32, TWILL_SUM, 1);
    EXPECT_NE(base, words(TW_COLL_REDUCE, 101, TWILL_INT32, TWILL_SUM, 1));
    EXPECT_NE(base, words(TW_COLL_REDUCE, 100, TWILL_UINT32, TWILL_SUM, 1));
    EXPECT_NE(base, words(TW_COLL_REDUCE, 100, TWILL_INT32, TWILL_MAX, 1));
    EXPECT_NE(base, words(TW_COLL_REDUCE, 100, TWILL_INT32, TWILL_SUM, 2));
    EXPECT_NE(base, words(TW_COLL_GATHER, 100, TWILL_INT32, TWILL_SUM, 1));
    EXPECT_NE(base, words(TW_COLL_REDUCE, 100 + ((size_t)1 << 32), TWILL_INT32, TWILL_SUM, 1));
}

/* ---- who may write to whose output ---------------------------------------------------------- */

TEST(GpuFill, PeersWriteToOutputsWhereAllAreInOneProcess)
{
    char in[64], out[64];
    for (bool all_here : {false, true})
        for (bool small : {false, true})
            for (enum tw_coll coll : served) {
                const Rank rank(0, 4, 64, all_here);
                auto call = rank.call(coll, small ? 4 : 1 << 22, TWILL_FLOAT32, TWILL_SUM, 0);
                if (coll == TW_COLL_BARRIER)
                    continue;
                call.in = in;
                call.out = out;
                EXPECT_EQ(rank.fill(call)->direct != 0, all_here && !small) << tw_coll_name(coll);
            }
}

TEST(GpuFill, AnInputIsNeverWrittenOver)
{
    char memory[64];
    const Rank rank(2, 4, 64, true);
    for (enum tw_coll coll : served) {
        auto call =
            rank.call(coll, coll == TW_COLL_BARRIER ? 0 : 1 << 22, TWILL_INT8, TWILL_SUM, 2);
        call.in = call.out = memory;
        /* of an all_to_all what comes from a peer lands on what goes to it */
        if (coll == TW_COLL_ALL_TO_ALL) {
            EXPECT_EQ(rank.fill(call)->direct, 0u);
        }
    }
}

TEST(GpuFill, ARankThatTakesNothingIsNotWrittenTo)
{
    char in[64], out[64];
    for (enum tw_coll coll : {TW_COLL_GATHER, TW_COLL_BROADCAST})
        for (int r = 0; r < 4; r++) {
            const Rank rank(r, 4, 64, true);
            auto call = rank.call(coll, 1 << 22, TWILL_INT8, TWILL_SUM, 1);
            call.in = in;
            call.out = out;
            EXPECT_EQ(rank.fill(call)->direct != 0, r == 1 || coll == TW_COLL_BROADCAST);
        }
}

/* Each rank says of itself whether its buffers are apart: it is not in place. */
TEST(GpuFill, RanksSayWhetherTheyAreInPlace)
{
    const size_t bytes = (size_t)512 << 20;
    char *const at = reinterpret_cast<char *>((uintptr_t)1 << 40); /* of nothing: only named */
    for (enum tw_coll coll : {TW_COLL_ALL_REDUCE, TW_COLL_REDUCE_SCATTER})
        for (int r = 0; r < 2; r++) {
            const Rank rank(r, 2, 132, true);
            const size_t in_bytes = coll == TW_COLL_ALL_REDUCE ? bytes : 2 * bytes;
            auto call = rank.call(coll, bytes, TWILL_INT8, TWILL_SUM, 0);
            const auto says = [&](char *in, char *out) {
                call.in = in;
                call.out = out;
                const auto told = rank.fill(call);
                EXPECT_NE(told->chunk, 0u);
                EXPECT_EQ(told->in_word & ~(TW_GK_APART | TW_GK_SAME), (uint64_t)(uintptr_t)in);
                EXPECT_EQ(told->out_word, (uint64_t)(uintptr_t)out);
                return told->in_word & (TW_GK_APART | TW_GK_SAME);
            };
            EXPECT_EQ(says(at, at + in_bytes), TW_GK_APART) << "next to each other";
            EXPECT_EQ(says(at + bytes, at), TW_GK_APART);
            if (coll == TW_COLL_ALL_REDUCE) {
                EXPECT_EQ(says(at, at), TW_GK_SAME);
            } else {
                EXPECT_EQ(says(at, at + (size_t)r * bytes), 0u) << "the rest is kept";
            }
            EXPECT_EQ(says(at, at + 4096), 0u) << "that is nobody's case";
            call.info.count = 32 << 20;
            if (coll == TW_COLL_ALL_REDUCE) {
                EXPECT_EQ(says(at, at), 0u) << "reads are faster yet";
            }
            call.info.count = 1 << 20;
            call.in = at;
            call.out = at + in_bytes;
            EXPECT_EQ(rank.fill(call)->in_word, (uint64_t)(uintptr_t)at) << "of a call that reads";
            call.info.count = bytes;
        }
}

/* ---- names ---------------------------------------------------------------------------------- */

TEST(GpuShape, EveryKernelHasItsNames)
{
    for (int kernel = 0; kernel < TW_GK_KERNELS; kernel++) {
        const struct tw_gpu_shape shape = {(enum tw_gk_kernel)kernel, 1, 64, false, 0};
        ASSERT_NE(tw_gpu_algo_name(&shape), nullptr);
        ASSERT_NE(tw_gpu_proto_name(&shape), nullptr);
        EXPECT_LT(strlen(tw_gpu_algo_name(&shape)), sizeof twill_choice::algo);
        EXPECT_LT(strlen(tw_gpu_proto_name(&shape)), sizeof twill_choice::proto);
    }
}

} // namespace
