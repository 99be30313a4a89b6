/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: two connected sides over a transport, the parameter of the suite.
 * Never knows: what is tested. */
#ifndef TW_TESTS_CONFORM_PAIR_H
#define TW_TESTS_CONFORM_PAIR_H

#include "shared.h"

extern "C" {
#include "base/status.h"
}

namespace twtest
{

/* What every transport is run over. */
struct Way {
    const char *name;
    const char *transport;
    bool processes; /* else threads: each with a net of its own, but for self */
};

inline std::ostream &operator<<(std::ostream &out, const Way &way) { return out << way.name; }

constexpr Way kSelf = {"self_threads", "self", false};
constexpr Way kShmThreads = {"shm_threads", "shm", false};
constexpr Way kShmProcesses = {"shm_processes", "shm", true};

struct PairPlace {
    Meeting meeting;
    tw_proc_id ids[2];
    tw_blob addresses[2];
    tw_blob blobs[2];
    uint64_t words[8];
};

const uint8_t kKey[TW_KEY_BYTES] = {9, 8, 7};

struct PairOptions {
    uint64_t staging_bytes = 8 << 20;
    bool allow_cma = true;
};

class Side
{
  public:
    int index;
    PairPlace *place;
    const tw_transport *transport;
    tw_net *net = nullptr;
    tw_listener *listener = nullptr;
    tw_ep *ep = nullptr;
    tw_proc_id id = {};

    Side(int index_, PairPlace *place_, const tw_transport *transport_)
        : index(index_), place(place_), transport(transport_)
    {
    }

    void open(const PairOptions &options)
    {
        tw_net_config config = {};
        config.self = id = fresh_id();
        config.staging_bytes = options.staging_bytes;
        config.allow_cma = options.allow_cma;
        ASSERT_EQ(TWILL_OK, transport->net->open(&config, &net)) << tw_fail_text();
    }
    void connect()
    {
        place->ids[index] = id;
        ASSERT_EQ(TWILL_OK, transport->net->listen(net, kKey, &listener, &place->addresses[index]));
        meet();
        tw_sock_wait wait = wait_for(20 * TW_NS_S);
        ASSERT_EQ(TWILL_OK, transport->net->ep_get(net, &place->ids[1 - index],
                                                   &place->addresses[1 - index], kKey, &wait, &ep))
            << tw_fail_text();
        meet();
    }
    void disconnect()
    {
        meet();
        transport->net->ep_put(ep);
        transport->net->unlisten(listener);
        meet();
    }
    void meet() { place->meeting.meet(); }
    /* Hands mine to the other side and returns its own. */
    tw_blob swap(const tw_blob &mine)
    {
        place->blobs[index] = mine;
        meet();
        tw_blob theirs = place->blobs[1 - index];
        meet();
        return theirs;
    }
    uint64_t staging_used()
    {
        void *any = nullptr;
        if (transport->rma->stage(net, 64, &any) == TWILL_OK) { /* sweeps */
            transport->rma->unstage(net, any);
        }
        uint64_t used = 0, limit = 0;
        tw_net_staging(net, &used, &limit);
        return used;
    }
};

using Body = std::function<void(Side &)>;

/* Two sides, connected, run body each. */
inline void run_pair(const Way &way, const Body &body, const PairOptions &options = PairOptions())
{
    Shared<PairPlace> place;
    place->meeting.init(2);
    const tw_transport *transport = tw_transport_find(way.transport);
    ASSERT_NE(nullptr, transport);
    bool own_net = strcmp(way.transport, "self") != 0;
    Side owner(0, &*place, transport);
    if (!own_net) {
        owner.open(options);
    }
    std::vector<std::function<void()>> sides;
    for (int i = 0; i < 2; i++) {
        sides.push_back([&, i] {
            Side side(i, &*place, transport);
            if (own_net) {
                side.open(options);
            } else {
                side.net = owner.net;
                side.id = owner.id;
            }
            side.connect();
            body(side);
            side.disconnect();
            if (own_net) {
                transport->net->close(side.net);
            }
        });
    }
    if (way.processes) {
        run_processes(sides);
    } else {
        run_threads(sides);
    }
    if (!own_net) {
        transport->net->close(owner.net);
    }
}

/* A FIFO from side 0 to side 1, seen by one of them. */
class Pipe
{
  public:
    Pipe(Side &side, size_t bytes, int sender = 0) : ops_(side.transport->fifo)
    {
        tw_blob blob = {};
        if (side.index != sender) {
            EXPECT_EQ(TWILL_OK, ops_->create(side.ep, bytes, &fifo, &blob)) << tw_fail_text();
        }
        tw_blob theirs = side.swap(blob);
        if (side.index == sender) {
            EXPECT_EQ(TWILL_OK, ops_->attach(side.ep, &theirs, &fifo)) << tw_fail_text();
        }
    }
    ~Pipe() { ops_->destroy(fifo); }
    Pipe(const Pipe &) = delete;

    enum twill_status layout(uint32_t subs, uint32_t depth)
    {
        return ops_->layout(fifo, subs, depth);
    }
    void layout_wait(uint32_t subs, uint32_t depth)
    {
        enum twill_status status;
        while ((status = layout(subs, depth)) == TWILL_ERR_AGAIN) {
            std::this_thread::yield();
        }
        ASSERT_EQ(TWILL_OK, status);
    }
    enum twill_status try_send(uint32_t sub, const void *data, uint32_t bytes, uint64_t header)
    {
        void *slot;
        enum twill_status status = ops_->reserve(fifo, sub, &slot);
        if (status == TWILL_OK) {
            memcpy(slot, data, bytes);
            ops_->commit(fifo, sub, bytes, header);
        }
        return status;
    }
    void send(uint32_t sub, const void *data, uint32_t bytes, uint64_t header)
    {
        enum twill_status status;
        while ((status = try_send(sub, data, bytes, header)) == TWILL_ERR_AGAIN) {
            std::this_thread::yield();
        }
        ASSERT_EQ(TWILL_OK, status);
    }
    enum twill_status peek(uint32_t sub, tw_msg *msg) { return ops_->peek(fifo, sub, msg); }
    void release(uint32_t sub) { ops_->release(fifo, sub); }
    /* Waits for the next message. */
    tw_msg await(uint32_t sub)
    {
        tw_msg msg = {};
        enum twill_status status;
        while ((status = peek(sub, &msg)) == TWILL_ERR_AGAIN) {
            std::this_thread::yield();
        }
        EXPECT_EQ(TWILL_OK, status) << tw_fail_text();
        return msg;
    }

    tw_fifo *fifo = nullptr;

  private:
    const tw_fifo_ops *ops_;
};

/* Reproducible bytes: splitmix64. */
class Random
{
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next()
    {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t bound) { return next() % bound; }

  private:
    uint64_t state_;
};

inline void fill(unsigned char *data, size_t bytes, uint64_t seed)
{
    Random random(seed);
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (unsigned char)random.next();
    }
}

inline bool filled(const void *data, size_t bytes, uint64_t seed)
{
    Random random(seed);
    for (size_t i = 0; i < bytes; i++) {
        if (static_cast<const unsigned char *>(data)[i] != (unsigned char)random.next()) {
            return false;
        }
    }
    return true;
}

/* How long a test may take when it scales with time. */
inline uint64_t budget_ns(uint64_t default_ms)
{
    const char *text = getenv("TW_TEST_BUDGET");
    return text != nullptr ? strtoull(text, nullptr, 10) * TW_NS_S : default_ms * TW_NS_MS;
}

} // namespace twtest

#endif
