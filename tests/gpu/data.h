/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a case's ranks put in and should get out, and where on the device it lies.
 * Never knows: streams, who calls. */
#ifndef TESTS_GPU_DATA_H
#define TESTS_GPU_DATA_H

#include <memory>
#include <string>
#include <vector>

#include "gpu/base.h"
#include "gpu/case.h"

namespace gpu
{

typedef std::vector<char> Bytes;

/* `count` elements as bits says, then again from the start, with a period that is no power of two.
 */
Bytes draw_elements(Random *random, twill_type_t type, Bits bits, size_t count);

/* Memory of one rank for one case at a time, on the device and, as often as it takes, on the host.
 */
class Arena
{
  public:
    explicit Arena(int device) : device_(device) {}
    /* Nothing is in use any longer; there will be room for so much. The device is idle if it must
     * grow. */
    void reset(size_t device_bytes, size_t host_bytes);
    char *take_device(size_t bytes);
    char *take_host(size_t bytes);

  private:
    int device_;
    std::unique_ptr<Memory> memory_;
    std::unique_ptr<Pinned> pinned_;
    size_t device_bytes_ = 0, host_bytes_ = 0, device_used_ = 0, host_used_ = 0;
};

/* A buffer between guards: on the device, and what goes there (up) and comes from there (down). */
struct Region {
    size_t bytes = 0; /* 0: there is none */
    size_t at = 0, payload = 0;
    char *device = nullptr, *up = nullptr, *down = nullptr;
    char *pointer() const { return bytes != 0 ? device + at : nullptr; }
};
/* Bytes of a region on the device, and on the host. */
size_t region_bytes(size_t payload, size_t shift_bytes);
/* device: of an earlier region of the same size that is used again; NULL: a new one. Everything is
 * poisoned. */
Region region_take(Arena *arena, size_t payload, size_t shift_bytes, char *device, uint64_t salt);

/* A part of a region that is expected to have changed. Others are as they went up. */
struct Piece {
    size_t at, bytes; /* in the payload */
    const char *want;
};
/* What is wrong with what came down; "": nothing. Pieces are in order. */
std::string compare(const Region &region, const std::vector<Piece> &pieces, size_t elem);

/* ---- inputs and results of all ranks, in one round ---- */

/* Host communicators of so many ranks, for results of reductions. */
class Reference
{
  public:
    explicit Reference(int size);
    ~Reference();
    Reference(const Reference &) = delete;
    Reference &operator=(const Reference &) = delete;
    /* The sum, whatever the operation is called, of all ranks' inputs. scalars: of premul sums. */
    Bytes reduce(const Case &c, const std::vector<Bytes> &inputs,
                 const std::vector<Bytes> &scalars);

  private:
    std::vector<twill_comm_t> comms_;
};
Reference &reference_of(int size); /* made once; for one thread */

struct Round {
    std::vector<Bytes> inputs, scalars; /* [size] */
    Bytes result;                       /* of a reduction: all of it */
};
Round draw_round(const Case &c, int round);
/* What becomes of the rank's recvbuf, of whose payload the block of the rank, if the call has
 * several, lies at block_at. */
std::vector<Piece> expect(const Case &c, const Round &round, int rank, size_t out_at);

} // namespace gpu

#endif
