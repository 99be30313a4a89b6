/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/run.h"

#include <algorithm>
#include <map>

namespace gpu
{

namespace
{

/* The ranks of one device, whose calls are captured together: one kernel may serve them all. */
struct Captured {
    int device = 0;
    cudaStream_t leader = nullptr, replay = nullptr;
    std::vector<size_t> locals;
    std::vector<cudaStream_t> others; /* that ranks use beside the leader's */
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
};

class Runner
{
  public:
    Runner(const Case &c, World *world) : c_(c), world_(world), prepared_(c, world) {}
    ~Runner();
    void run();

  private:
    size_t count() const { return world_->locals().size(); }
    Local &local(size_t i) { return *world_->locals()[i]; }
    cudaStream_t stream_of(size_t i, int round);
    bool is_replay(int round) const;
    void one_after_another(int first, int rounds);
    void side_by_side();
    void rounds_mixed();
    void round_plain(int round);
    void round_replay(int round);
    void call_all(int round);
    void capture();
    void capture_begin(Captured *captured);
    void capture_end(Captured *captured);
    void await(int round);
    void join(cudaStream_t from, cudaStream_t to);

    const Case &c_;
    World *world_;
    Prepared prepared_;
    std::map<int, Captured> captured_; /* by device; empty: not yet */
};

Runner::~Runner()
{
    for (auto &one : captured_) {
        if (one.second.exec != nullptr)
            (void)cudaGraphExecDestroy(one.second.exec);
        if (one.second.graph != nullptr)
            (void)cudaGraphDestroy(one.second.graph);
    }
}

cudaStream_t Runner::stream_of(size_t i, int round)
{
    Local &at = local(i);
    const size_t kinds = c_.how == PLAIN ? 4 : 3; /* the default stream cannot be captured */

    switch (c_.streams) {
    case DEFAULT:
        return nullptr;
    case SHARED:
        return world_->shared(at.device);
    case OWN:
        return *at.own[c_.seed % 2];
    default:
        break;
    }
    switch (mix(c_.seed + (uint64_t)(at.rank * 8 + round)) % kinds) {
    case 0:
        return *at.own[0];
    case 1:
        return *at.own[1];
    case 2:
        return world_->shared(at.device);
    default:
        return nullptr;
    }
}

bool Runner::is_replay(int round) const
{
    return c_.how == GRAPH || (c_.how == MIXED && (c_.seed / 2 + (uint64_t)round) % 2 == 0);
}

void Runner::await(int round)
{
    for (size_t i = 0; i < count(); i++)
        wait(local(i).device, stream_of(i, round));
}

/* ---- plain calls -------------------------------------------------------------------------------
 */

/* Rounds from `first` on, all of whose calls are one group. */
void Runner::one_after_another(int first, int rounds)
{
    for (int round = first; round < first + rounds; round++)
        for (size_t i = 0; i < count(); i++)
            prepared_.upload(i, round, stream_of(i, round));
    grouped([&] {
        for (int round = first; round < first + rounds; round++)
            for (size_t k = 0; k < count(); k++) {
                const size_t i = (k + (size_t)c_.first) % count();
                prepared_.call(i, round, stream_of(i, round));
            }
    });
    for (int round = first; round < first + rounds; round++)
        for (size_t i = 0; i < count(); i++)
            prepared_.download(i, round, stream_of(i, round));
}

/* A thread for each rank, which nothing else brings together. */
void Runner::side_by_side()
{
    const auto body = [this](int thread) {
        const size_t i = (size_t)thread;

        for (int round = 0; round < c_.rounds; round++) {
            const cudaStream_t stream = stream_of(i, round);

            prepared_.upload(i, round, stream);
            prepared_.call(i, round, stream);
            prepared_.download(i, round, stream);
            if (c_.await_each)
                wait(local(i).device, stream);
        }
    };
    on_threads((int)count(), body, [this] { world_->abort(); });
}

/* The call of every rank, by one thread or by threads. */
void Runner::call_all(int round)
{
    if (c_.threads) {
        on_threads((int)count(),
                   [&](int i) { prepared_.call((size_t)i, round, stream_of((size_t)i, round)); },
                   [this] { world_->abort(); });
        return;
    }
    grouped([&] {
        for (size_t k = 0; k < count(); k++) {
            const size_t i = (k + (size_t)c_.first) % count();
            prepared_.call(i, round, stream_of(i, round));
        }
    });
}

/* ---- graphs ------------------------------------------------------------------------------------
 */

/* `to` goes on when what `from` has now is done; both of the current device. */
void Runner::join(cudaStream_t from, cudaStream_t to)
{
    cudaEvent_t event;

    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CUDA(cudaEventRecord(event, from));
    CUDA(cudaStreamWaitEvent(to, event, 0));
    CUDA(cudaEventDestroy(event)); /* once it is no longer needed */
}

void Runner::capture_begin(Captured *captured)
{
    const On on(captured->device);

    CUDA(cudaStreamBeginCapture(captured->leader, c_.capture == RELAXED
                                                      ? cudaStreamCaptureModeRelaxed
                                                      : cudaStreamCaptureModeThreadLocal));
    for (cudaStream_t other : captured->others)
        join(captured->leader, other);
}

void Runner::capture_end(Captured *captured)
{
    const On on(captured->device);

    for (cudaStream_t other : captured->others)
        join(other, captured->leader);
    CUDA(cudaStreamEndCapture(captured->leader, &captured->graph));
    /* the thread's other streams may still be captured, which must not forbid this */
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
    CUDA(cudaGraphInstantiateWithFlags(&captured->exec, captured->graph, 0));
    CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
}

/* A graph for each device, of its ranks' calls in the streams of round 0. */
void Runner::capture()
{
    for (size_t i = 0; i < count(); i++) {
        Local &at = local(i);
        Captured &captured = captured_[at.device];
        const cudaStream_t stream = stream_of(i, 0);

        if (captured.locals.empty()) {
            captured.device = at.device;
            captured.leader = stream;
            captured.replay =
                c_.seed / 8 % 2 == 0 ? stream : (cudaStream_t)*at.own[c_.seed / 16 % 2];
        } else if (stream != captured.leader &&
                   std::find(captured.others.begin(), captured.others.end(), stream) ==
                       captured.others.end()) {
            captured.others.push_back(stream);
        }
        captured.locals.push_back(i);
    }
    for (auto &one : captured_)
        capture_begin(&one.second);
    call_all(0);
    for (auto &one : captured_)
        capture_end(&one.second);
}

/* Graphs are the caller's to order: a round begins behind the tails of the one before. */
void Runner::round_replay(int round)
{
    if (captured_.empty())
        capture();
    for (auto &one : captured_) {
        const On on(one.second.device);

        for (size_t i : one.second.locals) {
            if (local(i).has_tail)
                CUDA(cudaStreamWaitEvent(one.second.replay, local(i).tail, 0));
            prepared_.upload(i, round, one.second.replay);
        }
    }
    for (auto &one : captured_) {
        const On on(one.second.device);
        CUDA(cudaGraphLaunch(one.second.exec, one.second.replay));
    }
    for (auto &one : captured_) {
        const On on(one.second.device);

        for (size_t i : one.second.locals) {
            prepared_.download(i, round, one.second.replay);
            CUDA(cudaEventRecord(local(i).tail, one.second.replay));
            local(i).has_tail = true;
        }
        if (c_.await_each)
            wait(one.second.device, one.second.replay);
    }
}

void Runner::round_plain(int round)
{
    for (size_t i = 0; i < count(); i++) {
        const On on(local(i).device);

        if (local(i).has_tail)
            CUDA(cudaStreamWaitEvent(stream_of(i, round), local(i).tail, 0));
        prepared_.upload(i, round, stream_of(i, round));
    }
    call_all(round);
    for (size_t i = 0; i < count(); i++) {
        const On on(local(i).device);

        prepared_.download(i, round, stream_of(i, round));
        CUDA(cudaEventRecord(local(i).tail, stream_of(i, round)));
        local(i).has_tail = true;
    }
    if (c_.await_each)
        await(round);
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

void Runner::rounds_mixed()
{
    for (int round = 0; round < c_.rounds; round++) {
        if (is_replay(round))
            round_replay(round);
        else
            round_plain(round);
    }
    for (size_t i = 0; i < count(); i++)
        local(i).has_tail = false; /* all has ended before the next case */
}

void Runner::run()
{
    if (c_.how != PLAIN)
        rounds_mixed();
    else if (c_.threads)
        side_by_side();
    else if (c_.one_group && !c_.await_each)
        one_after_another(0, c_.rounds);
    else
        for (int round = 0; round < c_.rounds; round++) {
            one_after_another(round, 1);
            if (c_.await_each)
                await(round);
        }
    for (int round = 0; round < c_.rounds; round++)
        await(round);
    for (auto &one : captured_)
        wait(one.second.device, one.second.replay);
    world_->healthy();
    const std::string wrong = prepared_.judge();
    if (!wrong.empty())
        throw Failure(wrong);
}

} // namespace

void run_case(const Case &c, World *world)
{
    Runner runner(c, world);
    try {
        runner.run();
    } catch (...) {
        world->abort(); /* kernels that wait for each other would never end */
        throw;
    }
}

} // namespace gpu
