/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how processes come to have one endpoint for each other, and lose it.
 * Never knows: what runs over an endpoint. */
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <set>

#include "pair.h"

using namespace twtest;

namespace
{

const tw_transport *shm() { return tw_transport_find("shm"); }

std::atomic<int> lost_calls;
void count_lost(void *, const tw_proc_id *) { lost_calls++; }

/* A net as one process has it. */
struct Net {
    tw_net *net = nullptr;
    tw_proc_id id = {};

    explicit Net(tw_proc_id id_ = fresh_id()) : id(id_)
    {
        tw_net_config config = {};
        config.self = id;
        config.staging_bytes = 1 << 20;
        config.on_peer_lost = count_lost;
        EXPECT_EQ(TWILL_OK, shm()->net->open(&config, &net)) << tw_fail_text();
    }
    ~Net() { close(); }
    void close()
    {
        shm()->net->close(net);
        net = nullptr;
    }
    Net(const Net &) = delete;
};

struct Door {
    tw_listener *listener = nullptr;
    tw_blob address = {};

    Door(Net &net, const uint8_t *key)
    {
        EXPECT_EQ(TWILL_OK, shm()->net->listen(net.net, key, &listener, &address));
    }
    ~Door() { shm()->net->unlisten(listener); }
    Door(const Door &) = delete;
};

enum twill_status get(Net &net, const Net &peer, const tw_blob &address, const uint8_t *key,
                      tw_ep **ep, uint64_t ns = 20 * TW_NS_S, int cancel_fd = -1)
{
    tw_sock_wait wait = {tw_deadline_ns(ns), cancel_fd};
    return shm()->net->ep_get(net.net, &peer.id, &address, key, &wait, ep);
}

/* An id that sorts before or behind all fresh ones: who connects is then known. */
tw_proc_id edge_id(uint8_t first)
{
    tw_proc_id id = fresh_id();
    id.nonce[0] = first;
    return id;
}
tw_proc_id low_id() { return edge_id(0); }
tw_proc_id high_id() { return edge_id(255); }

TEST(Ep, ManyThreadsGetOneEachWay)
{
    int before = open_descriptors();
    for (int round = 0; round < 20; round++) {
        Net a, b;
        constexpr int kThreads = 8;
        std::vector<std::unique_ptr<Door>> doors_a, doors_b;
        std::vector<std::vector<uint8_t>> keys;
        for (int i = 0; i < kThreads; i++) { /* each communicator has its key and listeners */
            keys.emplace_back(TW_KEY_BYTES, (uint8_t)(i + 1));
            doors_a.push_back(std::make_unique<Door>(a, keys.back().data()));
            doors_b.push_back(std::make_unique<Door>(b, keys.back().data()));
        }
        tw_ep *of_a[kThreads] = {}, *of_b[kThreads] = {};
        std::vector<std::function<void()>> sides;
        for (int i = 0; i < kThreads; i++) {
            sides.push_back([&, i] {
                EXPECT_EQ(TWILL_OK,
                          get(a, b, doors_b[(size_t)i]->address, keys[(size_t)i].data(), &of_a[i]));
            });
            sides.push_back([&, i] {
                EXPECT_EQ(TWILL_OK,
                          get(b, a, doors_a[(size_t)i]->address, keys[(size_t)i].data(), &of_b[i]));
            });
        }
        run_threads(sides);
        for (int i = 0; i < kThreads; i++) {
            EXPECT_EQ(of_a[0], of_a[i]);
            EXPECT_EQ(of_b[0], of_b[i]);
            EXPECT_EQ(TWILL_OK, shm()->net->ep_status(of_a[i]));
            shm()->net->ep_put(of_a[i]);
            shm()->net->ep_put(of_b[i]);
        }
    }
    EXPECT_EQ(before, open_descriptors());
}

TEST(Ep, AMeshOfNetsConnects)
{
    int before = open_descriptors();
    {
        constexpr size_t kNets = 6;
        std::vector<std::unique_ptr<Net>> nets;
        std::vector<std::unique_ptr<Door>> doors;
        for (size_t i = 0; i < kNets; i++) {
            nets.push_back(std::make_unique<Net>());
            doors.push_back(std::make_unique<Door>(*nets[i], kKey));
        }
        std::vector<std::function<void()>> sides;
        for (size_t i = 0; i < kNets; i++) {
            sides.push_back([&, i] {
                for (size_t p = 0; p < kNets; p++) { /* one behind the other: must not lock up */
                    tw_ep *ep = nullptr;
                    if (p != i) {
                        EXPECT_EQ(TWILL_OK, get(*nets[i], *nets[p], doors[p]->address, kKey, &ep));
                        shm()->net->ep_put(ep);
                    }
                }
            });
        }
        run_threads(sides);
        doors.clear();
    }
    EXPECT_EQ(before, open_descriptors());
}

TEST(Ep, StaysForTheNextUser)
{
    Net a(low_id()), b(high_id());
    tw_ep *first = nullptr, *second = nullptr;
    {
        Door door(b, kKey);
        ASSERT_EQ(TWILL_OK, get(a, b, door.address, kKey, &first));
        shm()->net->ep_put(first);
    }
    tw_blob nowhere = {4, {'n', 'o', 'n', 'e'}};
    ASSERT_EQ(TWILL_OK, get(a, b, nowhere, kKey, &second)); /* needs no connection any more */
    EXPECT_EQ(first, second);
    shm()->net->ep_put(second);
}

TEST(Ep, WrongKeyIsRefusedAndTheRightOneStillWorks)
{
    Net a(low_id()), b(high_id());
    Door door(b, kKey), back(a, kKey);
    const uint8_t wrong[TW_KEY_BYTES] = {1};
    tw_ep *ep = nullptr, *other = nullptr;
    EXPECT_EQ(TWILL_ERR_AUTH, get(a, b, door.address, wrong, &ep));
    EXPECT_EQ(nullptr, ep);
    EXPECT_EQ(TWILL_ERR_TIMEOUT, get(b, a, back.address, kKey, &other, 50 * TW_NS_MS));
    EXPECT_EQ(TWILL_OK, get(a, b, door.address, kKey, &ep));
    EXPECT_EQ(TWILL_OK, get(b, a, back.address, kKey, &other));
    shm()->net->ep_put(ep);
    shm()->net->ep_put(other);
}

/* One thread's listener is gone; the connection comes about by another one's. */
TEST(Ep, AnotherAddressHelps)
{
    Net a(low_id()), b(high_id());
    tw_blob gone;
    {
        Door door(b, kKey);
        gone = door.address;
    }
    tw_ep *ep = nullptr, *other = nullptr;
    EXPECT_EQ(TWILL_ERR_PEER, get(a, b, gone, kKey, &ep)) << "nobody listens there";
    std::thread waiting([&] { EXPECT_EQ(TWILL_OK, get(a, b, gone, kKey, &ep)); });
    Door door(b, kKey);
    EXPECT_EQ(TWILL_OK, get(a, b, door.address, kKey, &other));
    waiting.join();
    EXPECT_EQ(ep, other);
    shm()->net->ep_put(ep);
    shm()->net->ep_put(other);
}

TEST(Ep, WaitingCanBeCancelledAndEnds)
{
    Net a(low_id()), b(high_id());
    Door door(a, kKey);
    tw_ep *ep = nullptr;
    int cancel = eventfd(0, 0);
    std::thread waiting([&] {
        EXPECT_EQ(TWILL_ERR_ABORTED, get(b, a, door.address, kKey, &ep, TW_NEVER / 2, cancel));
    });
    uint64_t one = 1;
    EXPECT_EQ(8, write(cancel, &one, 8));
    waiting.join();
    close(cancel);
    EXPECT_EQ(TWILL_ERR_TIMEOUT, get(b, a, door.address, kKey, &ep, 20 * TW_NS_MS));
}

TEST(Ep, NonsenseAddressesAreRefused)
{
    Net a(low_id()), b(high_id()), far(high_id());
    tw_ep *ep = nullptr;
    Door door(b, kKey);
    EXPECT_EQ(TWILL_ERR_INVALID, get(a, a, door.address, kKey, &ep));
    tw_blob address = door.address;
    address.bytes = 0;
    EXPECT_EQ(TWILL_ERR_INVALID, get(a, b, address, kKey, &ep));
    address.bytes = TW_NET_BLOB_BYTES;
    EXPECT_EQ(TWILL_ERR_INVALID, get(a, b, address, kKey, &ep));
    far.id.host[0] ^= 1;
    EXPECT_EQ(TWILL_ERR_UNSUPPORTED, get(a, far, door.address, kKey, &ep));
    tw_net *self = nullptr;
    tw_net_config config = {};
    config.self = a.id;
    config.staging_bytes = 4096;
    ASSERT_EQ(TWILL_OK, tw_transport_find("self")->net->open(&config, &self));
    tw_sock_wait wait = wait_for(TW_NS_S);
    EXPECT_EQ(TWILL_ERR_INVALID,
              tw_transport_find("self")->net->ep_get(self, &b.id, &door.address, kKey, &wait, &ep));
    tw_transport_find("self")->net->close(self);
    EXPECT_EQ(nullptr, ep);
}

/* The process listening there is another one than the address is said to be of. */
TEST(Ep, AnotherProcessAtTheAddressIsNotTaken)
{
    Net a(low_id()), b(high_id()), c(high_id());
    Door door(c, kKey);
    tw_ep *ep = nullptr;
    EXPECT_EQ(TWILL_ERR_PEER, get(a, b, door.address, kKey, &ep));
    EXPECT_EQ(nullptr, ep);
}

TEST(Ep, AClosedNetIsNotALostPeerAndMayComeAgain)
{
    Net a(low_id());
    lost_calls = 0;
    tw_proc_id id = high_id();
    tw_ep *ep = nullptr, *again = nullptr;
    {
        Net b(id);
        Door door(b, kKey);
        ASSERT_EQ(TWILL_OK, get(a, b, door.address, kKey, &ep));
    }
    while (shm()->net->ep_status(ep) == TWILL_OK) {
        std::this_thread::yield();
    }
    {
        Net b(id);
        Door door(b, kKey);
        ASSERT_EQ(TWILL_OK, get(a, b, door.address, kKey, &again));
        EXPECT_NE(ep, again);
        EXPECT_EQ(TWILL_OK, shm()->net->ep_status(again));
        EXPECT_EQ(TWILL_ERR_PEER, shm()->net->ep_status(ep));
        shm()->net->ep_put(again);
    }
    shm()->net->ep_put(ep);
    EXPECT_EQ(0, lost_calls);
}

/* The old connection's end may not have been noticed yet when the peer is back. */
TEST(Ep, ComingBackAtOnceGetsAFreshEndpoint)
{
    Net a(low_id());
    tw_proc_id id = high_id();
    for (int i = 0; i < 40; i++) {
        Net b(id);
        Door door(b, kKey), back(a, kKey);
        tw_ep *ep = nullptr, *other = nullptr;
        ASSERT_EQ(TWILL_OK, get(a, b, door.address, kKey, &ep)) << i;
        ASSERT_EQ(TWILL_OK, get(b, a, back.address, kKey, &other)) << i;
        EXPECT_EQ(TWILL_OK, shm()->net->ep_status(ep)) << i;
        shm()->net->ep_put(ep);
        shm()->net->ep_put(other);
    }
}

TEST(Ep, NetsOpenAndCloseWithoutALeak)
{
    int before = open_descriptors();
    for (int i = 0; i < 20; i++) {
        Net a(low_id()), b(high_id());
        Door door(b, kKey);
        tw_ep *ep = nullptr;
        ASSERT_EQ(TWILL_OK, get(a, b, door.address, kKey, &ep));
        shm()->net->ep_put(ep);
    }
    EXPECT_EQ(before, open_descriptors());
    tw_net *net = nullptr;
    tw_net_config config = {};
    for (uint64_t bytes : {(uint64_t)0, (uint64_t)100, UINT64_MAX}) {
        config.staging_bytes = bytes;
        EXPECT_EQ(TWILL_ERR_INVALID, shm()->net->open(&config, &net));
    }
    EXPECT_EQ(before, open_descriptors());
}

/* Two nets of a process, one bound. */
TEST(Ep, NetsShareStaging)
{
    Net a;
    tw_net *self = nullptr;
    tw_net_config config = {};
    config.self = a.id;
    config.staging_of = a.net;
    const tw_transport *t = tw_transport_find("self");
    ASSERT_EQ(TWILL_OK, t->net->open(&config, &self));
    void *ptr;
    ASSERT_EQ(TWILL_OK, t->rma->stage(self, 600000, &ptr));
    uint64_t used, limit;
    tw_net_staging(a.net, &used, &limit);
    EXPECT_GE(used, 600000u);
    EXPECT_EQ(1u << 20, limit);
    void *none;
    EXPECT_EQ(TWILL_ERR_NOMEM, shm()->rma->stage(a.net, 600000, &none));
    t->rma->unstage(self, ptr);
    t->net->close(self);
    ASSERT_EQ(TWILL_OK, shm()->rma->stage(a.net, 600000, &ptr));
    shm()->rma->unstage(a.net, ptr);
}

} // namespace
