/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "ranks.h"

TEST(Proc, OneStateForAllReferences)
{
    Count before = count_now();
    struct tw_proc *first = nullptr;
    struct tw_proc *second = nullptr;
    ASSERT_EQ(TWILL_OK, tw_proc_get(&first)) << tw_fail_text();
    ASSERT_EQ(TWILL_OK, tw_proc_get(&second));
    EXPECT_EQ(first, second);
    EXPECT_NE(nullptr, first->nets.self);
    EXPECT_NE(nullptr, first->nets.shm);
    EXPECT_GE(first->cpu_quota, 0);
    EXPECT_GT(first->pause_ps, 0u);
    EXPECT_EQ(0, memcmp(first->id.host, first->host.id, sizeof(first->id.host)));
    Count open = count_now();
    EXPECT_GT(open.threads, before.threads);
    tw_proc_put();
    EXPECT_EQ(open.threads, count_now().threads);
    tw_proc_put();
    EXPECT_TRUE(count_returns(before));
}

TEST(Proc, EachOpeningIsAnotherIncarnation)
{
    struct tw_proc *proc = nullptr;
    struct tw_proc_id ids[2];
    for (auto &id : ids) {
        ASSERT_EQ(TWILL_OK, tw_proc_get(&proc));
        id = proc->id;
        tw_proc_put();
    }
    EXPECT_NE(0, memcmp(ids[0].nonce, ids[1].nonce, sizeof(ids[0].nonce)));
    EXPECT_EQ(0, memcmp(ids[0].host, ids[1].host, sizeof(ids[0].host)));
}

TEST(Proc, FreezesParametersAndObeysThem)
{
    set_params({{"SHM", "0"}});
    struct tw_proc *proc = nullptr;
    ASSERT_EQ(TWILL_OK, tw_proc_get(&proc));
    EXPECT_EQ(nullptr, proc->nets.shm);
    EXPECT_EQ(TWILL_ERR_USAGE, tw_param_set("SHM", "1"));
    tw_proc_put();
    set_params({});
}

/* TWILL_STAGING bounds the process, not each of its nets. */
TEST(Proc, NetsShareOneStaging)
{
    set_params({{"STAGING", "1M"}});
    struct tw_proc *proc = nullptr;
    ASSERT_EQ(TWILL_OK, tw_proc_get(&proc));
    const struct tw_rma_ops *self = tw_transport_find("self")->rma;
    const struct tw_rma_ops *shm = tw_transport_find("shm")->rma;
    void *most = nullptr, *more = nullptr;
    ASSERT_EQ(TWILL_OK, self->stage(proc->nets.self, 700 << 10, &most));
    EXPECT_EQ(TWILL_ERR_NOMEM, shm->stage(proc->nets.shm, 700 << 10, &more));
    self->unstage(proc->nets.self, most);
    EXPECT_EQ(TWILL_OK, shm->stage(proc->nets.shm, 700 << 10, &more));
    shm->unstage(proc->nets.shm, more);
    tw_proc_put();
    set_params({});
}

TEST(Proc, ABadParameterFailsAndLeavesNothing)
{
    Count before = count_now();
    struct tw_proc *proc = nullptr;
    set_params({{"ISA", "quantum"}});
    EXPECT_EQ(TWILL_ERR_INVALID, tw_proc_get(&proc));
    EXPECT_EQ(nullptr, proc);
    set_params({});
    EXPECT_TRUE(count_returns(before));
    ASSERT_EQ(TWILL_OK, tw_proc_get(&proc)) << "a later try with good parameters works";
    tw_proc_put();
}

TEST(Proc, UseAfterForkIsAnError)
{
    struct tw_proc *proc = nullptr;
    ASSERT_EQ(TWILL_OK, tw_proc_get(&proc));
    {
        Child child([](const Wire &) {
            struct tw_proc *copy = nullptr;
            EXPECT_EQ(TWILL_ERR_USAGE, tw_proc_get(&copy));
            EXPECT_NE(nullptr, strstr(tw_fail_text(), "fork"));
            twill_unique_id id;
            EXPECT_EQ(TWILL_ERR_USAGE, tw_id_create(&id));
            tw_proc_put(); /* harmless */
            return 0;
        });
        EXPECT_EQ(0, child.wait());
    }
    tw_proc_put();
    Child child([](const Wire &) {
        struct tw_proc *own = nullptr;
        EXPECT_EQ(TWILL_OK, tw_proc_get(&own)) << "a fork of a process that holds nothing is free";
        tw_proc_put();
        return 0;
    });
    EXPECT_EQ(0, child.wait());
}

static uint64_t cpu_ns()
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

TEST(Proc, IdleThreadsSleep)
{
    Child child([](const Wire &) {
        struct tw_proc *proc = nullptr;
        EXPECT_EQ(TWILL_OK, tw_proc_get(&proc));
        new_id();
        uint64_t before = cpu_ns();
        poll(nullptr, 0, 200); /* what is measured is this time */
        EXPECT_LT(cpu_ns() - before, 20000000u);
        return 0;
    });
    EXPECT_EQ(0, child.wait());
}

TEST(Proc, ManyThreadsComeAndGo)
{
    Count before = count_now();
    on_threads(8, [](int) {
        for (int i = 0; i < 50; i++) {
            struct tw_proc *proc = nullptr;
            ASSERT_EQ(TWILL_OK, tw_proc_get(&proc));
            tw_proc_put();
        }
    });
    EXPECT_TRUE(count_returns(before));
}
