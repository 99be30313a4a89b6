/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: levels, subsystems, where lines go. Never knows: who logs. */
#ifndef TW_BASE_LOG_H
#define TW_BASE_LOG_H

#include <stdbool.h>

#include "twill.h"

enum tw_log_level {
    TW_LOG_NONE,
    TW_LOG_ERROR,
    TW_LOG_WARN,
    TW_LOG_INFO,
    TW_LOG_DEBUG,
    TW_LOG_TRACE
};

#define TW_LOG_SUBSYS_LIST(X)                                                                      \
    X(BASE, "base")                                                                                \
    X(TOPO, "topo")                                                                                \
    X(PLAN, "plan")                                                                                \
    X(ALGO, "algo") X(NET, "net") X(CHAN, "chan") X(EXEC, "exec") X(COMM, "comm") X(API, "api")
enum tw_log_subsys {
#define TW_LOG_ENUM(name, text) TW_SUB_##name,
    TW_LOG_SUBSYS_LIST(TW_LOG_ENUM)
#undef TW_LOG_ENUM
        TW_SUB_COUNT
};

extern int tw_log_levels[TW_SUB_COUNT]; /* written by tw_log_configure only, read relaxed */

/**
 * TWILL_LOG's grammar: "warn", or "info,net=debug,plan=trace"; the file's: %h host, %p pid, %r the
 * rank in the environment. NULL or "" file: stderr. Callable again; default is warn to stderr.
 */
enum twill_status tw_log_configure(const char *levels, const char *file);

/** One line, written with one write(2): "twill[pid] level subsys: text". */
void tw_log_write(enum tw_log_subsys subsys, enum tw_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline bool tw_log_on(enum tw_log_subsys subsys, enum tw_log_level level)
{
    return (int)level <= __atomic_load_n(&tw_log_levels[subsys], __ATOMIC_RELAXED);
}

#define tw_log(subsys, level, ...)                                                                 \
    do {                                                                                           \
        if (tw_log_on(subsys, level))                                                              \
            tw_log_write(subsys, level, __VA_ARGS__);                                              \
    } while (0)
#define tw_warn(subsys, ...) tw_log(subsys, TW_LOG_WARN, __VA_ARGS__)
#define tw_info(subsys, ...) tw_log(subsys, TW_LOG_INFO, __VA_ARGS__)
#define tw_debug(subsys, ...) tw_log(subsys, TW_LOG_DEBUG, __VA_ARGS__)

#endif
