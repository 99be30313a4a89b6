/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what memory there is of devices, for the parts of the emulated runtime that make some.
 * Never knows: what it is for. */
#ifndef TESTS_EMU_MEMORY_H
#define TESTS_EMU_MEMORY_H

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "emu/runtime.h"

namespace emu
{

/* MAPPED: by cuMemMap. OPENED: another process's, by IPC. ENLISTED: the host's, by cudaHostRegister
 */
enum Kind { DEVICE, POOL, PINNED, OPENED, MAPPED, ENLISTED };
struct Handle; /* of what is mapped */
struct Piece {
    size_t bytes;
    Kind kind;
    int device, fd;
    std::shared_ptr<Handle> handle; /* of MAPPED */
    uint32_t in = 0;                /* of MAPPED: bit d: device d may use it */
    int owner = -1;                 /* of OPENED: the device whose memory it is */
    void *alias = nullptr;          /* of ENLISTED: where devices find it */
    std::pair<int, int> ticket{};   /* of OPENED: process and descriptor */
};

struct Pieces {
    std::mutex lock;
    std::map<uintptr_t, Piece> pieces;
    size_t used[DEVICES];
    uint32_t pool_in[DEVICES]; /* of each device's pool: bit d: device d may use it */
};
extern Pieces &all;
typedef std::lock_guard<std::mutex> Guard;

/* Under the lock. */
std::pair<const uintptr_t, Piece> *find(uintptr_t ptr);
/* Of which device, of its own process or another's. -1: none */
int device_of(const void *ptr);

} // namespace emu

#endif
