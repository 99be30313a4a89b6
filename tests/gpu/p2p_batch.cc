/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/p2p_batch.h"

#include <algorithm>
#include <set>

#include "gpu/base.h"

namespace gpu
{

static const char UNTOUCHED = (char)0xa5;
static const size_t GAP = 64; /* between buffers, at least */

static void message_fill(const Message &m, char *to)
{
    uint64_t state = m.salt;

    for (size_t i = 0; i < m.bytes(); i++) {
        if (i % 8 == 0)
            state = state * 6364136223846793005u + 1442695040888963407u;
        to[i] = (char)(state >> (i % 8 * 8));
    }
}

Post::Post(World *world, Batch *batch, Random *random)
    : world_(world), batch_(batch), in_bytes_((size_t)world->size(), GAP),
      out_bytes_((size_t)world->size(), GAP)
{
    for (Message &m : *batch) {
        size_t &in = in_bytes_[(size_t)m.from], &out = out_bytes_[(size_t)m.to];

        m.in_at = in + m.width * random->below(32);
        m.out_at = out + (random->one_in(2) ? m.in_at % 128 : m.width * random->below(32));
        in = (m.in_at + m.bytes() + 2 * GAP - 1) / GAP * GAP;
        out = (m.out_at + m.bytes() + 2 * GAP - 1) / GAP * GAP;
    }
    for (auto &local : world->locals()) {
        const size_t r = (size_t)local->rank;
        const On on(local->device);
        std::vector<char> bytes(in_bytes_[r]);

        for (const Message &m : *batch)
            if (m.from == local->rank)
                message_fill(m, bytes.data() + m.in_at);
        in_.push_back(std::make_unique<Memory>(local->device, in_bytes_[r]));
        out_.push_back(std::make_unique<Memory>(local->device, out_bytes_[r]));
        to_device(in_.back()->get(), bytes.data(), bytes.size());
    }
    clear();
}

void Post::enlist()
{
    const Local &local = *world_->locals()[0];

    TWILL(twill_register(local.comm, out_[0]->get(), out_bytes_[(size_t)local.rank], &reg_),
          local.comm);
}

void Post::leave()
{
    const Local &local = *world_->locals()[0];

    if (reg_ != nullptr)
        TWILL(twill_deregister(local.comm, reg_), local.comm);
    reg_ = nullptr;
}

void Post::clear()
{
    for (size_t l = 0; l < out_.size(); l++) {
        const Local &local = *world_->locals()[l];
        const On on(local.device);

        CUDA(cudaMemset(out_[l]->get(), UNTOUCHED, out_bytes_[(size_t)local.rank]));
        CUDA(cudaDeviceSynchronize());
    }
}

/* order 0: as the batch has them; 1: sends first; 2: receives first */
void Post::call_on(size_t local, int order, cudaStream_t sends, cudaStream_t takes)
{
    const Local &rank = *world_->locals()[local];
    const auto pass = [&](bool send, bool take) {
        for (const Message &m : *batch_) {
            if (send && m.from == rank.rank)
                TWILL(twill_send(in_[local]->get() + m.in_at, m.count, m.type, m.to, rank.comm,
                                 sends),
                      rank.comm);
            if (take && m.to == rank.rank)
                TWILL(twill_recv(out_[local]->get() + m.out_at, m.count, m.type, m.from, rank.comm,
                                 takes),
                      rank.comm);
        }
    };

    if (order == 0)
        pass(true, true);
    else
        pass(order == 1, order == 2);
    if (order != 0)
        pass(order == 2, order == 1);
}

void Post::call(size_t local, int order)
{
    const cudaStream_t stream = *world_->locals()[local]->own[0];
    call_on(local, order, stream, stream);
}

/* Everything has ended. */
void Post::judge()
{
    world_->healthy();
    for (size_t l = 0; l < out_.size(); l++) {
        const Local &local = *world_->locals()[l];
        const On on(local.device);
        const size_t size = out_bytes_[(size_t)local.rank];
        std::vector<char> found(size), want(size, UNTOUCHED);

        for (const Message &m : *batch_)
            if (m.to == local.rank)
                message_fill(m, want.data() + m.out_at);
        CUDA(cudaMemcpy(found.data(), out_[l]->get(), size, cudaMemcpyDeviceToHost));
        if (found == want)
            continue;
        const size_t at =
            (size_t)(std::mismatch(found.begin(), found.end(), want.begin()).first - found.begin());
        std::string whose = "between messages";
        for (const Message &m : *batch_)
            if (m.to == local.rank && at >= m.out_at && at < m.out_at + m.bytes())
                whose = format("byte %zu of %zu from rank %d", at - m.out_at, m.bytes(), m.from);
        throw Failure(format("rank %d: output byte %zu (%s) is %02x, not %02x", local.rank, at,
                             whose.c_str(), (unsigned char)found[at], (unsigned char)want[at]));
    }
}

/* ---- batches -----------------------------------------------------------------------------------
 */

static const struct {
    twill_type_t type;
    size_t width;
} types[] = {{TWILL_UINT8, 1}, {TWILL_BFLOAT16, 2}, {TWILL_FLOAT32, 4}, {TWILL_INT64, 8}};

Message message(Random *random, int from, int to, size_t bytes)
{
    const auto &type = types[random->below(4)];
    return {from, to, type.type, type.width, bytes / type.width, 0, 0, random->bits()};
}

/* Mostly small, at times at a boundary, seldom large. */
static size_t draw_bytes(Random *random, size_t most)
{
    static const size_t edges[] = {0, 1, 8, 8191, 8192, 8193, 15872, 16384, 65536, 1 << 20};

    if (random->one_in(8))
        return 0;
    if (random->one_in(4))
        return std::min(most, edges[random->below(10)] + random->below(3));
    return (size_t)random->below((most >> random->below(16)) + 1);
}

Batch draw_batch(Random *random, int size, size_t most)
{
    Batch batch;
    const uint64_t form = random->below(4);

    for (int from = 0; from < size; from++)
        for (int to = 0; to < size; to++) {
            const bool in_ring = to == (from + 1) % size;
            uint64_t count = form == 0 ? in_ring : form == 1 ? 1 : random->below(4);

            if (form == 3) /* several of few pairs: more than are posted ahead */
                count = random->one_in((uint64_t)size) ? random->below(24) : 0;
            for (uint64_t i = 0; i < count; i++)
                batch.push_back(
                    message(random, from, to, draw_bytes(random, count > 4 ? most / 8 : most)));
        }
    if (batch.empty())
        batch.push_back(message(random, 0, size - 1, 1000));
    /* in another order, the same to all */
    for (size_t i = batch.size() - 1; i > 0; i--)
        std::swap(batch[i], batch[random->below(i + 1)]);
    return batch;
}

void wait_all(World *world)
{
    for (auto &local : world->locals())
        for (auto &stream : local->own)
            wait(local->device, *stream);
}

void run_batch(World *world, Post *post, bool threads, int order, bool two_streams)
{
    const auto call = [&](size_t l) {
        const Local &local = *world->locals()[l];
        post->call_on(l, order, *local.own[0], *local.own[two_streams]);
    };

    if (threads)
        on_threads((int)world->locals().size(), [&](int l) { grouped([&] { call((size_t)l); }); },
                   [&] { world->abort(); });
    else
        grouped([&] {
            for (size_t l = 0; l < world->locals().size(); l++)
                call(l);
        });
    wait_all(world);
    post->judge();
}

static bool share_devices(World *world)
{
    std::set<int> found;
    for (auto &local : world->locals())
        found.insert(local->device);
    return found.size() < world->locals().size();
}

/* A collective that uses the same rings. */
static void beside(World *world, const std::vector<std::unique_ptr<Memory>> &memory, size_t count)
{
    grouped([&] {
        for (size_t l = 0; l < world->locals().size(); l++) {
            const Local &local = *world->locals()[l];
            TWILL(twill_all_reduce(memory[l]->get(), memory[l]->get(), count, TWILL_INT32,
                                   TWILL_SUM, local.comm, *local.own[0]),
                  local.comm);
        }
    });
}

void run_batches(World *world, uint64_t seed, int count, size_t most, bool may_thread)
{
    std::vector<std::unique_ptr<Memory>> memory;

    for (auto &local : world->locals())
        memory.push_back(std::make_unique<Memory>(local->device, (size_t)1 << 20));
    for (int i = 0; i < count; i++) {
        Random random(mix(seed * 1000 + (uint64_t)i));
        Batch batch = draw_batch(&random, world->size(), most);
        Post post(world, &batch, &random);
        const bool threads = may_thread && random.one_in(2);
        const int order = (int)random.below(3);
        /* streams that wait for each other are no way for ranks of one device to meet */
        const bool two_streams = random.one_in(3) && !(threads && share_devices(world));

        step(format("%d ranks: batch %llu.%d of %zu messages%s", world->size(),
                    (unsigned long long)seed, i, batch.size(), threads ? ", threads" : ""));
        if (random.one_in(3))
            beside(world, memory, random.one_in(2) ? 100 : (size_t)1 << 18);
        if (!may_thread && random.one_in(2))
            post.enlist();
        run_batch(world, &post, threads, order, two_streams);
        post.leave();
    }
}

} // namespace gpu
