/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory of made-up devices that is not from cudaMalloc: pieces, whom they let in, and
 * descriptors of them. Never knows: who calls it. */
#ifndef TESTS_COMM_FAKE_VMM_H
#define TESTS_COMM_FAKE_VMM_H

#include <set>

#include "fake_gpu.h"

namespace fake
{

/* What is at ptr, which is the test's: pieces side by side, which let in their own device only. */
struct Apart {
    enum tw_cuda_origin origin = TW_CUDA_MAPPED;
    int device = 0;
    size_t piece_bytes = 0; /* of a pool's memory: all of it */
    bool exportable = true;
};
void apart(const void *ptr, size_t bytes, const Apart &how);
/* Nothing is mapped there any more; that there is memory stays known. */
void unmap(const void *ptr);

/* The user lets a device in. */
void let_in(const void *ptr, int device);
/* Whom the piece, or the pool, lets in besides its own device. */
std::set<int> who_is_in(const void *ptr);
/* CUDA lets this device in nowhere. */
void refuse(int device);
/* Times that somebody was let in. */
int openings();

/* The piece whose descriptor was mapped at an address, as its start and bytes; nullptr: none. */
std::pair<const void *, size_t> mapped_at(uint64_t address);
/* Spans that were reserved and not freed. */
size_t spans();

/* Of fake_gpu.cc. */
void vmm_reset();
bool is_apart(const void *ptr);

} // namespace fake

#endif
