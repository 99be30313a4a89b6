/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the words of the text form, for its printer and its parser. Never knows: plans' meaning.
 *
 * Grammar (UTF-8 is allowed in comments only; words are separated by blanks; a line ends with a
 * line feed or the text; "#" starts a comment; empty lines do not count):
 *
 *   text   = plan facts { part } { rank }
 *   plan   = "plan" NAME COLL "ranks" N "root" N [ "only" N ]                             NEWLINE
 *   facts  = "facts" { FACT N | "deterministic" }                                         NEWLINE
 *   part   = "part" KIND "groups" N "per" N [ "source" N ] [ "capacity" N ]               NEWLINE
 *   rank   = "rank" N NEWLINE { lane }                       ranks in rising order
 *   lane   = "lane" "channel" N NEWLINE { step }             numbered from 0
 *   step   = OP { field | FLAG }                                                          NEWLINE
 *   field  = "from" peer | "to" peer | "src" span | "dst" span | "sig" N ":" N | "after" N ":" N
 *   peer   = ( N | "-" ) [ ":" N ]                           rank, fifo id (0)
 *   span   = BUF "." N [ "@" N ] "[" N [ "+" N [ "*" N "/" N ] ] "]"
 *
 * NAME   letters, digits and _.+-               COLL   as tw_coll_name
 * FACT   depth slices fifos widest signals sig_max caps parity scratch wide; those left out are 0,
 *        but slices and parity 1               KIND   equal per_rank own shard pair_send
 *                                                             pair_recv runtime
 * OP     as TW_PLAN_OP_LIST                     FLAG   store acc_right final round whole
 * BUF    in out scratch wide                    N      decimal, below 2^32
 * span   buffer.partition@index[first], [first+block], [first+block*nblocks/stride]; left out: none
 * sig    signal:value                           after  lane:step of the rank
 *
 * Fields and flags come in any order and at most once.
 */
#ifndef TW_PLAN_TEXT_H
#define TW_PLAN_TEXT_H

#include <stddef.h>

#include "plan/plan.h"

/* A fact is a number in struct tw_plan. */
struct tw_text_fact {
    const char *name;
    size_t offset; /* of a uint32_t in struct tw_plan */
};
extern const struct tw_text_fact tw_text_facts[];
extern const size_t tw_text_nfacts;

/* A flag of a step. */
struct tw_text_flag {
    const char *name;
    uint8_t flag;
};
extern const struct tw_text_flag tw_text_flags[];
extern const size_t tw_text_nflags;

/** Names by value; NULL past the end. */
const char *tw_text_part_kind(unsigned kind);
const char *tw_text_op(unsigned op);
const char *tw_text_buf(unsigned buf);

#endif
