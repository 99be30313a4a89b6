/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how values of one or two operands reach one or two places.
 * Never knows: where the places are, what step it is. */
#include <string.h>

#include "base/mem.h"
#include "device/exec_state.h"

#define CHUNK_BYTES 8192 /* stays in the first cache between two passes */
#define MIX_ELEMS 512    /* partials on the stack at a time */
#define MIX_BYTES (MIX_ELEMS * sizeof(float))

/* ---- all in one type ------------------------------------------------------------------------- */

/* An operand, multiplied in buffer if it has to be. */
static const char *scaled(const struct tw_exec_math *math, const struct tw_exec_place *place,
                          size_t off, size_t count, void *buffer)
{
    if (place->at == NULL) {
        return NULL;
    }
    if (!place->raw || math->scale == NULL) {
        return place->at + off;
    }
    math->scale(buffer, place->at + off, count, &math->scalar);
    return buffer;
}

/* to = left (+) right, or left alone; bytes of an element. */
static void combine(char *to, const char *left, const char *right, size_t count,
                    tw_reduce_fn reduce, size_t bytes)
{
    if (right != NULL) {
        reduce(to, left, right, count);
    } else if (to != left && count > 0) {
        memcpy(to, left, count * bytes);
    }
}

/* Straight from operands to the first place, and on to the second while it is warm. */
static void put_alike(const struct tw_exec_math *math, const struct tw_exec_value *value)
{
    const bool wide = value->left.wide;
    const size_t bytes = wide ? math->wide_bytes : math->bytes;
    const tw_reduce_fn reduce = math->reduce[wide ? TW_FORM_WIDE : TW_FORM_PLAIN];
    const tw_divide_fn divide = !value->final ? NULL : wide ? math->wide_divide : math->divide;
    const bool scales = math->scale != NULL && (value->left.raw || value->right.raw);
    const bool twice = value->to[1].at != NULL && value->to[1].at != value->to[0].at;
    const size_t chunk = divide != NULL || twice || scales ? CHUNK_BYTES / bytes : value->count;
    char left_scaled[CHUNK_BYTES], right_scaled[CHUNK_BYTES];

    for (size_t at = 0; at < value->count; at += chunk) {
        const size_t n = value->count - at < chunk ? value->count - at : chunk;
        char *to = value->to[0].at + at * bytes;

        combine(to, scaled(math, &value->left, at * bytes, n, left_scaled),
                scaled(math, &value->right, at * bytes, n, right_scaled), n, reduce, bytes);
        if (divide != NULL) {
            divide(to, to, n, math->nranks);
        }
        if (twice) {
            memcpy(value->to[1].at + at * bytes, to, n * bytes);
        }
    }
}

/* ---- narrow and wide ------------------------------------------------------------------------- */

/* An operand of some elements, as it enters an addition: narrow or wide. */
struct operand {
    const char *at; /* NULL: none */
    bool wide;
};

/* A product is rounded to the type here as where it goes to a peer: a rank's input has one value,
 * whoever adds it. */
static struct operand operand_of(const struct tw_exec_math *math, const struct tw_exec_place *place,
                                 size_t first, size_t count, void *buffer)
{
    const size_t bytes = place->wide ? math->wide_bytes : math->bytes;
    const char *at = place->at == NULL ? NULL : place->at + first * bytes;

    if (at == NULL || !place->raw || math->scale == NULL) {
        return (struct operand){at, place->wide};
    }
    math->scale(buffer, at, count, &math->scalar);
    return (struct operand){buffer, false};
}

/* to: wide. Operands may be exchanged without changing a bit of the result. */
static void combine_wide(const struct tw_exec_math *math, char *to, struct operand left,
                         struct operand right, size_t count)
{
    if (right.at == NULL && left.wide) {
        combine(to, left.at, NULL, count, NULL, math->wide_bytes);
    } else if (right.at == NULL) {
        math->widen(to, left.at, count);
    } else if (left.wide && right.wide) {
        math->reduce[TW_FORM_WIDE](to, left.at, right.at, count);
    } else if (left.wide) {
        math->reduce[TW_FORM_ADD](to, left.at, right.at, count);
    } else if (right.wide) {
        math->reduce[TW_FORM_ADD](to, right.at, left.at, count);
    } else {
        math->reduce[TW_FORM_WIDEN](to, left.at, right.at, count);
    }
}

/* Unrounded partials to one place. sum may be that place. */
static void finish(const struct tw_exec_math *math, char *to, bool wide, const char *sum,
                   size_t count, bool final)
{
    const tw_divide_fn divide = !final ? NULL : wide ? math->wide_divide : math->divide;

    if (divide != NULL) {
        divide(to, sum, count, math->nranks);
    } else if (!wide) {
        math->round(to, sum, count);
    } else if (to != sum) {
        memcpy(to, sum, count * math->wide_bytes);
    }
}

/* Everything is computed wide and rounded once; right in its place if that is wide. */
static void put_mixed(const struct tw_exec_math *math, const struct tw_exec_value *value)
{
    _Alignas(TW_LINE_BYTES) char left_scaled[MIX_BYTES], right_scaled[MIX_BYTES], result[MIX_BYTES];
    const bool straight = value->to[0].wide && !value->final;

    for (size_t at = 0; at < value->count; at += MIX_ELEMS) {
        const size_t n = value->count - at < MIX_ELEMS ? value->count - at : MIX_ELEMS;
        char *sum = result;

        if (straight) {
            sum = value->to[0].at + at * math->wide_bytes;
        }
        combine_wide(math, sum, operand_of(math, &value->left, at, n, left_scaled),
                     operand_of(math, &value->right, at, n, right_scaled), n);
        for (int t = 0; t < 2; t++) {
            const struct tw_exec_place *to = &value->to[t];

            if (to->at != NULL) {
                finish(math, to->at + at * (to->wide ? math->wide_bytes : math->bytes), to->wide,
                       sum, n, value->final);
            }
        }
    }
}

/* ---- which of both --------------------------------------------------------------------------- */

/* All places are of one type, and the type's own arithmetic is what is asked for: avg of a narrow
 * type divides before its one rounding. */
static bool alike(const struct tw_exec_math *math, const struct tw_exec_value *value)
{
    const bool wide = value->left.wide;

    if (math->wide_bytes == math->bytes) {
        return true;
    }
    if (value->final && math->divide != NULL && !wide) {
        return false;
    }
    return (value->right.at == NULL || value->right.wide == wide) && value->to[0].wide == wide &&
           (value->to[1].at == NULL || value->to[1].wide == wide);
}

void tw_exec_value_put(const struct tw_exec_math *math, const struct tw_exec_value *value)
{
    if (alike(math, value)) {
        put_alike(math, value);
    } else {
        put_mixed(math, value);
    }
}
