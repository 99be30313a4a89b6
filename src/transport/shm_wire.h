/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the messages on a fresh connection between two shm nets, after both proved the key.
 * Never knows: who sends them when. */
#ifndef TW_TRANSPORT_SHM_WIRE_H
#define TW_TRANSPORT_SHM_WIRE_H

#include "transport/shm.h"

#define TW_SHM_WIRE_MAGIC 0x74777368u
#define TW_SHM_WIRE_VERSION 1
#define TW_SHM_PROOF_CONTEXT "twill shm transport"

enum tw_shm_wire_kind { TW_SHM_WIRE_HELLO = 1, TW_SHM_WIRE_FETCH = 2 };

struct tw_shm_wire_head {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
};

/* Both sides send it, then the descriptor of their staging. The accepting side goes second and
 * says whether it could read the other's pattern; the connecting side ends with a
 * tw_shm_wire_agreed. */
struct tw_shm_wire_hello {
    struct tw_shm_wire_head head;
    struct tw_proc_id from, to;
    uint64_t staging_bytes;
    uint64_t pattern_address;
    uint8_t pattern[TW_SHM_PATTERN_BYTES];
    uint8_t service_key[TW_KEY_BYTES];
    char service_name[TW_SOCK_NAME_BYTES];
    uint8_t cma; /* first: may you; second: may you, and I could */
    uint8_t unused[7];
};

struct tw_shm_wire_agreed {
    struct tw_shm_wire_head head;
    uint8_t cma;
    uint8_t unused[7];
};

struct tw_shm_wire_fetch {
    struct tw_shm_wire_head head;
    uint64_t token[2];
};

struct tw_shm_wire_fetched {
    struct tw_shm_wire_head head;
    uint64_t found; /* 1: a descriptor follows */
};

#endif
