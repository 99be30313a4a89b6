/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the type in which partials of each type are kept unrounded. Never knows: reductions. */
#ifndef TW_DEVICE_CONVERT_H
#define TW_DEVICE_CONVERT_H

#include <stddef.h>

#include "twill.h"

/** fp32 for 16- and 8-bit floats, else the type itself. */
twill_type_t tw_wide_type(twill_type_t type);

/* dst[i] = src[i] in the other type; dst and src do not overlap; any alignment. */
typedef void (*tw_convert_fn)(void *dst, const void *src, size_t count);

/** To the wide type, exactly. NULL: type is its own wide type, or not served. */
tw_convert_fn tw_widen_find(twill_type_t type);
/** Back, to nearest even; NaN comes out canonical. NULL likewise. */
tw_convert_fn tw_round_find(twill_type_t type);

#endif
