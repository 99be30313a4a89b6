/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/world.h"

namespace gpu
{

int placements() { return devices() > 1 ? 3 : 1; }

std::vector<int> place(int size, int placement)
{
    const int all = devices();
    std::vector<int> out;

    for (int r = 0; r < size; r++)
        out.push_back(placement == 0   ? r % all        /* in turn */
                      : placement == 1 ? r * all / size /* in blocks */
                                       : all - 1);      /* all on one */
    return out;
}

/* ---- ranks -------------------------------------------------------------------------------------
 */

Local::Local(int rank, int device, twill_comm_t comm)
    : rank(rank), device(device), comm(comm), arena(device)
{
    const On on(device);
    renew_streams();
    CUDA(cudaEventCreateWithFlags(&tail, cudaEventDisableTiming));
}

Local::~Local()
{
    const On on(device);
    (void)cudaEventDestroy(tail);
}

/* Of either sort: one that waits for the default stream, and one that does not. */
void Local::renew_streams()
{
    own[0] = std::make_unique<Stream>(device, cudaStreamNonBlocking);
    own[1] = std::make_unique<Stream>(device, cudaStreamDefault);
}

/* ---- making ------------------------------------------------------------------------------------
 */

static struct twill_config config_of(int device)
{
    struct twill_config config = TWILL_CONFIG_INIT;
    config.device = device;
    return config;
}

static std::vector<twill_comm_t> make(const std::vector<int> &rank_devices, uint64_t way)
{
    const int size = (int)rank_devices.size();
    std::vector<twill_comm_t> comms((size_t)size);
    twill_unique_id id;

    if (way % 3 == 0) {
        TWILL(twill_comm_init_all(comms.data(), size, rank_devices.data(), nullptr), nullptr);
        return comms;
    }
    TWILL(twill_get_unique_id(&id), nullptr);
    const auto init = [&](int r) {
        const struct twill_config config = config_of(rank_devices[(size_t)r]);
        TWILL(twill_comm_init(&comms[(size_t)r], size, &id, r, &config), nullptr);
    };
    if (way % 3 == 1) {
        on_threads(size, init);
        return comms;
    }
    grouped([&] {
        for (int r = 0; r < size; r++)
            init(r);
    });
    return comms;
}

World::World(const std::vector<int> &rank_devices, uint64_t way) : size_((int)rank_devices.size())
{
    std::vector<int> ranks;
    for (int r = 0; r < size_; r++)
        ranks.push_back(r);
    adopt(ranks, rank_devices, make(rank_devices, way));
}

World::World(int size, const std::vector<int> &ranks, const std::vector<int> &rank_devices,
             const std::vector<twill_comm_t> &comms)
    : size_(size)
{
    adopt(ranks, rank_devices, comms);
}

void World::adopt(const std::vector<int> &ranks, const std::vector<int> &rank_devices,
                  const std::vector<twill_comm_t> &comms)
{
    for (size_t i = 0; i < ranks.size(); i++) {
        const int device = rank_devices[i];

        locals_.push_back(std::make_unique<Local>(ranks[i], device, comms[i]));
        if (shared_.count(device) == 0)
            shared_[device] = std::make_unique<Stream>(device);
    }
}

/* ---- living and ending -------------------------------------------------------------------------
 */

Local &World::rank(int rank)
{
    for (auto &local : locals_)
        if (local->rank == rank)
            return *local;
    throw Failure(format("rank %d is not of this process", rank));
}

void World::abort()
{
    for (auto &local : locals_)
        (void)twill_comm_abort(local->comm);
}

void World::healthy()
{
    for (auto &local : locals_) {
        enum twill_status status = TWILL_OK;

        TWILL(twill_comm_async_error(local->comm, &status), local->comm);
        if (status != TWILL_OK)
            throw Failure(format("rank %d: %s: %s", local->rank, twill_status_string(status),
                                 twill_last_error(local->comm)));
    }
}

void World::destroy()
{
    enum twill_status first = TWILL_OK;
    for (auto &local : locals_) {
        const enum twill_status status = twill_comm_destroy(local->comm);
        first = first == TWILL_OK ? status : first;
        local->comm = nullptr;
    }
    TWILL(first, nullptr);
}

World::~World()
{
    for (auto &local : locals_)
        (void)twill_comm_destroy(local->comm);
}

} // namespace gpu
