/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a few milliseconds of measuring tell of a host, as plain data.
 * Never knows: how it was measured, how ranks exchange it. */
#ifndef TW_TOPO_MEASURED_H
#define TW_TOPO_MEASURED_H

#include <stddef.h>
#include <stdint.h>

#include "topo/graph.h"

/* Where a copy's data lies. */
enum tw_topo_copy {
    TW_TOPO_COPY_L1,
    TW_TOPO_COPY_L2,
    TW_TOPO_COPY_L3,
    TW_TOPO_COPY_MEMORY,
    TW_TOPO_COPY_COUNT
};

/* 0 in any field: not measured. */
struct tw_topo_measured {
    /* a cache line written by one CPU until another one sees it, one way, by their nearness */
    uint64_t line_ps[TW_TOPO_NEAR_COUNT];
    /* memcpy by one CPU, and the bytes of source and target together that it was measured with */
    uint64_t copy_bytes[TW_TOPO_COPY_COUNT];
    uint64_t copy_bytes_per_s[TW_TOPO_COPY_COUNT];
    /* a CPU goes from a thread that yields it to the next one, until that one runs */
    uint64_t switch_ps;
    /* process_vm_readv: of one short call, and of a long one */
    uint64_t cma_call_ps;
    uint64_t cma_bytes_per_s;
};

/**
 * Take into `into` what `from` knows: the least time and the highest rate of each, since
 * disturbance only ever makes a measurement worse. Neither the order of merges nor merging a
 * second time changes the result.
 */
void tw_topo_measured_merge(struct tw_topo_measured *into, const struct tw_topo_measured *from);

/* On the wire: version, then the fields in order, 64 bits each, little-endian. */
#define TW_TOPO_MEASURED_BYTES (8 * (1 + TW_TOPO_NEAR_COUNT + 2 * TW_TOPO_COPY_COUNT + 3))
void tw_topo_measured_pack(const struct tw_topo_measured *measured,
                           uint8_t bytes[TW_TOPO_MEASURED_BYTES]);
/** @return TWILL_OK; TWILL_ERR_PEER another version, or a number that no measurement gives;
 * measured is untouched then */
enum twill_status tw_topo_measured_unpack(struct tw_topo_measured *measured,
                                          const uint8_t bytes[TW_TOPO_MEASURED_BYTES]);

/** Of the packed form. */
uint64_t tw_topo_measured_hash(const struct tw_topo_measured *measured);

/**
 * Put measured numbers in place of the estimates of a machine: latencies between PUs so that paths
 * by way of caches take line_ps, rates of cores and memory. What was not measured stays, but is
 * kept in order (an inner part is never slower to cross than an outer one). Links changed get the
 * origin TW_TOPO_MEASURED. The graph must have been sealed, and is to be sealed again.
 *
 * @return TWILL_OK; TWILL_ERR_NOMEM, nothing changed
 */
enum twill_status tw_topo_measured_apply(const struct tw_topo_measured *measured,
                                         struct tw_topo_machine *machine);

#endif
