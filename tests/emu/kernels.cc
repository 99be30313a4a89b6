/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what parameter each kernel takes, which a pointer to it does not say.
 * Never knows: what they do. */
#include <map>

#include "emu/runtime.h" /* the system's headers come before CUDA's words */

#include "emu/device.h"

#include "device/cuda/kernels.cuh"

namespace emu
{

typedef std::function<void()> Body;
typedef Body (*Bind)(const void *kernel, const void *argument);

template <class T> static Body bind(const void *kernel, const void *argument)
{
    const auto run = (void (*)(T))kernel;
    std::shared_ptr<T> copy;

    if (argument == nullptr)
        return Body();
    copy = std::make_shared<T>(*(const T *)argument);
    return [=] { run(*copy); };
}

template <class T> static void add(std::map<const void *, Bind> *all, void (*kernel)(T))
{
    (*all)[(const void *)kernel] = bind<T>;
}

static std::map<const void *, Bind> list()
{
    std::map<const void *, Bind> all;

    add(&all, tw_gk_line_move);
    add(&all, tw_gk_ring_move);
    add(&all, tw_gk_move_v);
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
