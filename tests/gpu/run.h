/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a case is made of calls, streams and graphs, and judged.
 * Never knows: which case, how the communicators came to be. */
#ifndef TESTS_GPU_RUN_H
#define TESTS_GPU_RUN_H

#include <string>
#include <vector>

#include "gpu/case.h"
#include "gpu/data.h"
#include "gpu/world.h"

namespace gpu
{

/* One rank's buffers in one round. */
struct Part {
    Region in, out, scalar; /* out: none in place */
    size_t out_at = 0;      /* of the recvbuf, in the payload of the region that has it */
    const void *sendbuf = nullptr;
    void *recvbuf = nullptr;
    bool in_place = false;
};

/* A case with its buffers and what is expected of them. */
class Prepared
{
  public:
    Prepared(const Case &c, World *world);
    Part &part(size_t local, int round) { return parts_[local][(size_t)round]; }
    /* Into, out of the device, in stream order. */
    void upload(size_t local, int round, cudaStream_t stream);
    void download(size_t local, int round, cudaStream_t stream);
    /* The call of a rank. What it asks of the thread's current device it puts back. */
    void call(size_t local, int round, cudaStream_t stream);
    /* "", or what is wrong on which rank. */
    std::string judge();

  private:
    void take(size_t local, int round);
    std::pair<size_t, size_t> shape(int rank) const;
    void reserve(size_t local);

    const Case &c_;
    World *world_;
    std::vector<Round> rounds_;
    std::vector<std::vector<Part>> parts_; /* [local][round] */
};

/* Runs it and throws what goes wrong. */
void run_case(const Case &c, World *world);

} // namespace gpu

#endif
