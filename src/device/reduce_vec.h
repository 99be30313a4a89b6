/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how each reduction is computed, on vectors of VEC_BYTES bytes.
 * Never knows: which instruction set they become. */

/*
 * Included once by each reduce_<isa>.c, which defines
 *   VEC_BYTES   bytes of a vector
 *   VEC_TARGET  attribute that selects the instruction set for one function
 *   VEC_ROWS    name of the table to define
 * Values are defined here once, in the compilers' vector types, so that all sets agree bit for bit.
 * A type is added by writing its operations as functions of vectors and giving it a row at the end.
 */
#include <string.h>

#include "device/fpenv.h"
#include "device/reduce_rows.h"

#define VEC_INLINE static inline __attribute__((always_inline, unused)) VEC_TARGET
#define VEC_KERNEL static VEC_TARGET

typedef uint64_t vec __attribute__((vector_size(VEC_BYTES))); /* bits of any lane type */
typedef int8_t v_s8 __attribute__((vector_size(VEC_BYTES)));
typedef uint8_t v_u8 __attribute__((vector_size(VEC_BYTES)));
typedef int16_t v_s16 __attribute__((vector_size(VEC_BYTES)));
typedef uint16_t v_u16 __attribute__((vector_size(VEC_BYTES)));
typedef int32_t v_s32 __attribute__((vector_size(VEC_BYTES)));
typedef uint32_t v_u32 __attribute__((vector_size(VEC_BYTES)));
typedef int64_t v_s64 __attribute__((vector_size(VEC_BYTES)));
typedef uint64_t v_u64 __attribute__((vector_size(VEC_BYTES)));
typedef float v_f32 __attribute__((vector_size(VEC_BYTES)));
typedef double v_f64 __attribute__((vector_size(VEC_BYTES)));

typedef vec (*vec_op)(vec left, vec right);

VEC_INLINE vec vec_load(const char *from)
{
    vec value;

    memcpy(&value, from, sizeof(value));
    return value;
}

VEC_INLINE void vec_store(char *to, vec value) { memcpy(to, &value, sizeof(value)); }

/* The last bytes of an array: the other lanes are zero and are not stored. */
VEC_INLINE vec vec_load_part(const char *from, size_t bytes)
{
    vec value = {0};

    memcpy(&value, from, bytes);
    return value;
}

VEC_INLINE void vec_store_part(char *to, vec value, size_t bytes) { memcpy(to, &value, bytes); }

VEC_INLINE vec vec_select(vec mask, vec yes, vec no) { return (mask & yes) | (~mask & no); }

VEC_INLINE void vec_run(void *dst, const void *left, const void *right, size_t bytes, vec_op op)
{
    char *to = dst;
    const char *l = left;
    const char *r = right;
    size_t at = 0;

    for (; bytes - at >= VEC_BYTES; at += VEC_BYTES) {
        vec_store(to + at, op(vec_load(l + at), vec_load(r + at)));
    }
    if (at < bytes) {
        vec_store_part(to + at,
                       op(vec_load_part(l + at, bytes - at), vec_load_part(r + at, bytes - at)),
                       bytes - at);
    }
}

VEC_INLINE void vec_run_fp(void *dst, const void *left, const void *right, size_t bytes, vec_op op)
{
    struct tw_fpenv saved;

    tw_fpenv_enter(&saved);
    vec_run(dst, left, right, bytes, op);
    tw_fpenv_leave(&saved);
}

VEC_INLINE void vec_divide_fp(void *data, size_t bytes, vec divisor, vec_op op)
{
    struct tw_fpenv saved;
    char *at = data;

    tw_fpenv_enter(&saved);
    for (; bytes >= VEC_BYTES; bytes -= VEC_BYTES, at += VEC_BYTES) {
        vec_store(at, op(vec_load(at), divisor));
    }
    if (bytes > 0) {
        vec_store_part(at, op(vec_load_part(at, bytes), divisor), bytes);
    }
    tw_fpenv_leave(&saved);
}

/* ---- integers: wrap ------------------------------------------------------------------------- */

/* lane: signed or unsigned, for the order; ulane: of the same size, for arithmetic that wraps */
#define VEC_INT(name, lane, ulane)                                                                 \
    VEC_INLINE vec name##_sum_op(vec a, vec b) { return (vec)((ulane)a + (ulane)b); }              \
    VEC_INLINE vec name##_prod_op(vec a, vec b) { return (vec)((ulane)a * (ulane)b); }             \
    VEC_INLINE vec name##_max_op(vec a, vec b)                                                     \
    {                                                                                              \
        return vec_select((vec)((lane)a > (lane)b), a, b);                                         \
    }                                                                                              \
    VEC_INLINE vec name##_min_op(vec a, vec b)                                                     \
    {                                                                                              \
        return vec_select((vec)((lane)a < (lane)b), a, b);                                         \
    }

VEC_INT(int8, v_s8, v_u8)
VEC_INT(uint8, v_u8, v_u8)
VEC_INT(int32, v_s32, v_u32)
VEC_INT(uint32, v_u32, v_u32)
VEC_INT(int64, v_s64, v_u64)
VEC_INT(uint64, v_u64, v_u64)

/* ---- floats: order -------------------------------------------------------------------------- */

/*
 * max and min by integer order, which no floating-point mode can change: a float's bits, the lower
 * ones flipped when negative, order as the floats do, -0 below +0. inf and nan are bit patterns;
 * magnitudes above inf are NaN.
 */
#define VEC_ORDER(name, slane, mag_bits, inf_bits, nan_bits)                                       \
    VEC_INLINE slane name##_key(vec a) { return (slane)a ^ (((slane)a < 0) & (mag_bits)); }        \
    VEC_INLINE vec name##_or_nan(vec a, vec b, vec value)                                          \
    {                                                                                              \
        const slane nan = (slane){0} + (nan_bits);                                                 \
        const vec is_nan = (vec)((((slane)a & (mag_bits)) > (inf_bits)) |                          \
                                 (((slane)b & (mag_bits)) > (inf_bits)));                          \
        return vec_select(is_nan, (vec)nan, value);                                                \
    }                                                                                              \
    VEC_INLINE vec name##_max_op(vec a, vec b)                                                     \
    {                                                                                              \
        return name##_or_nan(a, b, vec_select((vec)(name##_key(a) > name##_key(b)), a, b));        \
    }                                                                                              \
    VEC_INLINE vec name##_min_op(vec a, vec b)                                                     \
    {                                                                                              \
        return name##_or_nan(a, b, vec_select((vec)(name##_key(a) < name##_key(b)), a, b));        \
    }

VEC_ORDER(float32, v_s32, 0x7fffffff, 0x7f800000, 0x7fc00000)
VEC_ORDER(float64, v_s64, 0x7fffffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000)
VEC_ORDER(bfloat16, v_s16, 0x7fff, 0x7f80, 0x7fc0)

/* ---- floats: arithmetic --------------------------------------------------------------------- */

VEC_INLINE vec f32_canonical(v_f32 value)
{
    const v_u32 nan = (v_u32){0} + 0x7fc00000u;

    return vec_select((vec)(value != value), (vec)nan, (vec)value);
}

VEC_INLINE vec f64_canonical(v_f64 value)
{
    const v_u64 nan = (v_u64){0} + 0x7ff8000000000000u;

    return vec_select((vec)(value != value), (vec)nan, (vec)value);
}

/* A bfloat16 is the upper half of a float: odd and even elements of a vector are widened in place,
 * without moving between lanes. */
VEC_INLINE v_f32 bf16_even(vec a) { return (v_f32)((v_u32)a << 16); }
VEC_INLINE v_f32 bf16_odd(vec a) { return (v_f32)((v_u32)a & 0xffff0000u); }

/* To nearest, ties to even; the result is the upper half of each lane. */
VEC_INLINE v_u32 bf16_round(v_f32 value)
{
    const v_u32 bits = (v_u32)f32_canonical(value);

    return bits + 0x7fffu + ((bits >> 16) & 1u);
}

VEC_INLINE vec bf16_join(v_f32 even, v_f32 odd)
{
    return (vec)((bf16_round(even) >> 16) | (bf16_round(odd) & 0xffff0000u));
}

#define VEC_ARITHMETIC(name, sign)                                                                 \
    VEC_INLINE vec float32_##name##_op(vec a, vec b)                                               \
    {                                                                                              \
        return f32_canonical((v_f32)a sign(v_f32) b);                                              \
    }                                                                                              \
    VEC_INLINE vec float64_##name##_op(vec a, vec b)                                               \
    {                                                                                              \
        return f64_canonical((v_f64)a sign(v_f64) b);                                              \
    }                                                                                              \
    VEC_INLINE vec bfloat16_##name##_op(vec a, vec b)                                              \
    {                                                                                              \
        return bf16_join(bf16_even(a) sign bf16_even(b), bf16_odd(a) sign bf16_odd(b));            \
    }

VEC_ARITHMETIC(sum, +)
VEC_ARITHMETIC(prod, *)

VEC_INLINE vec float32_divide_op(vec a, vec b) { return f32_canonical((v_f32)a / (v_f32)b); }
VEC_INLINE vec float64_divide_op(vec a, vec b) { return f64_canonical((v_f64)a / (v_f64)b); }
/* b holds floats */
VEC_INLINE vec bfloat16_divide_op(vec a, vec b)
{
    return bf16_join(bf16_even(a) / (v_f32)b, bf16_odd(a) / (v_f32)b);
}

VEC_KERNEL void float32_divide(void *data, size_t count, int nranks)
{
    const v_f32 divisor = (v_f32){0} + (float)nranks;

    vec_divide_fp(data, count * 4, (vec)divisor, float32_divide_op);
}

VEC_KERNEL void float64_divide(void *data, size_t count, int nranks)
{
    const v_f64 divisor = (v_f64){0} + (double)nranks;

    vec_divide_fp(data, count * 8, (vec)divisor, float64_divide_op);
}

VEC_KERNEL void bfloat16_divide(void *data, size_t count, int nranks)
{
    const v_f32 divisor = (v_f32){0} + (float)nranks;

    vec_divide_fp(data, count * 2, (vec)divisor, bfloat16_divide_op);
}

/* ---- kernels and their table ---------------------------------------------------------------- */

#define VEC_KERNEL_OF(name, op, bytes, run)                                                        \
    VEC_KERNEL void name##_##op(void *dst, const void *left, const void *right, size_t count)      \
    {                                                                                              \
        run(dst, left, right, count *(bytes), name##_##op##_op);                                   \
    }
/* arith: vec_run, or vec_run_fp where the floating-point mode matters */
#define VEC_KERNELS_OF(name, bytes, arith)                                                         \
    VEC_KERNEL_OF(name, sum, bytes, arith)                                                         \
    VEC_KERNEL_OF(name, prod, bytes, arith)                                                        \
    VEC_KERNEL_OF(name, max, bytes, vec_run)                                                       \
    VEC_KERNEL_OF(name, min, bytes, vec_run)

VEC_KERNELS_OF(int8, 1, vec_run)
VEC_KERNELS_OF(uint8, 1, vec_run)
VEC_KERNELS_OF(int32, 4, vec_run)
VEC_KERNELS_OF(uint32, 4, vec_run)
VEC_KERNELS_OF(int64, 8, vec_run)
VEC_KERNELS_OF(uint64, 8, vec_run)
VEC_KERNELS_OF(float32, 4, vec_run_fp)
VEC_KERNELS_OF(float64, 8, vec_run_fp)
VEC_KERNELS_OF(bfloat16, 2, vec_run_fp)

#define VEC_ROW(name, divide_fn)                                                                   \
    {                                                                                              \
        {[TWILL_SUM] = name##_sum,                                                                 \
         [TWILL_PROD] = name##_prod,                                                               \
         [TWILL_MAX] = name##_max,                                                                 \
         [TWILL_MIN] = name##_min},                                                                \
            divide_fn                                                                              \
    }

const struct tw_reduce_row VEC_ROWS[TW_TYPE_COUNT] = {
    [TWILL_INT8] = VEC_ROW(int8, tw_divide_int8),
    [TWILL_UINT8] = VEC_ROW(uint8, tw_divide_uint8),
    [TWILL_INT32] = VEC_ROW(int32, tw_divide_int32),
    [TWILL_UINT32] = VEC_ROW(uint32, tw_divide_uint32),
    [TWILL_INT64] = VEC_ROW(int64, tw_divide_int64),
    [TWILL_UINT64] = VEC_ROW(uint64, tw_divide_uint64),
    [TWILL_FLOAT32] = VEC_ROW(float32, float32_divide),
    [TWILL_FLOAT64] = VEC_ROW(float64, float64_divide),
    [TWILL_BFLOAT16] = VEC_ROW(bfloat16, bfloat16_divide),
};
