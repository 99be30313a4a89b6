/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how values of one or two operands reach one or two places.
 * Never knows: where the places are, what step it is. */
#include <string.h>

#include "device/exec_state.h"

#define CHUNK_BYTES 8192 /* stays in the first cache between two passes */
#define MIX_ELEMS 512    /* partials on the stack at a time */

static void combine(void *to, const char *left, const char *right, size_t count,
                    const struct tw_exec_math *math, bool wide)
{
    if (right != NULL) {
        (wide ? math->wide_reduce : math->reduce)(to, left, right, count);
    } else if (to != left && count > 0) {
        memcpy(to, left, count * (wide ? math->wide_bytes : math->bytes));
    }
}

/* All places are alike: straight from operands to the first place, and on to the second while it
 * is warm. */
static void put_alike(const struct tw_exec_math *math, const struct tw_exec_value *value)
{
    const bool wide = value->left.wide;
    const size_t bytes = wide ? math->wide_bytes : math->bytes;
    const tw_divide_fn divide = wide ? math->wide_divide : math->divide;
    const bool finish = value->final && divide != NULL;
    const bool twice = value->to[1].at != NULL && value->to[1].at != value->to[0].at;
    const size_t chunk = finish || twice ? CHUNK_BYTES / bytes : value->count;
    char *to = value->to[0].at;

    for (size_t at = 0; at < value->count; at += chunk) {
        const size_t n = value->count - at < chunk ? value->count - at : chunk;
        const size_t off = at * bytes;

        combine(to + off, value->left.at + off,
                value->right.at != NULL ? value->right.at + off : NULL, n, math, wide);
        if (finish) {
            divide(to + off, n, math->nranks);
        }
        if (twice) {
            memcpy(value->to[1].at + off, to + off, n * bytes);
        }
    }
}

/* Partials of some elements, in buffer if they are not kept wide in place. */
static const char *widened(const struct tw_exec_math *math, const struct tw_exec_place *place,
                           size_t at, size_t count, void *buffer)
{
    if (place->at == NULL) {
        return NULL;
    }
    if (place->wide) {
        return place->at + at * math->wide_bytes;
    }
    math->widen(buffer, place->at + at * math->bytes, count);
    return buffer;
}

/* Some places are wide, others not: everything is computed wide and rounded once. */
static void put_mixed(const struct tw_exec_math *math, const struct tw_exec_value *value)
{
    float left_wide[MIX_ELEMS], right_wide[MIX_ELEMS], result[MIX_ELEMS];

    for (size_t at = 0; at < value->count; at += MIX_ELEMS) {
        const size_t n = value->count - at < MIX_ELEMS ? value->count - at : MIX_ELEMS;
        const char *left = widened(math, &value->left, at, n, left_wide);
        const char *right = widened(math, &value->right, at, n, right_wide);

        combine(result, left, right, n, math, true);
        if (value->final && math->wide_divide != NULL) {
            math->wide_divide(result, n, math->nranks);
        }
        for (int t = 0; t < 2; t++) {
            const struct tw_exec_place *to = &value->to[t];

            if (to->at != NULL && to->wide) {
                memcpy(to->at + at * math->wide_bytes, result, n * math->wide_bytes);
            } else if (to->at != NULL) {
                math->round(to->at + at * math->bytes, result, n);
            }
        }
    }
}

static bool alike(const struct tw_exec_value *value)
{
    const bool wide = value->left.wide;

    return (value->right.at == NULL || value->right.wide == wide) && value->to[0].wide == wide &&
           (value->to[1].at == NULL || value->to[1].wide == wide);
}

void tw_exec_value_put(const struct tw_exec_math *math, const struct tw_exec_value *value)
{
    if (math->wide_bytes == math->bytes || alike(value)) {
        put_alike(math, value);
    } else {
        put_mixed(math, value);
    }
}
