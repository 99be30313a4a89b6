/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how NCCL's library is found and opened, and what it serves. Never knows: what is asked of
 * it then. */
#include "config.h"

#include "nccl_api.h"

#include <dlfcn.h>
#include <string.h>

#include "cli.h"

struct perf_nccl_api perf_nccl_api;

bool perf_nccl_serves(enum perf_op op, twill_redop_t redop)
{
    switch (op) {
    case PERF_ALL_REDUCE:
    case PERF_REDUCE:
    case PERF_REDUCE_SCATTER:
        return redop <= TWILL_AVG;
    case PERF_BROADCAST:
    case PERF_ALL_GATHER:
    case PERF_ALL_TO_ALL:
    case PERF_SEND_RECV:
        return true;
    default:
        return false;
    }
}

/* POSIX promises that a function's address survives as a void pointer. */
static bool symbol_find(void *library, const char *name, void *field)
{
    void *found = dlsym(library, name);
    memcpy(field, &found, sizeof(found));
    return found;
}

struct symbol {
    const char *name;
    void *field;
};
static const struct symbol needed[] = {
    {"ncclGetVersion", (void *)&perf_nccl_api.get_version},
    {"ncclGetErrorString", (void *)&perf_nccl_api.error_string},
    {"ncclGetUniqueId", (void *)&perf_nccl_api.get_id},
    {"ncclCommInitRank", (void *)&perf_nccl_api.init_rank},
    {"ncclCommInitAll", (void *)&perf_nccl_api.init_all},
    {"ncclCommDestroy", (void *)&perf_nccl_api.destroy},
    {"ncclCommAbort", (void *)&perf_nccl_api.abort},
    {"ncclCommGetAsyncError", (void *)&perf_nccl_api.async_error},
    {"ncclGroupStart", (void *)&perf_nccl_api.group_start},
    {"ncclGroupEnd", (void *)&perf_nccl_api.group_end},
    {"ncclAllReduce", (void *)&perf_nccl_api.all_reduce},
    {"ncclReduce", (void *)&perf_nccl_api.reduce},
    {"ncclBroadcast", (void *)&perf_nccl_api.broadcast},
    {"ncclReduceScatter", (void *)&perf_nccl_api.reduce_scatter},
    {"ncclAllGather", (void *)&perf_nccl_api.all_gather},
    {"ncclSend", (void *)&perf_nccl_api.send},
    {"ncclRecv", (void *)&perf_nccl_api.recv},
};
static const struct symbol newer[] = {
    {"ncclGetLastError", (void *)&perf_nccl_api.last_error},
    {"ncclAlltoAll", (void *)&perf_nccl_api.all_to_all},
    {"ncclMemAlloc", (void *)&perf_nccl_api.mem_alloc},
    {"ncclMemFree", (void *)&perf_nccl_api.mem_free},
    {"ncclCommRegister", (void *)&perf_nccl_api.reg},
    {"ncclCommDeregister", (void *)&perf_nccl_api.dereg},
    {"ncclCommWindowRegister", (void *)&perf_nccl_api.window},
    {"ncclCommWindowDeregister", (void *)&perf_nccl_api.window_end},
};

/* @return the first that is missing; NULL: none */
static const char *symbols_find(void *library)
{
    for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
        symbol_find(library, newer[i].name, newer[i].field);
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (!symbol_find(library, needed[i].name, needed[i].field))
            return needed[i].name;
    return NULL;
}

/* NCCL has all that was asked for by name. */
static int asked_served(const struct perf_options *options)
{
    twill_redop_t redop = options->all_redops ? TWILL_SUM : options->redops[0];
    for (int i = 0; i < options->op_count && !options->all_ops; i++) {
        const struct perf_op_info *info = perf_op_info(options->ops[i]);
        if (!perf_nccl_serves(options->ops[i], redop))
            return cli_usage("--peer nccl: it is not asked for %s%s%s", info->name,
                             info->reduces ? " with " : "",
                             info->reduces ? perf_redop_name(redop) : "");
    }
    return CLI_GO_ON;
}

int perf_nccl_open(const struct perf_options *options)
{
    const char *path = options->nccl_path ? options->nccl_path : "libnccl.so.2";
    int status = asked_served(options);
    if (status != CLI_GO_ON)
        return status;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "twill-perf: --peer nccl: %s\n", dlerror());
        return PERF_EXIT_FAILED;
    }
    const char *missing = symbols_find(library);
    if (!missing && options->registered && (!perf_nccl_api.mem_alloc || !perf_nccl_api.mem_free))
        missing = "ncclMemAlloc";
    if (!missing && options->registered == 1 && (!perf_nccl_api.reg || !perf_nccl_api.dereg))
        missing = "ncclCommRegister";
    if (!missing && options->registered == 2 &&
        (!perf_nccl_api.window || !perf_nccl_api.window_end))
        missing = "ncclCommWindowRegister";
    if (!missing)
        return CLI_GO_ON;
    fprintf(stderr, "twill-perf: --peer nccl: %s has no %s\n", path, missing);
    return PERF_EXIT_FAILED;
}
