/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: batches of messages between ranks on devices, with their buffers and how they are run.
 * Never knows: which batches there are, what else is called. */
#ifndef TESTS_GPU_P2P_BATCH_H
#define TESTS_GPU_P2P_BATCH_H

#include <memory>
#include <vector>

#include "gpu/case.h"
#include "gpu/world.h"

namespace gpu
{

struct Message {
    int from, to;
    twill_type_t type;
    size_t width, count;
    size_t in_at, out_at; /* in the sender's and the receiver's memory */
    uint64_t salt;
    size_t bytes() const { return width * count; }
};
typedef std::vector<Message> Batch;

/* Type and salt are drawn. */
Message message(Random *random, int from, int to, size_t bytes);
/* Everybody's, drawn alike in all processes. */
Batch draw_batch(Random *random, int size, size_t most);

/* A batch, and what each rank of this process holds for it: the bytes that it sends, and then those
 * that it takes. */
class Post
{
  public:
    Post(World *world, Batch *batch, Random *random);
    /* The rank's calls, those of a pair in their order. */
    void call(size_t local, int order);
    void call_on(size_t local, int order, cudaStream_t sends, cudaStream_t takes);
    /* The outputs of a process's only rank are registered, until leave: all processes do it. */
    void enlist();
    void leave();
    /* Outputs as they were. */
    void clear();
    void judge();

  private:
    World *world_;
    const Batch *batch_;
    std::vector<size_t> in_bytes_, out_bytes_;      /* by rank */
    std::vector<std::unique_ptr<Memory>> in_, out_; /* by local */
    twill_reg_t reg_ = nullptr;
};

void wait_all(World *world);
/* In one group of this thread, or on a thread for each rank; and judged. */
void run_batch(World *world, Post *post, bool threads, int order, bool two_streams);
/* Drawn ones, the same in every process of the world. */
void run_batches(World *world, uint64_t seed, int count, size_t most, bool may_thread);

} // namespace gpu

#endif
