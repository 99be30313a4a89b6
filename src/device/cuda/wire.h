/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the host hands to kernels and what ranks' memory on devices holds, as plain data.
 * Never knows: CUDA's own types; it is read by C11 and by CUDA C++. */
#ifndef TW_DEVICE_CUDA_WIRE_H
#define TW_DEVICE_CUDA_WIRE_H

#include <stdint.h>

/*
 * A rank's memory. Each rank of a communicator on devices has one piece of device memory that all
 * its peers address, cut alike on all ranks (struct tw_gk_layout). Into it its peers write, nobody
 * else; the rank itself only reads it (what it keeps for itself is in its state).
 *
 * Epochs. The collective calls of a communicator are numbered, from 1 on, modulo 2^32, by a word in
 * the rank's state which its kernels advance: a replay of a graph counts like a call. A call begins
 * with a record to every peer: what it is and where its output lies. Before a rank writes anything
 * of epoch e to a peer it has seen the peer's record of e - 1: so the peer has ended e - 2, whose
 * half of the inbox and of the lines e uses again.
 *
 * Lines (small calls). Data travels as pairs of a word and the epoch, 8 bytes that arrive as one;
 * whoever waits for the word sees by the epoch that it is there. No fence, no flag of its own.
 *
 * Rings (large calls). To every peer a ring has one or two slots in the peer's memory for either
 * lane. Slots lie where they lie whatever the call; each counts its uses on either side. A warp
 * fills slots, others empty them, so neither waits for the other's work. A slot is packets, 16
 * bytes that arrive as one, of which each has the lower 16 bits of the use's number; all of the
 * slot is written whatever goes through it, so that what lies there is of the use before. Whoever
 * waits for data sees by the packets that it is there: no fence, no flag. `drained`, in the
 * writer's memory, says that a use has been read.
 *
 * Direct. A receiver whose record says where its output lies gets data written there, and `ended`
 * raised to the epoch when all of it is. Where every rank's record says where input and output lie,
 * sums need no rings: a rank reads its share of everybody's input, and `ended` says that too.
 *
 * Pushes (sums of two ranks). Where both records say that the rank's input lies apart from its
 * output, neither reads the other's: each stores what the other sums right into the other's output,
 * where the sum comes to lie, chunk by chunk. `pushed`, in the owner's memory, says how many chunks
 * of a block have come, in all calls so far; in a call both give equally many, so one count in the
 * state does for both directions. Where both records say that an all_reduce is in place, chunks lie
 * in the place of what has been given before (push.cuh), and the first ones are read.
 *
 * Sends and receives have no epochs. Those from one rank to another are numbered, from 1 on, modulo
 * 2^32, by a word in each one's state which its kernels advance. The receiver posts what it takes
 * in the sender's memory, some operations ahead; the sender compares, and raises `done` at the
 * receiver when it has written all of one. The data goes to the address that was posted or, where
 * that is none, through the pair's slots, in turn over all of them.
 */
#define TW_GK_RANKS_MAX 64   /* ranks of a communicator on devices */
#define TW_GK_BLOCKS_MAX 128 /* blocks of a rank's kernel; with rings, half as many */
#define TW_GK_GROUP 128      /* threads that run sends or receives together */
#define TW_GK_WARP 32        /* and a ring */
#define TW_GK_SLOTS_MAX 512  /* slots of all rings to a peer, 8 at least */
#define TW_GK_SLOT_BYTES 4096
#define TW_GK_SLOT_DATA 3584 /* and of data, in a slot */
#define TW_GK_JOINT_MAX 8    /* ranks of one launch */
#define TW_GK_NEAR 8         /* ranks whose memory a call names itself */
#define TW_GK_SLOTS 2        /* of a ring, at most */
#define TW_GK_PREMUL 8       /* the value of TW_REDOP_PREMUL_SUM */
#define TW_GK_COLL_P2P 14    /* the value of TW_COLL_P2P */
#define TW_GK_POSTS 8        /* operations that a receiver posts ahead */
#define TW_GK_OPS_FEW 16     /* sends and receives of a launch: of the kernel for few, */
#define TW_GK_OPS_MAX 512    /* and of any */

/* Words of a record; each travels with the epoch behind it. */
enum tw_gk_word {
    TW_GK_WORD_CALL,     /* coll, type, op, 0: a byte each */
    TW_GK_WORD_PATH,     /* root in the upper half; kernel and blocks in the lower */
    TW_GK_WORD_COUNT,    /* two words: bytes that go to the peer */
    TW_GK_WORD_OUT = 4,  /* two words: where the peer's block goes; 0: by ring; or which plan */
    TW_GK_WORD_IN = 6,   /* two words: where the input lies; 0: not to be read by peers; and
                            TW_GK_APART or TW_GK_SAME */
    TW_GK_WORD_BACK = 6, /* or, where blocks differ: bytes that are expected of the peer */
    TW_GK_WORDS = 8
};
struct tw_gk_record {
    uint32_t pair[TW_GK_WORDS][2]; /* word, epoch */
};
/* Of a send (1) or a receive (0) the first word is this, and the upper half of the second the peer.
 */
#define TW_GK_P2P_WORD(type, is_send)                                                              \
    ((uint32_t)TW_GK_COLL_P2P << 24 | (uint32_t)(type) << 16 | (uint32_t)(is_send) << 8)

/* What peer q's block tells this rank's same block. */
struct tw_gk_marks {
    uint32_t ended;  /* epoch of which it has written all to this rank's output */
    uint32_t pushed; /* chunks that it has stored into this rank's output */
};
/* What peer q tells this rank. */
struct tw_gk_flags {
    uint32_t drained[TW_GK_SLOTS_MAX]; /* uses of a slot at q that q has read */
    struct tw_gk_marks blocks[TW_GK_BLOCKS_MAX];
};

/* What peer q and this rank tell each other of sends and receives: number n at n % TW_GK_POSTS. */
struct tw_gk_door {
    struct tw_gk_record posts[TW_GK_POSTS]; /* what q takes; the number is in the epoch's place */
    uint32_t done[TW_GK_POSTS];             /* numbers of which q has sent all */
};

/* Bytes from the start of a rank's memory. It begins with the inbox, [TW_GK_RANKS_MAX][2] struct
 * tw_gk_record, the doors, [TW_GK_RANKS_MAX] struct tw_gk_door, and the flags, [size] struct
 * tw_gk_flags. "each" is per peer; peers behind the rank itself
 * count one less. */
#define TW_GK_DOORS_AT (TW_GK_RANKS_MAX * 2 * (uint32_t)sizeof(struct tw_gk_record))
#define TW_GK_FLAGS_AT (TW_GK_DOORS_AT + TW_GK_RANKS_MAX * (uint32_t)sizeof(struct tw_gk_door))
struct tw_gk_layout {
    uint32_t lines, line_each; /* [2][size - 1]: line_each bytes, half of them payload */
    uint32_t ring, ring_each;  /* [size - 1] */
    /* of plans: signal words, FIFOs' words, [size][2][TW_GK_PLAN_FIFOS], FIFOs, [size - 1], and
     * scratch; 0: there is no such part */
    uint32_t plan, plan_fifo_each, plan_scratch;
    uint32_t bytes;
};

/* A rank's own, in device memory. */
struct tw_gk_counts {
    uint32_t sent, taken; /* uses of a slot: at the peer, and here */
};
struct tw_gk_way {   /* of sends to a peer, or of receives from it */
    uint32_t number; /* of the last one that has ended */
    uint32_t ended;  /* groups of the running kernel that have */
};
struct tw_gk_state {
    /* what a call by lines reads first: 16 bytes, aligned by them */
    uint32_t epoch;    /* of the last call that ended */
    uint32_t failed;   /* not 0: kernels of this rank end without waiting */
    uint32_t met[2];   /* of calls in turn: the epoch, if all peers' records of it were seen */
    uint32_t arrived;  /* blocks of the running kernel that know its epoch */
    uint32_t ended[2]; /* and those that have ended, where that is counted; of calls in turn */
    uint32_t waiting;  /* threads that wait long */
    uint32_t teller;   /* not 0: one of them tells the host */
    uint32_t words[2][TW_GK_WORDS];            /* records of calls in turn, the last one's too */
    struct tw_gk_way ways[TW_GK_RANKS_MAX][2]; /* sends, receives */
    uint32_t pieces[TW_GK_RANKS_MAX][TW_GK_POSTS]; /* sent so far, of sends that go on */
    uint32_t pushed[TW_GK_BLOCKS_MAX]; /* chunks of each block, in calls that push; as many came */
    /* memory ends behind those of the last rank that there is */
    struct tw_gk_counts counts[TW_GK_RANKS_MAX][TW_GK_SLOTS_MAX];
};

/* In pinned host memory, one for each rank: the host writes `stop`, kernels the rest. */
enum tw_gk_trouble {
    TW_GK_FINE,
    TW_GK_MISMATCH,        /* a peer is in another call */
    TW_GK_MISMATCH_BEFORE, /* a peer's last call was another one */
    TW_GK_STOPPED,         /* as the host wished */
    TW_GK_OTHER_PLAN,      /* a peer runs another plan */
    TW_GK_BROKEN,          /* a peer's message is not what its call makes of it */
    TW_GK_ELSEWHERE,       /* a peer's output does not lie in its registration where ours does */
};
struct tw_gk_host {
    uint32_t stop; /* not 0: end every wait */
    uint32_t trouble;
    uint32_t trouble_peer, trouble_epoch;
    uint32_t mine[TW_GK_WORDS],
        last[TW_GK_WORDS];        /* of a mismatch: this rank's call and last one */
    uint32_t theirs[TW_GK_WORDS]; /* the peer's, of either */
    /* a wait of a millisecond or more goes on, for this peer in this call */
    uint32_t waiting, wait_epoch, wait_peer;
    uint32_t wait_words[TW_GK_WORDS];
    uint32_t seen[256]; /* by the self-test, while ranks connect */
};

/* What the words OUT and IN of a record say: an address of the process that both ranks are in, or
 * the slot of a registration and the bytes from its start. */
#define TW_GK_REGISTERED (UINT64_C(1) << 63)
#define TW_GK_SLOT_SHIFT 48
/* In the word IN of a call with chunks: the output is reached too, and lies apart from the input,
 * so that a peer may write there before the input has been read. */
#define TW_GK_APART (UINT64_C(1) << 62)
/* Or of an all_reduce: it is the input. */
#define TW_GK_SAME (UINT64_C(1) << 61)

/* One rank's call. What small calls need comes first, so that it lies in few lines of the cache for
 * parameters: of these each costs a kernel that starts a miss. */
struct tw_gk_call {
    struct tw_gk_state *state;
    const char *in;
    char *out;      /* what this rank reads and writes itself */
    uint64_t bytes; /* of a block */
    int32_t rank, size;
    uint64_t in_stride, out_stride; /* bytes from one rank's block to the next; 0: there is one */
    uint64_t sends, takes;          /* bit p: a block goes to p, comes from p; own bits too */
    char *const *far;               /* [size], in device memory; NULL: near */
    struct tw_gk_layout layout;
    char *near[TW_GK_NEAR]; /* each rank's memory, as this device addresses it; or, of more ranks:
                               far */
    uint32_t op;            /* twill_redop_t */
    uint32_t elem_bytes;
    const void *scalar_at; /* of premul_sum; NULL: scalar */
    uint64_t scalar;
    uint32_t words[TW_GK_WORDS]; /* of its record */
    uint32_t direct;             /* not 0: peers write to `out`, which out_word tells them */
    uint32_t lanes;              /* of rings: 1, or 2 where sums go by rings too */
    uint64_t in_word, out_word;  /* what records say; 0: by ring; of a plan: its hash */
    const uint64_t *bases;       /* [slots][size]: where ranks' registered memory begins */
    struct tw_gk_host *host;
    uint32_t chunk; /* bytes, whole units: ranks, which are two, push where both are APART, or SAME;
                       or 0 */
};

/* How a kernel of small calls stands among others of its stream (comm/gpu_early.c). */
enum tw_gk_early {
    TW_GK_LEADS = 1,  /* the next one may begin before it has ended */
    TW_GK_FOLLOWS = 2 /* it may begin before the last one has */
};

/* Of capability 9.0. Code that is made from older PTX does neither, on whatever device. */
#define TW_GK_EARLY_PTX 90

/* A launch: `blocks` blocks, a row of the grid, for each of `ranks` ranks of one device. */
struct tw_gk_launch {
    uint32_t ranks, blocks;
    uint32_t early; /* enum tw_gk_early, together: of lines only */
    struct tw_gk_call call[TW_GK_JOINT_MAX];
};

/*
 * Calls whose blocks differ: what goes to a peer and what comes from it, bytes from in and out.
 * Where `sends` or `takes` lacks a peer, so many are 0. Only these two ranks may know of their
 * blocks: they tell each other both sides, so that either sees what does not fit before it writes
 * to the other's output.
 */
struct tw_gk_pair {
    uint64_t in_at, in_bytes, out_at, out_bytes;
};
struct tw_gk_launch_v {
    struct tw_gk_launch launch; /* strides and bytes are not looked at */
    struct tw_gk_pair pairs[TW_GK_JOINT_MAX * TW_GK_RANKS_MAX]; /* [ranks][size] */
};

/* A send or a receive. Those from one rank to another are a list, which stands together, in order,
 * and which groups of threads of its own run. What a rank sends to itself is one list of a send and
 * its receive in turn. */
enum tw_gk_op_kind { TW_GK_SEND, TW_GK_RECV, TW_GK_SELF };
struct tw_gk_op {
    char *at;
    uint64_t bytes;
    uint64_t word;  /* of a receive: what its post says of `at`; 0: by slots */
    uint8_t kind;   /* enum tw_gk_op_kind */
    uint8_t elem;   /* bytes of an element */
    uint16_t place; /* of the rank, in the launch */
    uint16_t peer;
    uint16_t type; /* twill_type_t */
    /* of a list's first; else 0 */
    uint16_t ops;    /* how many there are */
    uint16_t direct; /* not 0: all right to the receiver's buffers */
    uint16_t group,
        groups; /* of the rank's: the first, and how many; receives that are direct: 1 */
};

/* What is read of it ends with the last operation. */
struct tw_gk_launch_p2p {
    struct tw_gk_launch launch; /* of each call: rank, size, memory, layout */
    uint32_t ops;
    struct tw_gk_op op[TW_GK_OPS_MAX];
};

/*
 * Plans. A rank's program and what its lanes keep from slice to slice lie in device memory of its
 * own; FIFOs, scratch and signal words, which peers write, in its part of the rank's memory. Words
 * there are of eight bytes: a count, and above it the epoch of the call that it is of, so that
 * nobody has to clear them: of another call it counts as 0. Before the first step of a call all
 * ranks have begun it, and before it ends all have done their last one: the calls of any kind
 * before and behind it never meet its traffic.
 */
#define TW_GK_PLAN_FIFOS 32
#define TW_GK_PLAN_SIGNALS 64 /* for each rank */
#define TW_GK_PLAN_HEAD 16    /* bytes in front of a slot's data; the first word says how many */
#define TW_GK_PLAN_PARTS 8
/* bytes from a rank's part for plans to its FIFOs; [size - 1] of them, then scratch */
#define TW_GK_PLAN_FIFOS_AT(size) ((TW_GK_PLAN_SIGNALS + 2 * TW_GK_PLAN_FIFOS) * (size)*8)

/* Operands and results of a step, the values of enum tw_exec_at. */
enum tw_gk_at {
    TW_GK_AT_NONE,
    TW_GK_AT_SRC,
    TW_GK_AT_DST,
    TW_GK_AT_PEER_SRC,
    TW_GK_AT_PEER_DST,
    TW_GK_AT_MESSAGE,
    TW_GK_AT_SLOT
};
enum tw_gk_step_kind { TW_GK_STEP_DATA, TW_GK_STEP_SIGNAL, TW_GK_STEP_WAIT };
enum tw_gk_step_flag { /* the values of enum tw_plan_flag */
                       TW_GK_STEP_STORE = 1,
                       TW_GK_STEP_ACC_RIGHT = 2,
                       TW_GK_STEP_FINAL = 4,
                       TW_GK_STEP_ROUND = 8,
                       TW_GK_STEP_WHOLE = 16
};
#define TW_GK_NO_LANE 0xffffu
enum tw_gk_buf { TW_GK_BUF_IN, TW_GK_BUF_OUT, TW_GK_BUF_SCRATCH, TW_GK_BUF_WIDE };

struct tw_gk_span {
    uint8_t buf, part; /* enum tw_gk_buf */
    uint32_t first, block, stride, cells;
};
struct tw_gk_step {
    uint8_t kind, local, other, to; /* enum tw_gk_step_kind; enum tw_gk_at */
    uint8_t flags;
    uint8_t relays; /* not 0: without spans the message goes on as it is */
    uint16_t dep_lane;
    uint32_t dep_step;
    int32_t from, to_rank;
    uint16_t fifo_in, fifo_out;
    struct tw_gk_span src, dst; /* of no cells: none */
    uint32_t sig, sig_value;
};
struct tw_gk_lane {
    uint32_t first, steps; /* in the program's list */
};
/* A rank's program, in its device memory. */
struct tw_gk_program {
    uint32_t lanes;
    const struct tw_gk_lane *lane;
    const struct tw_gk_step *step;
    uint64_t *done;         /* [lanes]: slices that have ended, loop by loop, step by step */
    uint32_t *loops;        /* [lanes]: of the running call */
    uint64_t *sent, *taken; /* [size][TW_GK_PLAN_FIFOS]: messages */
};

/* A partition of a call. */
struct tw_gk_part {
    uint32_t per;
    uint64_t count, each, rest;
    uint32_t shift;
    uint32_t counted; /* groups have counts of their own, those of the call's pairs: 0 no, 1 what
                         goes to the ranks, 2 what comes from them */
};
/* What a call makes of a plan. */
struct tw_gk_plan {
    const struct tw_gk_program *program;
    uint64_t slice_elems, loops;
    uint32_t slices;
    uint32_t depth;                       /* of a FIFO, in slots */
    uint32_t stride;                      /* bytes from slot to slot */
    uint64_t room_bytes, wide_room_bytes; /* of a cell of SCRATCH and of WIDE */
    uint64_t wide_at;                     /* bytes from the start of SCRATCH */
    uint32_t sig_max;
    uint8_t sits_out; /* not 0: steps sit out the loops that their cells do not reach */
    uint8_t widens;   /* not 0: some cells are WIDE */
    uint8_t varies;   /* not 0: the call's pairs are there */
    struct tw_gk_part parts[TW_GK_PLAN_PARTS];
};
struct tw_gk_launch_plan {
    struct tw_gk_launch_v v;
    struct tw_gk_plan plan[TW_GK_JOINT_MAX];
};

enum tw_gk_kernel {
    TW_GK_LINE_REDUCE,    /* small: sum of the blocks that come */
    TW_GK_LINE_MOVE,      /* small: blocks are put in their places */
    TW_GK_RING_SCATTER,   /* large reduce_scatter and reduce: sums of the blocks that come */
    TW_GK_RING_ALL,       /* large all_reduce: sum of one's share, then everybody gets it */
    TW_GK_RING_MOVE,      /* large: blocks are put in their places */
    TW_GK_DIRECT_SCATTER, /* as RING_SCATTER and RING_ALL, where everybody reads everybody's input,
                             or two ranks push */
    TW_GK_DIRECT_ALL,
    TW_GK_PUSH_ALL, /* as RING_ALL, where everybody writes to everybody's output: the same kernel */
    TW_GK_SCATTER_V, /* sums of blocks that differ */
    TW_GK_MOVE_V,    /* blocks that differ are put in their places */
    TW_GK_P2P_FEW,   /* sends and receives, TW_GK_OPS_FEW at most */
    TW_GK_P2P_MANY,
    TW_GK_PLAN,       /* any plan */
    TW_GK_COPY_BEGIN, /* large, by copy engines: before the copies, and behind them */
    TW_GK_COPY_END,
    TW_GK_COPY_OWN, /* beside them: what a rank sends to itself */
    TW_GK_KERNELS
};

#endif
