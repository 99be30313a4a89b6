/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: communicators on devices, with the streams and memory of the ranks that live here.
 * Never knows: which calls are made. */
#ifndef TESTS_GPU_WORLD_H
#define TESTS_GPU_WORLD_H

#include <map>
#include <memory>
#include <vector>

#include "gpu/base.h"
#include "gpu/data.h"

namespace gpu
{

/* Ways to spread ranks over the devices there are; fewer where there is one device. */
int placements();
/* Each rank's device. */
std::vector<int> place(int size, int placement);

/* A rank that lives in this process. */
struct Local {
    Local(int rank, int device, twill_comm_t comm);
    ~Local();
    Local(const Local &) = delete;
    Local &operator=(const Local &) = delete;
    /* New streams for the old ones, which are idle. */
    void renew_streams();

    int rank, device;
    twill_comm_t comm; /* World's */
    std::unique_ptr<Stream> own[2];
    Arena arena;
    cudaEvent_t tail = nullptr; /* behind the rank's last round */
    bool has_tail = false;
};

class World
{
  public:
    /* All ranks here. way: one of the ways to make a communicator. */
    explicit World(const std::vector<int> &rank_devices, uint64_t way = 0);
    /* Ranks of this process, connected by whoever made comms, which are World's from now on. */
    World(int size, const std::vector<int> &ranks, const std::vector<int> &rank_devices,
          const std::vector<twill_comm_t> &comms);
    ~World();
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    int size() const { return size_; }
    std::vector<std::unique_ptr<Local>> &locals() { return locals_; }
    Local &rank(int rank); /* of this process */
    cudaStream_t shared(int device) { return *shared_.at(device); }
    void abort();
    /* Throws what the communicators' state says, if that is not fine. */
    void healthy();
    /* As the destructor does, which says nothing of what goes wrong. */
    void destroy();

  private:
    void adopt(const std::vector<int> &ranks, const std::vector<int> &rank_devices,
               const std::vector<twill_comm_t> &comms);

    int size_;
    std::vector<std::unique_ptr<Local>> locals_;
    std::map<int, std::unique_ptr<Stream>> shared_;
};

} // namespace gpu

#endif
