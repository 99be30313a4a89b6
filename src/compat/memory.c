/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the calls that give, register and share memory. Never knows: how peers reach it. */
#include "config.h"

#include <stdlib.h>

#include "compat/compat.h"

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
    int device = TWILL_DEVICE_HOST;
    if (!ptr)
        return tw_compat_fail(ncclInvalidArgument, "ncclMemAlloc: the output is NULL");
    enum twill_status status = twill_current_device(&device);
    if (status == TWILL_OK)
        status = twill_mem_alloc(ptr, size, device);
    return tw_compat_say(status, NULL);
}
TW_COMPAT_TWIN(MemAlloc);

ncclResult_t ncclMemFree(void *ptr) { return tw_compat_say(twill_mem_free(ptr), NULL); }
TW_COMPAT_TWIN(MemFree);

/* ---- a communicator's ---------------------------------------------------------------------------
 */

/* @return NULL: *result says why */
static struct ncclWindow *window_new(const char *call, void *ptr, size_t bytes, bool is_window,
                                     ncclResult_t *result)
{
    if (!ptr || !bytes || (uintptr_t)ptr + bytes < (uintptr_t)ptr) {
        *result = tw_compat_fail(ncclInvalidArgument, "%s: %zu bytes at %p are no memory", call,
                                 bytes, ptr);
        return NULL;
    }
    struct ncclWindow *window = calloc(1, sizeof *window);
    if (!window) {
        *result = tw_compat_fail(ncclSystemError, "%s: no memory", call);
        return NULL;
    }
    window->ptr = ptr;
    window->bytes = bytes;
    window->is_window = is_window;
    return window;
}

static void window_keep(ncclComm_t comm, struct ncclWindow *window)
{
    window->next = comm->windows;
    comm->windows = window;
}

/* Out of comm's list. @return whether it was there, and of that kind */
static bool window_take(ncclComm_t comm, const struct ncclWindow *window, bool is_window)
{
    struct ncclWindow **at = &comm->windows;
    while (*at && *at != window)
        at = &(*at)->next;
    if (!*at || (*at)->is_window != is_window)
        return false;
    *at = (*at)->next;
    return true;
}

void tw_compat_windows_drop(ncclComm_t comm)
{
    while (comm->windows) {
        struct ncclWindow *window = comm->windows;
        comm->windows = window->next;
        free(window);
    }
}

/* ---- registrations ------------------------------------------------------------------------------
 */

/*
 * NCCL's registrations are local: a rank may register what others do not, and nobody waits. twill's
 * are collective. So this one is noted, and its calls are staged like any others.
 */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    static const char call[] = "ncclCommRegister";
    if (!handle)
        return tw_compat_fail(ncclInvalidArgument, "%s: the output is NULL", call);
    ncclResult_t result = tw_compat_enter(comm, call);
    if (result != ncclSuccess)
        return result;
    struct ncclWindow *window = window_new(call, buff, size, false, &result);
    if (window) {
        window_keep(comm, window);
        *handle = window;
    }
    tw_compat_leave(comm);
    return result;
}
TW_COMPAT_TWIN(CommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    static const char call[] = "ncclCommDeregister";
    if (!handle)
        return ncclSuccess;
    ncclResult_t result = tw_compat_enter(comm, call);
    if (result != ncclSuccess)
        return result;
    if (window_take(comm, handle, false))
        free(handle);
    else
        result = tw_compat_fail(ncclInvalidArgument,
                                "%s: %p is no registration of this communicator", call, handle);
    tw_compat_leave(comm);
    return result;
}
TW_COMPAT_TWIN(CommDeregister);

/* ---- windows ------------------------------------------------------------------------------------
 */

ncclResult_t tw_compat_window_open(const struct tw_compat_item *item)
{
    struct ncclWindow *window = item->window;
    twill_comm_t comm = item->comm->comm;
    enum twill_status status =
        item->flags & NCCL_WIN_COLL_SYMMETRIC
            ? twill_register_symmetric(comm, window->ptr, window->bytes, &window->reg)
            : twill_register(comm, window->ptr, window->bytes, &window->reg);
    if (status == TWILL_OK) {
        window_keep(item->comm, window);
        *item->window_out = window;
        return ncclSuccess;
    }
    free(window);
    ncclResult_t result = tw_compat_say(status, comm);
    /* memory that cannot be shared, on every rank: no window, and calls are staged */
    return status == TWILL_ERR_UNSUPPORTED ? ncclSuccess : result;
}

ncclResult_t tw_compat_window_close(const struct tw_compat_item *item)
{
    enum twill_status status = twill_deregister(item->comm->comm, item->window->reg);
    if (status != TWILL_ERR_INVALID && status != TWILL_ERR_USAGE && status != TWILL_ERR_BUSY)
        free(item->window);
    else
        window_keep(item->comm, item->window);
    return tw_compat_say(status, item->comm->comm);
}

void tw_compat_window_undo(const struct tw_compat_item *item)
{
    if (item->kind == TW_COMPAT_WINDOW)
        free(item->window);
    else
        window_keep(item->comm, item->window);
}

/* comm is entered: now, or at the group's end. */
static ncclResult_t window_run(const struct tw_compat_item *item)
{
    if (tw_compat_group_open() && tw_compat_group_note(item))
        return ncclSuccess;
    ncclResult_t result = ncclSystemError;
    if (tw_compat_group_open())
        tw_compat_window_undo(item);
    else
        result = item->kind == TW_COMPAT_WINDOW ? tw_compat_window_open(item)
                                                : tw_compat_window_close(item);
    tw_compat_leave(item->comm);
    return result;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
                                    int flags)
{
    static const char call[] = "ncclCommWindowRegister";
    struct tw_compat_item item = {
        .kind = TW_COMPAT_WINDOW, .comm = comm, .window_out = win, .flags = flags};
    if (!win)
        return tw_compat_fail(ncclInvalidArgument, "%s: the output is NULL", call);
    *win = NULL;
    ncclResult_t result = tw_compat_enter(comm, call);
    if (result != ncclSuccess)
        return result;
    item.window = window_new(call, buff, size, true, &result);
    if (item.window)
        return window_run(&item);
    tw_compat_leave(comm);
    return result;
}
TW_COMPAT_TWIN(CommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    static const char call[] = "ncclCommWindowDeregister";
    const struct tw_compat_item item = {.kind = TW_COMPAT_CLOSE, .comm = comm, .window = win};
    if (!win)
        return ncclSuccess; /* what a window was asked for, and could not be shared */
    ncclResult_t result = tw_compat_enter(comm, call);
    if (result != ncclSuccess)
        return result;
    if (window_take(comm, win, true))
        return window_run(&item);
    tw_compat_leave(comm);
    return tw_compat_fail(ncclInvalidArgument, "%s: %p is no window of this communicator", call,
                          (void *)win);
}
TW_COMPAT_TWIN(CommWindowDeregister);
