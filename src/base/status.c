/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: status values, names of types, the calling thread's error sentences.
 * Never knows: communicators (a key is a number). */
#include "config.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define KEPT_KEYS (1 + 16) /* the first slot is key 0's own: no communicator drives it out */

struct kept_error {
    uint64_t key;
    uint64_t stamp; /* 0: free; otherwise when it was kept, newest largest */
    char text[TW_ERROR_TEXT_BYTES];
};

static _Thread_local char newest_text[TW_ERROR_TEXT_BYTES];
static _Thread_local struct kept_error kept[KEPT_KEYS];
static _Thread_local uint64_t newest_stamp;

const char *twill_status_string(enum twill_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text)                                                             \
    case TWILL_##name:                                                                             \
        return "TWILL_" #name;
        TWILL_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "TWILL_UNKNOWN";
}

/* Formats beside newest_text, which the arguments may point into. */
static void format_sentence(char *text, const char *format, va_list args)
{
    if (vsnprintf(text, TW_ERROR_TEXT_BYTES, format, args) < 0)
        (void)snprintf(text, TW_ERROR_TEXT_BYTES, "an error whose sentence does not format");
}

static enum twill_status publish(enum twill_status status, const char *text)
{
    memcpy(newest_text, text, strlen(text) + 1);
    tw_log(TW_SUB_BASE, TW_LOG_WARN, "%s: %s", twill_status_string(status), text);
    return status;
}

enum twill_status(tw_fail)(enum twill_status status, const char *format, ...)
{
    char text[TW_ERROR_TEXT_BYTES];
    va_list args;

    va_start(args, format);
    format_sentence(text, format, args);
    va_end(args);
    return publish(status, text);
}

enum twill_status(tw_fail_errno)(enum twill_status status, int error, const char *format, ...)
{
    char text[TW_ERROR_TEXT_BYTES];
    char reason[128];
    va_list args;

    va_start(args, format);
    format_sentence(text, format, args);
    va_end(args);
    size_t used = strlen(text);
    /* the GNU variant answers a pointer, which need not be the buffer */
    const char *why = strerror_r(error, reason, sizeof(reason));
    (void)snprintf(text + used, sizeof(text) - used, ": %s", why);
    return publish(status, text);
}

enum twill_status tw_fail_again(enum twill_status status, const char *text)
{
    if (text != newest_text)
        (void)snprintf(newest_text, sizeof(newest_text), "%s", text);
    return status;
}

const char *tw_fail_text(void) { return newest_text; }

static struct kept_error *kept_find(uint64_t key)
{
    for (size_t i = 0; i < KEPT_KEYS; i++) {
        if (kept[i].stamp != 0 && kept[i].key == key)
            return &kept[i];
    }
    return NULL;
}

static struct kept_error *kept_oldest(void)
{
    struct kept_error *oldest = &kept[1];

    for (size_t i = 2; i < KEPT_KEYS; i++) {
        if (kept[i].stamp < oldest->stamp)
            oldest = &kept[i];
    }
    return oldest;
}

void tw_last_error_set(uint64_t key, const char *text)
{
    struct kept_error *entry = key == 0 ? &kept[0] : kept_find(key);

    if (entry == NULL)
        entry = kept_oldest();
    entry->key = key;
    entry->stamp = ++newest_stamp;
    if (text != entry->text)
        (void)snprintf(entry->text, sizeof(entry->text), "%s", text);
}

void tw_last_error_keep(uint64_t key) { tw_last_error_set(key, newest_text); }

const char *tw_last_error_find(uint64_t key)
{
    const struct kept_error *entry = kept_find(key);

    return entry != NULL ? entry->text : NULL;
}

size_t tw_type_bytes(twill_type_t type)
{
    static const size_t type_bytes[] = {
#define TYPE_BYTES(name, value, bytes) [value] = (bytes),
        TWILL_TYPE_LIST(TYPE_BYTES)
#undef TYPE_BYTES
    };
    size_t i = (size_t)type;

    return i < sizeof(type_bytes) / sizeof(type_bytes[0]) ? type_bytes[i] : 0;
}

const char *tw_type_name(twill_type_t type)
{
    static const char *const names[] = {
        [TWILL_INT8] = "int8",
        [TWILL_UINT8] = "uint8",
        [TWILL_INT32] = "int32",
        [TWILL_UINT32] = "uint32",
        [TWILL_INT64] = "int64",
        [TWILL_UINT64] = "uint64",
        [TWILL_FLOAT16] = "float16",
        [TWILL_FLOAT32] = "float32",
        [TWILL_FLOAT64] = "float64",
        [TWILL_BFLOAT16] = "bfloat16",
        [TWILL_FLOAT8E4M3] = "float8e4m3",
        [TWILL_FLOAT8E5M2] = "float8e5m2",
    };
    size_t i = (size_t)type;

    return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

const char *tw_redop_name(twill_redop_t op)
{
    static const char *const names[] = {
        [TWILL_SUM] = "sum", [TWILL_PROD] = "prod", [TWILL_MAX] = "max",
        [TWILL_MIN] = "min", [TWILL_AVG] = "avg",   [TWILL_BAND] = "band",
        [TWILL_BOR] = "bor", [TWILL_BXOR] = "bxor", [TW_REDOP_PREMUL_SUM] = "premul_sum",
    };
    size_t i = (size_t)op;

    return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}
