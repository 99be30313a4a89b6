/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/calls.h"

namespace gpu
{

namespace
{

/* Each 32-bit word of a rank's input, of some number of a call. */
uint32_t word_of(int rank, int call)
{
    return (uint32_t)(rank + 1) * 0x01010101u + (uint32_t)call * 0x00010000u;
}

void fill(const Local &local, char *at, size_t count, int call)
{
    const On on(local.device);
    const std::vector<uint32_t> words(count, word_of(local.rank, call));

    to_device(at, words.data(), count * 4);
}

void expect_words(const Local &local, const char *at, size_t count, uint32_t value)
{
    const On on(local.device);
    std::vector<uint32_t> words(count);

    CUDA(cudaMemcpy(words.data(), at, count * 4, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        if (words[i] != value)
            throw Failure(format("rank %d: word %zu of %zu is %08x, not %08x", local.rank, i, count,
                                 words[i], value));
}

} // namespace

cudaStream_t Calls::stream(size_t i) const
{
    const auto &locals = world->locals();
    return locals[i]->device == locals[0]->device ? *locals[0]->own[0] : *locals[i]->own[0];
}

void Calls::wait_all() const
{
    for (size_t i = 0; i < here(); i++)
        wait(world->locals()[i]->device, stream(i));
}

void Calls::fill_all(int call) const
{
    for (size_t i = 0; i < here(); i++)
        fill(*world->locals()[i], in[i], count, call);
}

/* ---- sums --------------------------------------------------------------------------------------
 */

void Calls::start_sum(size_t i) const
{
    const twill_comm_t comm = world->locals()[i]->comm;
    TWILL(twill_all_reduce(in[i], out[i], count, TWILL_UINT32, TWILL_SUM, comm, stream(i)), comm);
}

void Calls::start_sums() const
{
    grouped([&] {
        for (size_t i = 0; i < here(); i++)
            start_sum(i);
    });
}

void Calls::expect_sum(int call) const
{
    uint32_t all = 0;
    for (int r = 0; r < world->size(); r++)
        all += word_of(r, call);
    for (size_t i = 0; i < here(); i++)
        expect_words(*world->locals()[i], out[i], count, all);
}

void Calls::sum(int call) const
{
    fill_all(call);
    start_sums();
    wait_all();
    expect_sum(call);
}

void Calls::sum_in_turn(int call) const
{
    fill_all(call);
    for (size_t i = 0; i < here(); i++)
        start_sum(i);
    wait_all();
    expect_sum(call);
}

/* Captures of both devices, or one of the stream that both ranks share. */
void Calls::replay(int call, int times) const
{
    const bool apart = here() == 2 && stream(0) != stream(1);
    std::vector<cudaGraphExec_t> graphs(apart ? 2 : 1);

    for (size_t i = 0; i < graphs.size(); i++) {
        const On on(world->locals()[i]->device);
        CUDA(cudaStreamBeginCapture(stream(i), cudaStreamCaptureModeThreadLocal));
    }
    start_sums();
    std::vector<cudaGraph_t> captured(graphs.size());
    for (size_t i = 0; i < graphs.size(); i++) {
        const On on(world->locals()[i]->device);
        CUDA(cudaStreamEndCapture(stream(i), &captured[i]));
    }
    for (size_t i = 0; i < graphs.size(); i++) { /* not before the last capture has ended */
        const On on(world->locals()[i]->device);
        CUDA(cudaGraphInstantiate(&graphs[i], captured[i], 0));
        CUDA(cudaGraphDestroy(captured[i]));
    }
    for (int time = 0; time < times; time++) {
        fill_all(call + time);
        for (size_t i = 0; i < graphs.size(); i++) {
            const On on(world->locals()[i]->device);
            CUDA(cudaGraphLaunch(graphs[i], stream(i)));
        }
        wait_all();
        expect_sum(call + time);
    }
    for (cudaGraphExec_t graph : graphs)
        CUDA(cudaGraphExecDestroy(graph));
}

/* ---- moves -------------------------------------------------------------------------------------
 */

void Calls::gather(int call) const
{
    fill_all(call);
    grouped([&] {
        for (size_t i = 0; i < here(); i++) {
            const twill_comm_t comm = world->locals()[i]->comm;
            TWILL(twill_all_gather(in[i], out[i], count, TWILL_UINT32, comm, stream(i)), comm);
        }
    });
    wait_all();
    for (size_t i = 0; i < here(); i++)
        for (int from = 0; from < world->size(); from++)
            expect_words(*world->locals()[i], out[i] + (size_t)from * count * 4, count,
                         word_of(from, call));
}

void Calls::exchange(int call, int bit) const
{
    fill_all(call);
    grouped([&] {
        for (size_t i = 0; i < here(); i++) {
            const twill_comm_t comm = world->locals()[i]->comm;
            const int peer = world->locals()[i]->rank ^ bit;
            TWILL(twill_send(in[i], count, TWILL_UINT32, peer, comm, stream(i)), comm);
            TWILL(twill_recv(out[i], count, TWILL_UINT32, peer, comm, stream(i)), comm);
        }
    });
    wait_all();
    for (size_t i = 0; i < here(); i++) {
        const Local &local = *world->locals()[i];
        expect_words(local, out[i], count, word_of(local.rank ^ bit, call));
    }
}

Calls calls_on(World *world, const std::vector<char *> &at, size_t bytes, size_t skip)
{
    Calls calls = {world, {}, {}, (bytes / 4 - skip) / (size_t)(world->size() + 1)};

    for (char *one : at) {
        calls.in.push_back(one + skip * 4);
        calls.out.push_back(one + (skip + calls.count) * 4);
    }
    return calls;
}

} // namespace gpu
