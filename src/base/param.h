/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the table of parameters, the environment. Never knows: what a parameter does. */
#ifndef TW_BASE_PARAM_H
#define TW_BASE_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "twill.h"

#define TW_PARAM_STRING_BYTES 256

/* C types of the table's types */
#define TW_PARAM_C_STRING(field) char field[TW_PARAM_STRING_BYTES]
#define TW_PARAM_C_INT(field) int64_t field
#define TW_PARAM_C_BOOL(field) bool field
#define TW_PARAM_C_BYTES(field) uint64_t field
#define TW_PARAM_C_NS(field) uint64_t field

struct tw_params {
#define X(name, field, type, dflt, unit, doc) TW_PARAM_C_##type(field);
#include "base/param.def"
#undef X
};

enum tw_param_source { TW_PARAM_DEFAULT, TW_PARAM_ENV, TW_PARAM_SET };

/** One row as twill-info and docs/params.md show it. Strings are static or live as long as the
 * process. */
struct tw_param_row {
    const char *name, *type, *unit, *dflt, *doc; /* name without TWILL_ */
    enum tw_param_source source;
    char value[TW_PARAM_STRING_BYTES]; /* as text */
};

/**
 * Read the environment (once) and freeze: later tw_param_set fails with ERR_USAGE. A value that
 * does not parse is an error that names variable, value and what is expected. An unknown TWILL_*
 * variable is warned of once, with the nearest known name. Thread-safe.
 */
enum twill_status tw_params_get(const struct tw_params **params);

/** The same without freezing, into the caller's struct: for tools that only show. */
enum twill_status tw_params_peek(struct tw_params *params);

enum twill_status tw_param_set(const char *name, const char *value);
/** The value where neither the environment nor tw_param_set has one, instead of the table's. */
enum twill_status tw_param_default(const char *name, const char *value);
/** Its text now, cut to bytes - 1 letters; does not freeze. ERR_INVALID: no such parameter. */
enum twill_status tw_param_get(const char *name, char *value, size_t bytes);

/** Rows of the table; row i filled, false past the end. */
bool tw_param_row(size_t i, struct tw_param_row *row);

/** The rank that the launcher put into the environment, as text; "x" when there is none. For names
 * of log files, before parameters are read. */
const char *tw_param_env_rank(void);

/** Undo freeze and sets: for tests. */
void tw_params_reset(void);

#endif
