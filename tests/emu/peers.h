/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which devices do not get at each other's memory as they should.
 *
 * TW_EMU_PEERS=0-1:absent,1-0:lost: for each pair, the device that reaches out in front, what comes
 * of it ("*" for any device):
 *   absent   CUDA says that there is no peer access
 *   closed   memory of another process does not open
 *   lost     what kernels store is gone
 *   stale    what kernels load is 0
 *   wrong    the same, other bits
 * Never knows: kernels, whose memory it is. */
#ifndef TESTS_EMU_PEERS_H
#define TESTS_EMU_PEERS_H

#include <cstdint>

namespace emu
{

enum Reach { FINE, ABSENT, CLOSED, LOST, STALE, WRONG };
Reach reach(int device, int peer);

/* Some pair loses or changes what goes over it. */
extern const bool lies;
/* Of the kernel that runs on this thread. */
extern __thread int running;
/* What comes of a load or a store of the running kernel, where lies is set. */
uint32_t lie_load(const uint32_t *at, uint32_t value);
bool lie_store(const uint32_t *at); /* it is lost */

/* Of whose device the memory is, also of another process; -1: of none. */
int owner(const void *ptr);

} // namespace emu

#endif
