/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: numbers with units, as people write them. Never knows: which parameter they are for. */
#include "config.h"

#include "base/value.h"

#include <stddef.h>
#include <string.h>

#define NAME_LETTERS 64
#define FRACTION_DIGITS 18

__extension__ typedef unsigned __int128 wide; /* product of a fraction and a unit */

struct unit {
    const char *name;
    uint64_t scale;
};

static const struct unit byte_units[] = {
    {"", 1},
    {"B", 1},
    {"K", 1ull << 10},
    {"KB", 1ull << 10},
    {"KiB", 1ull << 10},
    {"M", 1ull << 20},
    {"MB", 1ull << 20},
    {"MiB", 1ull << 20},
    {"G", 1ull << 30},
    {"GB", 1ull << 30},
    {"GiB", 1ull << 30},
    {"T", 1ull << 40},
    {"TB", 1ull << 40},
    {"TiB", 1ull << 40},
    {NULL, 0},
};

static const struct unit time_units[] = {
    {"ns", 1},
    {"us", 1000},
    {"ms", 1000000},
    {"s", 1000000000},
    {"min", 60000000000ull},
    {"h", 3600000000000ull},
    {NULL, 0},
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits to a number; moves *text behind them. @return false for no digit or too large */
static bool digits_read(const char **text, uint64_t *value)
{
    const char *at = *text;
    uint64_t sum = 0;

    if (!is_digit(*at))
        return false;
    for (; is_digit(*at); at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *text = at;
    *value = sum;
    return true;
}

bool tw_value_int(const char *text, int64_t *value)
{
    bool negative = *text == '-';
    uint64_t magnitude = 0;

    if (*text == '-' || *text == '+')
        text++;
    if (!digits_read(&text, &magnitude) || *text != '\0')
        return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

bool tw_value_bool(const char *text, bool *value)
{
    static const char *const words[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i % 2 == 1;
            return true;
        }
    }
    return false;
}

static bool unit_find(const struct unit *units, const char *name, uint64_t *scale)
{
    for (; units->name != NULL; units++) {
        if (strcmp(units->name, name) == 0) {
            *scale = units->scale;
            return true;
        }
    }
    return false;
}

/* A fraction of a unit: digits at fraction, each worth scale/10, scale/100, ...; must be whole. */
static bool fraction_scale(const char *fraction, size_t digits, uint64_t scale, uint64_t *value)
{
    wide numerator = 0;
    wide denominator = 1;

    if (digits > FRACTION_DIGITS)
        return false;
    for (size_t i = 0; i < digits; i++) {
        numerator = numerator * 10 + (wide)(fraction[i] - '0');
        denominator *= 10;
    }
    numerator *= scale;
    if (numerator % denominator != 0)
        return false;
    *value = (uint64_t)(numerator / denominator);
    return true;
}

/* "whole[.fraction]unit"; unit "" stands for bare. */
static bool quantity_read(const char *text, const struct unit *units, const char *bare,
                          uint64_t *value)
{
    uint64_t whole = 0;
    uint64_t part = 0;
    uint64_t scale = 0;
    const char *fraction = "";
    size_t digits = 0;

    if (!digits_read(&text, &whole))
        return false;
    if (*text == '.') {
        fraction = ++text;
        digits = strspn(fraction, "0123456789");
        text += digits;
        if (digits == 0)
            return false;
    }
    if (!unit_find(units, *text != '\0' ? text : bare, &scale))
        return false;
    if (!fraction_scale(fraction, digits, scale, &part) || whole > (UINT64_MAX - part) / scale)
        return false;
    *value = whole * scale + part;
    return true;
}

bool tw_value_bytes(const char *text, uint64_t *value)
{
    return quantity_read(text, byte_units, "", value);
}

bool tw_value_ns(const char *text, const char *unit, uint64_t *value)
{
    return quantity_read(text, time_units, unit, value);
}

/* Levenshtein's distance by Wagner and Fischer's table, one row at a time. */
unsigned tw_value_distance(const char *a, const char *b)
{
    unsigned row[NAME_LETTERS + 1];
    size_t a_letters = strnlen(a, NAME_LETTERS);
    size_t b_letters = strnlen(b, NAME_LETTERS);

    for (size_t j = 0; j <= b_letters; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_letters; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_letters; j++) {
            unsigned replaced = diagonal + (a[i - 1] != b[j - 1]);
            unsigned dropped = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < dropped ? replaced : dropped;
        }
    }
    return row[b_letters];
}
