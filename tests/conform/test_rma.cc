/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what every transport promises of remote memory. Never knows: how one keeps it. */
#include "pair.h"

extern "C" {
#include "transport/cma.h"
#include "transport/hostmem.h"
}

using namespace twtest;

namespace
{

class Rma : public testing::TestWithParam<Way>
{
};
INSTANTIATE_TEST_SUITE_P(Ways, Rma, testing::Values(kSelf, kShmThreads, kShmProcesses),
                         [](const auto &info) { return std::string(info.param.name); });

enum Kind { STAGED, HOSTMEM, PLAIN };

/* Plain memory of other processes is reached where the kernel lets us. */
std::vector<Kind> kinds(const Way &way)
{
    std::vector<Kind> all = {STAGED, HOSTMEM};
    if (strcmp(way.transport, "self") == 0 || tw_cma_here()) {
        all.push_back(PLAIN);
    }
    return all;
}

constexpr size_t kBytes = 20000;

/* Memory of side 1 that side 0 reaches. */
class Window
{
  public:
    Window(Side &side, Kind kind, size_t bytes = kBytes) : side_(side), rma_(side.transport->rma)
    {
        tw_blob blob = {};
        kind_ = kind;
        if (side.index == 1) {
            if (kind == STAGED) {
                EXPECT_EQ(TWILL_OK, rma_->stage(side.net, bytes, &ptr));
            } else if (kind == HOSTMEM) {
                EXPECT_EQ(TWILL_OK, tw_hostmem_alloc(bytes, &ptr));
            } else {
                ptr = calloc(1, bytes);
            }
            EXPECT_EQ(TWILL_OK, rma_->reg(side.net, ptr, bytes, TW_MEM_HOST, &mr))
                << tw_fail_text();
            EXPECT_EQ(TWILL_OK, rma_->mr_export(mr, &blob));
        }
        blob_ = side.swap(blob);
        if (side.index == 0) {
            EXPECT_EQ(TWILL_OK, rma_->mr_import(side.ep, &blob_, &rmem)) << tw_fail_text();
        }
        side.meet();
    }
    ~Window()
    {
        side_.meet();
        rma_->mr_release(rmem);
        rma_->unreg(mr);
        if (ptr != nullptr && kind_ == STAGED) {
            rma_->unstage(side_.net, ptr);
        } else if (ptr != nullptr && kind_ == HOSTMEM) {
            EXPECT_EQ(TWILL_OK, tw_hostmem_free(ptr));
        } else {
            free(ptr);
        }
        side_.meet();
    }
    Window(const Window &) = delete;
    unsigned char *bytes() { return static_cast<unsigned char *>(ptr); }

    void *ptr = nullptr;
    tw_mr *mr = nullptr;
    tw_rmem *rmem = nullptr;
    tw_blob blob_ = {};

  private:
    Side &side_;
    const tw_rma_ops *rma_;
    Kind kind_;
};

TEST_P(Rma, MemoryOfEachKindIsPutAndGot)
{
    for (Kind kind : kinds(GetParam())) {
        run_pair(GetParam(), [kind](Side &side) {
            Window window(side, kind);
            const tw_rma_ops *rma = side.transport->rma;
            std::vector<unsigned char> data(kBytes + 8);
            Random random(3);
            for (uint64_t i = 0; i < 100; i++) {
                size_t offset = random.below(kBytes + 1);
                size_t bytes = random.below(kBytes - offset + 1);
                if (side.index == 0) {
                    unsigned char *mine = data.data() + i % 8;
                    tw_req req = {TWILL_INPROGRESS};
                    fill(mine, bytes, i);
                    ASSERT_EQ(TWILL_OK, rma->put(side.ep, mine, window.rmem, offset, bytes, &req))
                        << tw_fail_text();
                    EXPECT_EQ(TWILL_OK, req.status);
                    ASSERT_EQ(TWILL_OK, rma->flush(side.ep));
                    memset(mine, 0, bytes);
                    ASSERT_EQ(TWILL_OK, rma->get(side.ep, mine, window.rmem, offset, bytes, &req));
                    EXPECT_TRUE(filled(mine, bytes, i));
                }
                side.meet();
                if (side.index == 1) {
                    EXPECT_TRUE(filled(window.bytes() + offset, bytes, i));
                }
                side.meet();
            }
        });
    }
}

/* Data in memory of each kind, the signal word in staging: the signal never overtakes. */
TEST_P(Rma, SignalsLandBehindPuts)
{
    for (Kind kind : kinds(GetParam())) {
        run_pair(GetParam(), [kind](Side &side) {
            constexpr size_t kBlock = 700;
            Window data(side, kind), words(side, STAGED, 128);
            const tw_rma_ops *rma = side.transport->rma;
            auto *word = reinterpret_cast<uint64_t *>(words.bytes());
            for (uint64_t i = 1; i < 500; i++) {
                if (side.index == 0) {
                    unsigned char block[kBlock];
                    tw_req req;
                    memset(block, (int)(i % 251), sizeof(block));
                    ASSERT_EQ(TWILL_OK,
                              rma->put(side.ep, block, data.rmem, 13, sizeof(block), &req));
                    ASSERT_EQ(TWILL_OK, rma->signal(side.ep, words.rmem, 64, i));
                    while (__atomic_load_n(&side.place->words[0], __ATOMIC_ACQUIRE) != i) {
                        std::this_thread::yield();
                    }
                    continue;
                }
                while (__atomic_load_n(word + 8, __ATOMIC_ACQUIRE) != i) {
                    std::this_thread::yield();
                }
                for (size_t b = 0; b < kBlock; b++) {
                    ASSERT_EQ(i % 251, data.bytes()[13 + b]) << "byte " << b << " of put " << i;
                }
                __atomic_store_n(&side.place->words[0], i, __ATOMIC_RELEASE);
            }
        });
    }
}

TEST_P(Rma, MappedMemoryIsThePeers)
{
    for (Kind kind : {STAGED, HOSTMEM}) {
        run_pair(GetParam(), [kind](Side &side) {
            Window window(side, kind);
            if (side.index == 0) {
                size_t bytes = 0;
                void *mapped = side.transport->rma->map(window.rmem, &bytes);
                ASSERT_NE(nullptr, mapped);
                EXPECT_EQ(kBytes, bytes);
                fill(static_cast<unsigned char *>(mapped), bytes, 8);
            }
            side.meet();
            if (side.index == 1) {
                EXPECT_TRUE(filled(window.ptr, kBytes, 8));
            }
        });
    }
}

TEST_P(Rma, OutOfRangeTouchesNothing)
{
    for (Kind kind : kinds(GetParam())) {
        run_pair(GetParam(), [kind](Side &side) {
            Window window(side, kind);
            const tw_rma_ops *rma = side.transport->rma;
            if (side.index != 0) {
                return;
            }
            unsigned char data[16] = {1, 2, 3};
            tw_req req = {TWILL_INPROGRESS};
            const size_t cases[][2] = {{kBytes, 1},        {kBytes + 1, 0},  {kBytes - 8, 9},
                                       {SIZE_MAX, 1},      {8, SIZE_MAX},    {SIZE_MAX - 3, 16},
                                       {SIZE_MAX / 2, 16}, {0, SIZE_MAX / 2}};
            for (const auto &c : cases) {
                EXPECT_EQ(TWILL_ERR_INVALID,
                          rma->put(side.ep, data, window.rmem, c[0], c[1], &req));
                EXPECT_EQ(TWILL_ERR_INVALID,
                          rma->get(side.ep, data, window.rmem, c[0], c[1], &req));
            }
            EXPECT_EQ(TWILL_INPROGRESS, req.status);
            EXPECT_EQ(TWILL_OK, rma->put(side.ep, data, window.rmem, kBytes, 0, &req));
            if (kind == PLAIN) {
                return;
            }
            EXPECT_EQ(TWILL_ERR_INVALID, rma->signal(side.ep, window.rmem, 4, 1));
            EXPECT_EQ(TWILL_ERR_INVALID, rma->signal(side.ep, window.rmem, kBytes - 4, 1));
            EXPECT_EQ(TWILL_ERR_INVALID, rma->signal(side.ep, window.rmem, kBytes, 1));
            EXPECT_EQ(TWILL_ERR_INVALID, rma->signal(side.ep, window.rmem, SIZE_MAX - 7, 1));
        });
    }
}

TEST_P(Rma, StagedMemoryIsZeroedAndBounded)
{
    run_pair(GetParam(), [](Side &side) {
        const tw_rma_ops *rma = side.transport->rma;
        void *ptr = nullptr;
        for (int i = 0; i < 2; i++) {
            ASSERT_EQ(TWILL_OK, rma->stage(side.net, 5000, &ptr));
            for (int b = 0; b < 5000; b++) {
                ASSERT_EQ(0, static_cast<char *>(ptr)[b]);
            }
            memset(ptr, 1, 5000);
            rma->unstage(side.net, ptr);
        }
        void *none = nullptr;
        EXPECT_EQ(TWILL_ERR_NOMEM, rma->stage(side.net, 1ull << 40, &none));
        EXPECT_EQ(TWILL_ERR_NOMEM, rma->stage(side.net, SIZE_MAX, &none));
        EXPECT_EQ(nullptr, none);
    });
}

TEST_P(Rma, NonsenseIsNotRegistered)
{
    run_pair(GetParam(), [](Side &side) {
        const tw_rma_ops *rma = side.transport->rma;
        tw_mr *mr = nullptr;
        char here[64];
        EXPECT_EQ(TWILL_ERR_INVALID, rma->reg(side.net, nullptr, 8, TW_MEM_HOST, &mr));
        EXPECT_EQ(TWILL_ERR_INVALID, rma->reg(side.net, here, 0, TW_MEM_HOST, &mr));
        EXPECT_EQ(TWILL_ERR_INVALID, rma->reg(side.net, here, SIZE_MAX, TW_MEM_HOST, &mr));
        EXPECT_EQ(TWILL_ERR_UNSUPPORTED, rma->reg(side.net, here, 8, TW_MEM_CUDA, &mr));
        EXPECT_EQ(nullptr, mr);
        void *staged;
        ASSERT_EQ(TWILL_OK, rma->stage(side.net, 64, &staged));
        if (strcmp(side.transport->net->name, "shm") == 0) {
            EXPECT_EQ(TWILL_ERR_INVALID, rma->reg(side.net, staged, 64u << 20, TW_MEM_HOST, &mr));
        }
        rma->unstage(side.net, staged);
    });
}

TEST_P(Rma, WithoutCmaPlainMemoryIsUnsupportedBetweenProcesses)
{
    PairOptions options;
    options.allow_cma = false;
    run_pair(
        GetParam(),
        [](Side &side) {
            char here[64];
            tw_mr *mr = nullptr;
            bool self = strcmp(side.transport->net->name, "self") == 0;
            EXPECT_EQ(self ? TWILL_OK : TWILL_ERR_UNSUPPORTED,
                      side.transport->rma->reg(side.net, here, sizeof(here), TW_MEM_HOST, &mr));
            if (!self) {
                EXPECT_NE(nullptr, strstr(tw_fail_text(), "CMA is off")) << tw_fail_text();
            }
            side.transport->rma->unreg(mr);
        },
        options);
}

TEST_P(Rma, WhatIsDeregisteredCannotBeImported)
{
    run_pair(GetParam(), [](Side &side) {
        const tw_rma_ops *rma = side.transport->rma;
        tw_blob blob = {};
        void *ptr = nullptr;
        if (side.index == 1) {
            tw_mr *mr;
            ASSERT_EQ(TWILL_OK, tw_hostmem_alloc(4096, &ptr));
            ASSERT_EQ(TWILL_OK, rma->reg(side.net, ptr, 4096, TW_MEM_HOST, &mr));
            ASSERT_EQ(TWILL_OK, rma->mr_export(mr, &blob));
            rma->unreg(mr);
        }
        blob = side.swap(blob);
        if (side.index == 0) {
            tw_rmem *rmem = nullptr;
            EXPECT_EQ(TWILL_ERR_PEER, rma->mr_import(side.ep, &blob, &rmem));
            EXPECT_EQ(nullptr, rmem);
        }
        side.meet();
        EXPECT_EQ(TWILL_OK, tw_hostmem_free(ptr));
    });
}

/* Two processes only: a process that frees what it still has mapped elsewhere keeps that too. */
TEST_P(Rma, AnImportOutlivesTheOwnersFree)
{
    if (strcmp(GetParam().transport, "self") == 0) {
        SUCCEED(); /* the same address: freed is freed */
        return;
    }
    run_pair(GetParam(), [](Side &side) {
        const tw_rma_ops *rma = side.transport->rma;
        Window window(side, HOSTMEM);
        if (side.index == 1) {
            fill(window.bytes(), kBytes, 4);
            EXPECT_EQ(TWILL_OK, tw_hostmem_free(window.ptr));
            window.ptr = nullptr;
        }
        side.meet();
        if (side.index == 0) {
            std::vector<unsigned char> data(kBytes);
            tw_req req;
            ASSERT_EQ(TWILL_OK, rma->get(side.ep, data.data(), window.rmem, 0, kBytes, &req));
            EXPECT_TRUE(filled(data.data(), kBytes, 4));
        }
    });
}

TEST_P(Rma, DamagedBlobsDoNoHarm)
{
    for (Kind kind : {STAGED, HOSTMEM}) {
        run_pair(GetParam(), [kind](Side &side) {
            const tw_rma_ops *rma = side.transport->rma;
            Window window(side, kind, 4096);
            if (side.index != 0) {
                side.meet(); /* leaving closes a descriptor of the other side too */
                return;
            }
            const std::set<std::string> before = descriptors();
            for (uint32_t bit = 0; bit < window.blob_.bytes * 8; bit += kind == STAGED ? 1 : 5) {
                tw_blob damaged = window.blob_;
                tw_rmem *rmem = nullptr;
                damaged.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
                if (rma->mr_import(side.ep, &damaged, &rmem) == TWILL_OK) {
                    size_t bytes;
                    volatile unsigned char *mapped =
                        static_cast<unsigned char *>(rma->map(rmem, &bytes));
                    if (mapped != nullptr && bytes > 0) { /* all of it can be touched */
                        (void)mapped[0];
                        (void)mapped[bytes - 1];
                    }
                    rma->mr_release(rmem);
                }
            }
            /* threads of the other side have descriptors of their own; one of the connecting may
             * still be open before, but nothing may come */
            if (GetParam().processes) {
                for (const std::string &descriptor : descriptors())
                    EXPECT_EQ(before.count(descriptor), 1u) << descriptor;
            }
            side.meet();
        });
    }
}

} // namespace
