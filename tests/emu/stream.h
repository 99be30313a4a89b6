/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what streams, events and graphs are made of, for stream.cc and graph.cc.
 * Never knows: what the work is. */
#ifndef TESTS_EMU_STREAM_H
#define TESTS_EMU_STREAM_H

#include <mutex>
#include <set>

#include "emu/runtime.h"

namespace emu
{

struct Node {
    Job job;
    std::vector<size_t> after;
};

/* A graph that is being captured from streams. */
struct Capture {
    uint64_t id;
    std::vector<Node> nodes;
    bool invalid = false, over = false;
};
typedef std::shared_ptr<Capture> CaptureRef;

} // namespace emu

struct CUstream_st {
    int device;
    bool blocking; /* it and the device's default stream wait for each other */
    uint64_t id;
    emu::OpRef last;
    emu::CaptureRef capture;           /* NULL: none */
    std::vector<size_t> tail;          /* nodes that the next one comes after */
    std::vector<cudaGraphNode_t> told; /* the same, as was last asked */
};
struct CUevent_st {
    int device;
    emu::OpRef op;
    emu::CaptureRef capture;
    std::vector<size_t> tail;
};
struct CUgraph_st {
    std::vector<emu::Node> nodes;
};
struct CUgraphExec_st {
    std::vector<emu::Node> nodes;
};

namespace emu
{

struct Device {
    CUstream_st normal{}; /* the default stream */
    std::set<CUstream_st *> streams;
    std::vector<OpRef> left; /* by streams that are gone */
};
struct Streams {
    std::mutex lock;
    Device devices[DEVICES];
    uint64_t ids = 0;
    Streams();
};
extern Streams &streams; /* never destroyed: threads are at work when the process ends */
typedef std::lock_guard<std::mutex> Guard;

/* All of these under the lock. */

/* NULL: there is no such stream. */
CUstream_st *stream_find(cudaStream_t stream);
/* What the next operation of a stream comes after. */
std::vector<OpRef> stream_before(const CUstream_st *stream);
/* Nothing of the default stream can be known while one that waits for it is captured. */
bool stream_implicit(const CUstream_st *stream);
/* For a call that no captured stream may see: why not. stream NULL: there is none */
cudaError_t stream_uncaptured(CUstream_st *stream);
cudaError_t stream_submit(CUstream_st *stream, const Job &job);
cudaError_t event_record(cudaEvent_t event, CUstream_st *stream);

} // namespace emu

#endif
