/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the names of types and reductions, twill's and nccl-tests'. Never knows: their values. */
#include "config.h"

#include <string.h>

#include "perf.h"

/* our name, nccl-tests' name, bytes */
struct type_row {
    const char *name, *other;
    size_t bytes;
};
static const struct type_row type_rows[PERF_TYPE_COUNT] = {
    [TWILL_INT8] = {"int8", "char", 1},
    [TWILL_UINT8] = {"uint8", "uint8", 1},
    [TWILL_INT32] = {"int32", "int", 4},
    [TWILL_UINT32] = {"uint32", "uint32", 4},
    [TWILL_INT64] = {"int64", "int64", 8},
    [TWILL_UINT64] = {"uint64", "uint64", 8},
    [TWILL_FLOAT16] = {"float16", "half", 2},
    [TWILL_FLOAT32] = {"float32", "float", 4},
    [TWILL_FLOAT64] = {"float64", "double", 8},
    [TWILL_BFLOAT16] = {"bfloat16", "bf16", 2},
    [TWILL_FLOAT8E4M3] = {"float8e4m3", "f8e4m3", 1},
    [TWILL_FLOAT8E5M2] = {"float8e5m2", "f8e5m2", 1},
};
static const char *const redop_names[PERF_REDOP_COUNT] = {"sum",  "prod", "max",  "min",   "avg",
                                                          "band", "bor",  "bxor", "mulsum"};

const char *perf_type_name(twill_type_t type) { return type_rows[type].name; }
const char *perf_redop_name(twill_redop_t redop) { return redop_names[redop]; }
const char *perf_overlap_name(enum perf_overlap overlap)
{
    static const char *const names[] = {
        [PERF_OVERLAP_NONE] = "", [PERF_OVERLAP_EQUAL] = "equal", [PERF_OVERLAP_FIRST] = "first"};
    return names[overlap];
}
bool perf_redop_fits(twill_redop_t redop, twill_type_t type)
{
    return perf_type_digits(type) == 0 ||
           (redop != TWILL_BAND && redop != TWILL_BOR && redop != TWILL_BXOR);
}
size_t perf_type_bytes(twill_type_t type) { return type_rows[type].bytes; }
bool perf_type_named(twill_type_t type, const char *text)
{
    return strcmp(text, type_rows[type].name) == 0 || strcmp(text, type_rows[type].other) == 0;
}
