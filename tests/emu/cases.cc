/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which calls kernels are tried with on the processor, on communicators of which shape.
 * Never knows: how a call is made and judged (gpu/run.h).
 *
 * TW_TEST_BUDGET=S seconds of drawn cases (8), from number TW_EMU_FIRST on (0), or TW_EMU_CASES of
 * them. TW_EMU_SEED: another order of threads (1). */
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

extern "C" {
#include "comm/gpu.h"
}

#include "emu/small.h"
#include "emu/work.h"
#include "gpu/p2p_batch.h"
#include "gpu/process.h"
#include "gpu/run.h"

namespace emu
{

using namespace gpu;

namespace
{

uint64_t number(const char *variable, uint64_t otherwise)
{
    const char *value = getenv(variable);
    return value != nullptr && *value != 0 ? strtoull(value, nullptr, 0) : otherwise;
}

/* A few calls before a quarter of the numbers is over, where lines are swept; all of them before
 * the tags of packets, which are 16 bits, begin anew. */
const uint32_t starts[] = {0xfffffffau, 0x3ffffff9u, 0x7ffffffbu, 0xbffffffcu};
const uint64_t EACH = 12; /* cases of a communicator */

Shape draw_shape(uint64_t seed)
{
    static const uint32_t lines[] = {16, 256, 4096}, slots[] = {4, 8, 13, 64, 512};
    static const uint32_t chunks[] = {0, 16, 144, 8208};
    Random random(mix(seed * 2 + 1));
    Shape shape;

    shape.size = 1 + (int)(seed % 8);
    shape.placement = (int)random.below(3);
    shape.way = (Way)random.below(WAYS);
    shape.line_bytes = lines[random.below(3)];
    shape.slots = slots[random.below(5)];
    if (random.one_in(2))
        shape.start = starts[random.below(4)];
    shape.copies = shape.way == DIRECT && random.one_in(2);
    if (random.one_in(2))
        shape.cheap = (int)random.below(TW_COST_PROTO_WRITES + 1);
    shape.chunk_bytes = chunks[random.below(4)];
    return shape;
}

void run_one(const Case &c, Small *small, const Shape &shape, const std::string &replay)
{
    const std::string what = replay + text(shape) + ": " + text(c);

    step(what);
    try {
        run_case(c, &small->world());
    } catch (const std::exception &e) {
        FAIL() << e.what() << "\n" << what;
    }
}

/* Of ranks that all begin at their buffers' start. */
Case plain(int size, Kind kind, size_t count)
{
    Case c;

    c.seed = count * 64 + (size_t)kind;
    c.size = size;
    c.kind = kind;
    c.type = reduces(kind) ? TWILL_FLOAT32 : TWILL_INT8;
    c.count = count;
    c.bits = TAME;
    c.rounds = 2;
    c.threads = count % 2 != 0;
    c.ranks.resize((size_t)size);
    if (varies(kind)) /* no two alike */
        for (int i = 0; i < (kind == ALL_TO_ALL_V ? size * size : size); i++)
            c.counts.push_back(i == 0 ? count : count * (size_t)i / (size_t)size);
    return c;
}

/* A file of a plan, gone afterwards. */
class PlanFile
{
  public:
    explicit PlanFile(const char *text)
    {
        const int fd = mkstemp(path_);

        if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
            throw Failure("no file for a plan");
        close(fd);
    }
    ~PlanFile() { (void)unlink(path_); }
    PlanFile(const PlanFile &) = delete;
    PlanFile &operator=(const PlanFile &) = delete;
    const char *path() const { return path_; }

  private:
    char path_[32] = "/tmp/twill-test-plan-XXXXXX";
};

/* A broadcast whose first lane waits for the last one, of four. */
const char WAITING_PLAN[] = "plan waits broadcast ranks 2 root 0\n"
                            "facts depth 2 slices 2 fifos 4 widest 1\n"
                            "part equal groups 1 per 4\n"
                            "rank 0\n"
                            "lane channel 0\n"
                            "send to 1 src in.0[0] after 3:1\n"
                            "copy src in.0[0] dst out.0[0]\n"
                            "lane channel 1\n"
                            "send to 1:1 src in.0[1]\n"
                            "copy src in.0[1] dst out.0[1]\n"
                            "lane channel 2\n"
                            "send to 1:2 src in.0[2]\n"
                            "copy src in.0[2] dst out.0[2]\n"
                            "lane channel 3\n"
                            "send to 1:3 src in.0[3]\n"
                            "copy src in.0[3] dst out.0[3]\n"
                            "rank 1\n"
                            "lane channel 0\n"
                            "recv from 0 dst out.0[0]\n"
                            "lane channel 1\n"
                            "recv from 0:1 dst out.0[1]\n"
                            "lane channel 2\n"
                            "recv from 0:2 dst out.0[2]\n"
                            "lane channel 3\n"
                            "recv from 0:3 dst out.0[3]\n";

} // namespace

TEST(Kernels, Cases)
{
    const uint64_t first = number("TW_EMU_FIRST", 0), cases = number("TW_EMU_CASES", 0);
    const double until = now_s() + (double)number("TW_TEST_BUDGET", 8);
    std::unique_ptr<Small> small;
    Shape shape;
    uint64_t i = first / EACH * EACH; /* a communicator's cases follow each other */

    for (; cases != 0 ? i < first + cases : now_s() < until || i % EACH != 0; i++) {
        if (i % EACH == 0) {
            if (small)
                small->destroy();
            shape = draw_shape(i / EACH);
            step(text(shape));
            small = std::make_unique<Small>(shape);
        }
        run_one(draw(i, small->limits()), small.get(), shape,
                format("TW_EMU_FIRST=%llu TW_EMU_CASES=1: ", (unsigned long long)i));
        if (HasFatalFailure())
            return;
    }
    if (small)
        small->destroy();
    printf("%llu cases\n", (unsigned long long)(i - first / EACH * EACH));
}

/* Each collective by lines, by rings, right to outputs; below, at and above each border. */
TEST(Kernels, EveryWay)
{
    for (int size : {2, 5})
        for (int way = 0; way < WAYS; way++) {
            Shape shape;

            shape.size = size;
            shape.way = (Way)way;
            shape.placement = size % 2;
            shape.slots = 4;
            Small small(shape);
            for (int kind = 0; kind < KINDS; kind++) {
                const size_t elem = reduces((Kind)kind) ? 4 : 1;

                for (size_t bytes : {8, 256, 260, 3584, 3588, 18000}) {
                    run_one(plain(size, (Kind)kind, bytes / elem), &small, shape, "");
                    if (HasFatalFailure())
                        return;
                }
            }
            small.destroy();
        }
}

/* Epochs, uses of slots and numbers of messages go over the end of their 32 bits, over the quarters
 * of it, where lines are swept, and over the end of packets' tags. */
TEST(Kernels, CountersWrap)
{
    for (int i = 0; i < 4; i++)
        for (int way : {i % WAYS, (i + 1) % WAYS}) {
            const uint32_t start = starts[i];
            Shape shape;

            shape.size = 2 + way % 2;
            shape.way = (Way)way;
            shape.start = start;
            shape.slots = 4;
            Small small(shape);
            for (int call = 0; call < 14; call++) {
                static const Kind kinds[] = {ALL_REDUCE, ALL_TO_ALL_V, ALL_GATHER, REDUCE_SCATTER};

                run_one(plain(shape.size, kinds[call % 4], call % 3 == 0 ? 40 : 3000), &small,
                        shape, "");
                if (HasFatalFailure())
                    return;
            }
            run_batches(&small.world(), start, 4, 9000, true);
            small.destroy();
        }
}

/* A rank's last block begins when its first one has long begun, and its peer, which takes nothing
 * from it, is in the next call but one. */
TEST(Kernels, LateBlock)
{
    for (int way = 0; way < WAYS; way++) {
        Shape shape;

        shape.way = (Way)way;
        Small small(shape);
        late(0, 20);
        for (int call = 0; call < 12 && !HasFatalFailure(); call++) {
            Case c = plain(2, call % 3 == 2 ? ALL_REDUCE : SCATTER_V, 51);

            c.root = c.kind == SCATTER_V;
            c.threads = true;
            run_one(c, &small, shape, "a late block: ");
        }
        late(0, 0);
        small.destroy();
    }
}

/* When a rank begins, one half of its peer's last record is there, and the other one comes. */
TEST(Kernels, HalfOfARecord)
{
    for (uint32_t start : {0xffffffffu, 0x7fffffffu, 0x12345678u}) {
        Shape shape;

        shape.start = start;
        Small small(shape);
        auto *to = (struct tw_gk_record *)small.world().rank(1).comm->gpu->mem + (start & 1);
        auto *back = (struct tw_gk_record *)small.world().rank(0).comm->gpu->mem + 2;
        const uint32_t *told = &back[(start + 1) & 1].pair[TW_GK_WORD_CALL][1];
        auto *half = (uint64_t *)to->pair[TW_GK_WORD_PATH];
        const uint64_t whole = *half;

        *half = (uint64_t)(start - 2) << 32 | 1; /* as of the last but one before it */
        std::thread rest([=] {
            /* not before all of it is there */
            EXPECT_FALSE(
                within(0.2, [=] { return __atomic_load_n(told, __ATOMIC_RELAXED) == start + 1; }));
            __atomic_store_n(half, whole, __ATOMIC_RELAXED);
        });
        run_one(plain(2, ALL_REDUCE, 10), &small, shape, "half of a record: ");
        rest.join();
        small.destroy();
    }
}

/* Between two calls that write right to outputs there may be more than half of all epochs. */
TEST(Kernels, FlagsOfLongAgo)
{
    for (uint32_t ago : {0x7fffffffu, 0x80000001u, 0xfffffff0u}) {
        Shape shape;

        shape.start = 0x12345678;
        Small small(shape);
        for (int r = 0; r < 2; r++) {
            char *mem = (char *)small.world().rank(r).comm->gpu->mem;
            auto *flags = (struct tw_gk_flags *)(mem + TW_GK_FLAGS_AT);

            for (auto &marks : flags[1 - r].blocks)
                marks.ended = shape.start - ago;
        }
        late(1, 20);
        for (Kind kind : {ALL_REDUCE, BROADCAST, ALL_GATHER_V}) {
            Case c = plain(2, kind, 40000);

            c.root = 1;
            run_one(c, &small, shape, format("flags of %#x calls ago: ", ago));
        }
        late(0, 0);
        late(1, 0);
        small.destroy();
    }
}

/* A block waits for another one of its rank, which begins late, also in the call of number 0. In a
 * process of its own: parameters are read once. */
TEST(Kernels, PlanWaitsForBlock)
{
    if (getenv("TWILL_PLAN_FILE") == nullptr) {
        const PlanFile file(WAITING_PLAN);
        Child child({"--gtest_filter=Kernels.PlanWaitsForBlock"},
                    {{"TWILL_PLAN_FILE", file.path()}});

        EXPECT_EQ(child.wait(50), 0);
        return;
    }
    Shape shape;

    shape.start = 0xfffffffd;
    Small small(shape);
    late(0, 20);
    for (int call = 0; call < 5 && !HasFatalFailure(); call++)
        run_one(plain(2, BROADCAST, 1 + 999 * (size_t)call), &small, shape, "a plan: ");
    late(0, 0);
    small.destroy();
}

TEST(Kernels, Sends)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        Shape shape = draw_shape(seed);

        /* a rank has a group of threads for each peer and direction: four for each of its blocks */
        shape.size = 2 + (int)seed % 3;
        shape.placement = shape.size == 2 ? (int)seed / 3 : 0;
        shape.way = (Way)(seed % 2); /* a process's ranks are all registered, or none */
        Small small(shape);
        step(text(shape));
        run_batches(&small.world(), seed, 8, 60000, true);
        small.destroy();
    }
}

/* Some of a rank's groups begin late. What is sent to a receiver goes round the slots of its others
 * meanwhile, and a sender's others have come to messages that are posted in place of those that it
 * has not looked at. */
TEST(Kernels, LateGroups)
{
    for (int late_rank = 0; late_rank < 2; late_rank++)
        for (int from = 0; from < 2; from++) {
            Random random((uint64_t)(2 * late_rank + from));
            Batch batch = {message(&random, from, 1 - from, (size_t)90 << 10)};
            Shape shape;

            for (int i = 0; i < 30; i++)
                batch.push_back(message(&random, from, 1 - from, (size_t)random.below(6000)));
            shape.way = RINGS;
            shape.slots = 8;
            Small small(shape);
            Post post(&small.world(), &batch, &random);
            step(format("late groups of rank %d, from rank %d", late_rank, from));
            late(late_rank, 20);
            run_batch(&small.world(), &post, true, 0, false);
            late(late_rank, 0);
            small.destroy();
        }
}

} // namespace emu
