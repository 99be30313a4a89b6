/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what parameter each kernel takes, which a pointer to it does not say, and which memory
 * that names. Never knows: what they do. */
#include <cstdio>
#include <cstdlib>
#include <map>

#include "emu/memory.h" /* the system's headers come before CUDA's words */

#include "emu/device.h"

extern "C" {
#include "device/cuda/probe.h"
}
#include "device/cuda/kernels.cuh"

namespace emu
{

typedef std::function<void()> Body;
typedef Body (*Bind)(const void *kernel, const void *argument);

/* ---- what ranks are told to use of each other --------------------------------------------------
 */

/* Memory that not all devices may use: CUDA would end the kernel, and take the device from the
 * process. Here it would work, so it is looked at before. */
static void expect_usable(const struct tw_gk_call &call, int peer, uint64_t word, uint64_t bytes)
{
    const char *const mem = call.far != nullptr ? call.far[peer] : call.near[peer];
    const int device = device_of(mem);

    if (word == 0 || (word & TW_GK_REGISTERED) != 0 || peer == call.rank ||
        usable(device, (const void *)(uintptr_t)word, bytes))
        return;
    fprintf(stderr, "device %d was not let into %llu bytes at %#llx\n", device,
            (unsigned long long)bytes, (unsigned long long)word);
    abort();
}

static void look(const struct tw_gk_launch &launch)
{
    for (uint32_t r = 0; r < launch.ranks; r++) {
        const struct tw_gk_call &call = launch.call[r];
        const uint64_t size = (uint64_t)call.size;

        for (int peer = 0; peer < call.size; peer++) {
            expect_usable(call, peer, call.in_word & ~(TW_GK_APART | TW_GK_SAME),
                          call.in_stride != 0 ? call.in_stride * size : call.bytes);
            expect_usable(call, peer, call.out_word,
                          call.out_stride != 0 ? call.out_stride * size : call.bytes);
        }
    }
}

static void look(const struct tw_gk_launch_v &launch)
{
    for (uint32_t r = 0; r < launch.launch.ranks; r++) {
        const struct tw_gk_call &call = launch.launch.call[r];
        const struct tw_gk_pair *pairs = &launch.pairs[r * (uint32_t)call.size];

        for (int peer = 0; peer < call.size && call.out_word != 0; peer++)
            expect_usable(call, peer, call.out_word + pairs[peer].out_at, pairs[peer].out_bytes);
    }
}

template <class T> static void look_p2p(const T &launch)
{
    for (uint32_t i = 0; i < launch.ops; i++) {
        const struct tw_gk_op &op = launch.op[i];

        if (op.kind == TW_GK_RECV)
            expect_usable(launch.launch.call[op.place], op.peer, op.word, op.bytes);
    }
}
static void look(const struct tw_gk_launch_few &launch) { look_p2p(launch); }
static void look(const struct tw_gk_launch_p2p &launch) { look_p2p(launch); }

static void look(const struct tw_gk_launch_plan &) {} /* they use nothing of each other's */
static void look(const struct tw_gk_probe &) {}       /* it tries that of ranks themselves */

template <class T> static Body bind(const void *kernel, const void *argument)
{
    const auto run = (void (*)(T))kernel;
    std::shared_ptr<T> copy;

    if (argument == nullptr)
        return Body();
    copy = std::make_shared<T>(*(const T *)argument);
    look(*copy);
    return [=] { run(*copy); };
}

template <class T> static void add(std::map<const void *, Bind> *all, void (*kernel)(T))
{
    (*all)[(const void *)kernel] = bind<T>;
}

static std::map<const void *, Bind> list()
{
    std::map<const void *, Bind> all;

    add(&all, tw_gk_probe_kernel);
    add(&all, tw_gk_line_move);
    add(&all, tw_gk_ring_move);
    add(&all, tw_gk_move_v);
    add(&all, tw_gk_copy_begin);
    add(&all, tw_gk_copy_end);
    add(&all, tw_gk_copy_own);
    add(&all, tw_gk_p2p_few);
    add(&all, tw_gk_p2p_many);
    for (const struct tw_gk_reduce_kernels *kernels : {
#define ROW(name, type) &tw_gk_reduce_##name,
             TW_GK_TYPES(ROW)
#undef ROW
         }) {
        add(&all, kernels->line);
        add(&all, kernels->scatter);
        add(&all, kernels->all);
        add(&all, kernels->direct_scatter);
        add(&all, kernels->direct_all);
        add(&all, kernels->scatter_v);
        add(&all, kernels->plan);
    }
    return all;
}

bool kernel_bind(const void *kernel, const void *arguments, Body *body)
{
    static const std::map<const void *, Bind> all = list();
    const auto found = all.find(kernel);

    if (found == all.end())
        return false;
    *body = found->second(kernel, arguments);
    return true;
}

} // namespace emu
