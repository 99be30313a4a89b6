/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: numbers with units, as people write them. Never knows: which parameter they are for. */
#ifndef TW_BASE_VALUE_H
#define TW_BASE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* All are free of the locale, take the whole text or nothing, and leave *value alone when they
 * answer false. */

/** "12", "-1", "+3". */
bool tw_value_int(const char *text, int64_t *value);
/** 0 1 no yes off on false true. */
bool tw_value_bool(const char *text, bool *value);
/** "4096", "64K", "1.5M", "2GiB", "512B": powers of 1024; a whole number of bytes. */
bool tw_value_bytes(const char *text, uint64_t *value);
/** "300s", "1.8us", "20ms", "5min", "2h"; a bare number counts unit ("s", "us", ...). A whole
 * number of nanoseconds. */
bool tw_value_ns(const char *text, const char *unit, uint64_t *value);

/** Changes of one letter (insert, drop, replace) between two names. Looks at 64 letters. */
unsigned tw_value_distance(const char *a, const char *b);

#endif
