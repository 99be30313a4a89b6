/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: status values and the calling thread's error sentences.
 * Never knows: communicators (a key is a number). */
#ifndef TW_BASE_STATUS_H
#define TW_BASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "twill.h"

#define TW_ERROR_TEXT_BYTES 512

/**
 * Say what went wrong, at its origin: logs the sentence once (level warn) and keeps it as the
 * calling thread's newest failure. No allocation.
 *
 * @param status  a negative status
 * @param format  lower case, with object, value and cause
 * @return status, so that callers can write `return tw_fail(...)`
 */
enum twill_status tw_fail(enum twill_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** As tw_fail, with ": strerror(error)" behind the sentence. */
enum twill_status tw_fail_errno(enum twill_status status, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#if defined(__clang_analyzer__)
/* The analyzer does not look into status.c: let it see that what comes back is what was given, and
 * so no TWILL_OK. */
#define tw_fail(status, ...) ((void)tw_fail(status, __VA_ARGS__), (status))
#define tw_fail_errno(status, error, ...)                                                          \
    ((void)tw_fail_errno(status, error, __VA_ARGS__), (status))
#endif

/** A failure that was said and logged elsewhere (another thread, a communicator's own) becomes this
 * thread's newest. @return status */
enum twill_status tw_fail_again(enum twill_status status, const char *text);

/** The sentence of this thread's newest tw_fail; "" before any. */
const char *tw_fail_text(void);

/**
 * Keep the newest failure under key in this thread. key 0: the place for calls without a
 * communicator; others never come twice, so that what is kept is never taken for another's. The
 * newest 16 others of a thread are remembered.
 */
void tw_last_error_keep(uint64_t key);

/** As above with a given text. */
void tw_last_error_set(uint64_t key, const char *text);

/** Text kept for key in this thread, or NULL. */
const char *tw_last_error_find(uint64_t key);

static inline bool tw_failed(enum twill_status status) { return status < 0; }

/** Bytes of one element; 0 for a value that is no type. */
size_t tw_type_bytes(twill_type_t type);
/** "float32", "int8", ...; NULL for a value that is no type. */
const char *tw_type_name(twill_type_t type);
/* What a created sum is inside the library, whatever its handle: it reduces as sum does, after each
 * rank has multiplied its input. Not a value for callers. */
#define TW_REDOP_PREMUL_SUM ((twill_redop_t)(TWILL_BXOR + 1))
#define TW_REDOP_COUNT (TWILL_BXOR + 2)
/** "sum", "prod", ..., "premul_sum"; NULL for a value that is no operation. */
const char *tw_redop_name(twill_redop_t op);

#endif
