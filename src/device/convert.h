/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the type in which partials of each type are kept unrounded. Never knows: reductions. */
#ifndef TW_DEVICE_CONVERT_H
#define TW_DEVICE_CONVERT_H

#include "device/reduce.h"

/** fp32 for 16- and 8-bit floats, else the type itself. */
twill_type_t tw_wide_type(twill_type_t type);

/* Conversions: dst and src do not overlap; any alignment; NaN comes out canonical. */

/** To the wide type, exactly. NULL: type is its own wide type, or none. */
tw_convert_fn tw_widen_find(twill_type_t type, enum tw_isa isa);
/** Back, to nearest even; float8 saturates. NULL likewise. */
tw_convert_fn tw_round_find(twill_type_t type, enum tw_isa isa);

#endif
