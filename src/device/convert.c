/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which types have a wide one. Never knows: how kernels convert. */
#include "device/convert.h"

#include "device/reduce_rows.h"

twill_type_t tw_wide_type(twill_type_t type)
{
    switch (type) {
    case TWILL_FLOAT16:
    case TWILL_BFLOAT16:
    case TWILL_FLOAT8E4M3:
    case TWILL_FLOAT8E5M2:
        return TWILL_FLOAT32;
    default:
        return type;
    }
}

tw_convert_fn tw_widen_find(twill_type_t type, enum tw_isa isa)
{
    const struct tw_reduce_row *row = tw_reduce_row_of(type, isa);

    return row == NULL ? NULL : row->to_wide;
}

tw_convert_fn tw_round_find(twill_type_t type, enum tw_isa isa)
{
    const struct tw_reduce_row *row = tw_reduce_row_of(type, isa);

    return row == NULL ? NULL : row->from_wide;
}
