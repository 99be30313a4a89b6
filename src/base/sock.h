/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: Unix sockets, deadlines, passing of descriptors, proof of a key.
 * Never knows: what the bytes mean. */
#ifndef TW_BASE_SOCK_H
#define TW_BASE_SOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "twill.h"

#define TW_SOCK_NAME_BYTES 96
#define TW_KEY_BYTES 32

/* All sockets are close-on-exec, SOCK_STREAM and non-blocking inside; calls below wait by poll(2)
 * to an absolute tw_now_ns() deadline (TW_NEVER: none) and return TWILL_ERR_TIMEOUT, TWILL_ERR_PEER
 * (closed or reset by the peer) or TWILL_ERR_SYSTEM. cancel_fd >= 0: they also return
 * TWILL_ERR_ABORTED as soon as it is readable. */
struct tw_sock_wait {
    uint64_t deadline_ns;
    int cancel_fd; /* borrowed; -1: none */
};

/** Listen on an abstract Unix name. name NULL or "": the kernel picks (autobind). Actual name out.
 */
enum twill_status tw_sock_listen(int *fd, const char *name, char actual[TW_SOCK_NAME_BYTES]);
/** The same, but TWILL_ERR_AGAIN (tw_fail not called) where somebody listens at that name. */
enum twill_status tw_sock_listen_first(int *fd, const char *name, char actual[TW_SOCK_NAME_BYTES]);
/** Connect, trying again while nobody listens yet, to the deadline. */
enum twill_status tw_sock_connect(int *fd, const char *name, const struct tw_sock_wait *wait);
/** As above, the own end bound to an abstract name that the other end can ask for. */
enum twill_status tw_sock_connect_as(int *fd, const char *own, const char *name,
                                     const struct tw_sock_wait *wait);
enum twill_status tw_sock_accept(int *fd, int listen_fd, const struct tw_sock_wait *wait);
enum twill_status tw_sock_send(int fd, const void *data, size_t bytes,
                               const struct tw_sock_wait *wait);
enum twill_status tw_sock_recv(int fd, void *data, size_t bytes, const struct tw_sock_wait *wait);
/** Length-prefixed message. recv refuses more than max_bytes (ERR_PEER) and sets *bytes. */
enum twill_status tw_sock_send_msg(int fd, const void *data, uint32_t bytes,
                                   const struct tw_sock_wait *wait);
enum twill_status tw_sock_recv_msg(int fd, void *data, uint32_t max_bytes, uint32_t *bytes,
                                   const struct tw_sock_wait *wait);
/** One descriptor with a byte. recv refuses anything but exactly one descriptor and closes strays.
 */
enum twill_status tw_sock_send_fd(int fd, int passed, const struct tw_sock_wait *wait);
enum twill_status tw_sock_recv_fd(int fd, int *passed, const struct tw_sock_wait *wait);
/** Process and user at the other end (SO_PEERCRED). */
enum twill_status tw_sock_peer(int fd, pid_t *pid, uid_t *uid);
/** The abstract name to which the other end is bound, also when that has closed; "": to none. */
void tw_sock_peer_name(int fd, char name[TW_SOCK_NAME_BYTES]);

/**
 * Prove to each other that both ends hold the key, before anything else is read from the
 * connection: fresh 32-byte nonces both ways, then keyed BLAKE2b (libsodium crypto_generichash)
 * over role, context and both nonces, compared in constant time. Reads fixed sizes only. context
 * binds the proof to its use.
 *
 * @param role     0 for the side that connected, 1 for the side that accepted
 * @return TWILL_ERR_AUTH when the proof is wrong; otherwise as above. The caller closes fd on any
 * error.
 */
enum twill_status tw_sock_prove(int fd, const uint8_t key[TW_KEY_BYTES], int role,
                                const char *context, const struct tw_sock_wait *wait);

#endif
