/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what NCCL's handles are here, and what its functions have in common.
 * Never knows: how twill does it, which decides everything. */
#ifndef TW_COMPAT_COMPAT_H
#define TW_COMPAT_COMPAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "nccl.h"
#include "twill.h"

/* The second name of a function, defined in the same file. */
#define TW_COMPAT_TWIN(name)                                                                       \
    extern __typeof__(nccl##name) pnccl##name __attribute__((alias("nccl" #name)))

/* ---- results (result.c) ------------------------------------------------------------------------
 */

#define TW_COMPAT_TEXT_BYTES 1024

/** Defaults of this interface and its environment, once for the process: before the first call that
 * twill's parameters matter to. */
void tw_compat_start(void);
/** Its part (environment.c): NCCL's variables become defaults of twill's parameters; those that are
 * of no effect are warned of. */
void tw_compat_environment(void);

/** The result that a status is, by the table of docs/nccl.md. */
ncclResult_t tw_compat_result(enum twill_status status);
/** The same, and its sentence, comm's (NULL: that of calls without one), is the thread's last. */
ncclResult_t tw_compat_say(enum twill_status status, twill_comm_t comm);
/** An error of this interface's own. */
ncclResult_t tw_compat_fail(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** The thread's last sentence is this one. */
void tw_compat_text_set(const char *text);
/** The thread's last sentence. */
const char *tw_compat_text(void);

/* ---- communicators (handle.c) ------------------------------------------------------------------
 */

/* Memory of a communicator: registered here (reg NULL: a hint), or a window. */
struct ncclWindow {
    struct ncclWindow *next; /* of the communicator */
    void *ptr;               /* the user's */
    size_t bytes;
    bool is_window;
    twill_reg_t reg;
};

/*
 * A handle's memory is never given back, only used again much later: so a handle that was destroyed
 * is known as such, and a thread may be inside a call while another aborts.
 */
struct ncclComm {
    _Atomic uint32_t word;      /* who is inside, see handle.c; 0: free */
    _Atomic bool revoked;       /* only queries, shrink, abort and destroy are of use */
    twill_comm_t comm;          /* NULL until it is made */
    int device;                 /* as in twill_config */
    struct ncclWindow *windows; /* owned; one thread at a time, as calls are */
    /* Under the handles' lock: those that came out of it and are still connecting. */
    struct ncclComm *parent, *children, *sibling;
    struct ncclComm *next; /* of the free ones */
};

/** A new handle, without a communicator. NULL: no memory (tw_compat_fail was called) */
ncclComm_t tw_compat_comm_new(const char *call);
/** One that got no communicator. */
void tw_compat_comm_drop(ncclComm_t comm);

/**
 * A call begins: comm is one, and stays until the call has left, whoever aborts it.
 *
 * @return ncclSuccess, or ncclInvalidArgument (tw_compat_fail was called)
 */
ncclResult_t tw_compat_enter(ncclComm_t comm, const char *call);
/** It ends. The last one to leave an aborted communicator frees it. */
void tw_compat_leave(ncclComm_t comm);
/** The same for a question, which destroy waits for. */
ncclResult_t tw_compat_ask(ncclComm_t comm, const char *call);
void tw_compat_asked(ncclComm_t comm);
/** A call of comm, entered, ends with this status; in a group it was noted, and an error spoils the
 * group. */
ncclResult_t tw_compat_end(ncclComm_t comm, enum twill_status status);

/** Free it when the last has left; comm is entered. */
void tw_compat_doom(ncclComm_t comm);
/** Destroy it; comm is entered, which ends in any case. */
ncclResult_t tw_compat_destroy(ncclComm_t comm);
/** Free what nobody is inside of; not in a group. */
void tw_compat_reap(ncclComm_t comm);

/** child comes out of parent and is still connecting. */
void tw_compat_adopt(ncclComm_t parent, ncclComm_t child);
/** Something that came out of comm is still connecting. */
bool tw_compat_expecting(ncclComm_t comm);

/* ---- groups (group.c): the calling thread's
 * ------------------------------------------------------ */

bool tw_compat_group_open(void);
/** An error of a call in the group: its end is this error and nothing of it runs. */
void tw_compat_group_spoil(ncclResult_t result);
/** A call of comm, entered, was noted: it leaves at the group's end. */
void tw_compat_group_keep(ncclComm_t comm);

enum tw_compat_kind {
    TW_COMPAT_NEW,    /* comm gets its communicator: *out is filled */
    TW_COMPAT_KEEP,   /* comm was used, and leaves */
    TW_COMPAT_WINDOW, /* window is registered with comm: *window_out is filled */
    TW_COMPAT_CLOSE,  /* window is deregistered */
    TW_COMPAT_DESTROY,
    TW_COMPAT_REAP,
};
/* What is left to do at the outermost group's end. comm is entered, but of NEW and REAP. */
struct tw_compat_item {
    enum tw_compat_kind kind;
    ncclComm_t comm;
    ncclComm_t parent; /* NEW: that it comes out of, or NULL; entered as well */
    ncclComm_t *out;
    struct ncclWindow *window; /* owned */
    ncclWindow_t *window_out;
    int flags;
};
/** @return false: no memory (tw_compat_fail was called) */
bool tw_compat_group_note(const struct tw_compat_item *item);

/* ---- the rest
 * ------------------------------------------------------------------------------------ */

/** A config of any version, NULL too, as twill has it; config->device is left. */
ncclResult_t tw_compat_config(const char *call, const ncclConfig_t *config,
                              struct twill_config *out);

/** Collectives of comm: register or deregister one window. comm is entered. */
ncclResult_t tw_compat_window_open(const struct tw_compat_item *item);
ncclResult_t tw_compat_window_close(const struct tw_compat_item *item);
/** Neither: the group came to nothing. */
void tw_compat_window_undo(const struct tw_compat_item *item);
/** Forget what is left of comm's. */
void tw_compat_windows_drop(ncclComm_t comm);

#endif
