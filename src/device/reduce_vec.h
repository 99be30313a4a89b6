/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how each reduction is computed, on vectors (vec.h). Never knows: which instruction set
 * they become. */

/*
 * A type is added by writing its operations as functions of vectors, or, for a float that is
 * widened, its load and store (vec_float.h), and giving it a row at the end.
 */
#include "device/fpenv.h"
#include "device/reduce_rows.h"
#include "device/vec.h"
#include "device/vec_float.h"

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

/* The same with one vector for all of the right operand. */
VEC_INLINE void vec_run_one(void *dst, const void *left, vec right, size_t bytes, vec_op op)
{
    char *to = dst;
    const char *l = left;
    struct tw_fpenv saved;

    tw_fpenv_enter(&saved);
    for (; bytes >= VEC_BYTES; bytes -= VEC_BYTES, to += VEC_BYTES, l += VEC_BYTES) {
        vec_store(to, op(vec_load(l), right));
    }
    if (bytes > 0) {
        vec_store_part(to, op(vec_load_part(l, bytes), right), bytes);
    }
    tw_fpenv_leave(&saved);
}

/* ---- integers: wrap ------------------------------------------------------------------------- */

/* lane: signed or unsigned, for the order; ulane: of the same size, for arithmetic that wraps */
#define VEC_INT(name, lane, ulane, number)                                                         \
    VEC_INLINE vec name##_sum_op(vec a, vec b) { return (vec)((ulane)a + (ulane)b); }              \
    VEC_INLINE vec name##_prod_op(vec a, vec b) { return (vec)((ulane)a * (ulane)b); }             \
    VEC_INLINE vec name##_max_op(vec a, vec b)                                                     \
    {                                                                                              \
        return vec_select((vec)((lane)a > (lane)b), a, b);                                         \
    }                                                                                              \
    VEC_INLINE vec name##_min_op(vec a, vec b)                                                     \
    {                                                                                              \
        return vec_select((vec)((lane)a < (lane)b), a, b);                                         \
    }                                                                                              \
    VEC_INLINE vec name##_band_op(vec a, vec b) { return a & b; }                                  \
    VEC_INLINE vec name##_bor_op(vec a, vec b) { return a | b; }                                   \
    VEC_INLINE vec name##_bxor_op(vec a, vec b) { return a ^ b; }                                  \
    VEC_KERNEL void name##_scale(void *dst, const void *src, size_t count, const void *scalar)     \
    {                                                                                              \
        number one;                                                                                \
                                                                                                   \
        memcpy(&one, scalar, sizeof(one));                                                         \
        vec_run_one(dst, src, (vec)((ulane){0} + one), count * sizeof(one), name##_prod_op);       \
    }

VEC_INT(int8, v_s8, v_u8, uint8_t)
VEC_INT(uint8, v_u8, v_u8, uint8_t)
VEC_INT(int32, v_s32, v_u32, uint32_t)
VEC_INT(uint32, v_u32, v_u32, uint32_t)
VEC_INT(int64, v_s64, v_u64, uint64_t)
VEC_INT(uint64, v_u64, v_u64, uint64_t)

/* ---- floats: order -------------------------------------------------------------------------- */

/*
 * max and min by integer order, which no floating-point mode can change: a float's bits, the lower
 * ones flipped when negative, order as the floats do, -0 below +0. Magnitudes above top_bits are
 * NaN; nan_bits is the canonical one.
 */
#define VEC_ORDER(name, slane, mag_bits, top_bits, nan_bits)                                       \
    VEC_INLINE slane name##_key(vec a) { return (slane)a ^ (((slane)a < 0) & (mag_bits)); }        \
    VEC_INLINE vec name##_or_nan(vec a, vec b, vec value)                                          \
    {                                                                                              \
        const slane nan = (slane){0} + (nan_bits);                                                 \
        const vec is_nan = (vec)((((slane)a & (mag_bits)) > (top_bits)) |                          \
                                 (((slane)b & (mag_bits)) > (top_bits)));                          \
        return vec_select(is_nan, (vec)nan, value);                                                \
    }                                                                                              \
    VEC_INLINE vec name##_greater(vec a, vec b)                                                    \
    {                                                                                              \
        return name##_or_nan(a, b, vec_select((vec)(name##_key(a) > name##_key(b)), a, b));        \
    }                                                                                              \
    VEC_INLINE vec name##_lesser(vec a, vec b)                                                     \
    {                                                                                              \
        return name##_or_nan(a, b, vec_select((vec)(name##_key(a) < name##_key(b)), a, b));        \
    }

VEC_ORDER(float32, v_s32, 0x7fffffff, 0x7f800000, 0x7fc00000)
VEC_ORDER(float64, v_s64, 0x7fffffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000)
VEC_ORDER(bfloat16, v_s16, 0x7fff, 0x7f80, 0x7fc0)
VEC_ORDER(float16, v_s16, 0x7fff, 0x7c00, 0x7e00)
VEC_ORDER(float8e4m3, v_s8, 0x7f, 0x7e, 0x7f)
VEC_ORDER(float8e5m2, v_s8, 0x7f, 0x7c, 0x7e)

/* Infinities saturate, as they do when an fp32 is rounded: one bit pattern further down. */
VEC_INLINE vec float8e5m2_finite(vec a)
{
    return (vec)((v_s8)a + (v_s8)(((v_s8)a & 0x7f) == 0x7c));
}

#define VEC_EXTREME(name, finish)                                                                  \
    VEC_INLINE vec name##_max_op(vec a, vec b) { return finish(name##_greater(a, b)); }            \
    VEC_INLINE vec name##_min_op(vec a, vec b) { return finish(name##_lesser(a, b)); }

VEC_EXTREME(float32, )
VEC_EXTREME(float64, )
VEC_EXTREME(bfloat16, )
VEC_EXTREME(float16, )
VEC_EXTREME(float8e4m3, )
VEC_EXTREME(float8e5m2, float8e5m2_finite)

/* ---- floats: arithmetic --------------------------------------------------------------------- */

VEC_INLINE vec f64_canonical(v_f64 value)
{
    const v_u64 nan = (v_u64){0} + 0x7ff8000000000000u;

    return vec_select((vec)(value != value), (vec)nan, (vec)value);
}

/* Odd and even bfloat16 of a vector are widened in place, without moving between lanes. */
VEC_INLINE v_f32 bf16_even(vec a) { return (v_f32)((v_u32)a << 16); }
VEC_INLINE v_f32 bf16_odd(vec a) { return (v_f32)((v_u32)a & 0xffff0000u); }

VEC_INLINE vec bf16_join(v_f32 even, v_f32 odd)
{
    return (vec)((bf16_round(even) >> 16) | (bf16_round(odd) & 0xffff0000u));
}

#define VEC_ARITHMETIC(name, sign)                                                                 \
    VEC_INLINE vec float32_##name##_op(vec a, vec b)                                               \
    {                                                                                              \
        return (vec)f32_canonical((v_f32)a sign(v_f32) b);                                         \
    }                                                                                              \
    VEC_INLINE vec float64_##name##_op(vec a, vec b)                                               \
    {                                                                                              \
        return f64_canonical((v_f64)a sign(v_f64) b);                                              \
    }                                                                                              \
    VEC_INLINE vec bfloat16_##name##_op(vec a, vec b)                                              \
    {                                                                                              \
        return bf16_join(bf16_even(a) sign bf16_even(b), bf16_odd(a) sign bf16_odd(b));            \
    }                                                                                              \
    /* of widened floats: the store makes NaN canonical */                                         \
    VEC_INLINE v_f32 wide_##name(v_f32 a, v_f32 b) { return a sign b; }

VEC_ARITHMETIC(sum, +)
VEC_ARITHMETIC(prod, *)
VEC_ARITHMETIC(quotient, /)

VEC_INLINE v_f32 wide_max(v_f32 a, v_f32 b) { return (v_f32)float32_max_op((vec)a, (vec)b); }
VEC_INLINE v_f32 wide_min(v_f32 a, v_f32 b) { return (v_f32)float32_min_op((vec)a, (vec)b); }

/* The first element in all lanes of float64. */
VEC_INLINE vec float64_splat(const void *scalar)
{
    uint64_t bits;

    memcpy(&bits, scalar, sizeof(bits));
    return (vec)((v_u64){0} + bits);
}

VEC_KERNEL void float32_divide(void *dst, const void *src, size_t count, int nranks)
{
    const v_f32 divisor = (v_f32){0} + (float)nranks;

    vec_run_one(dst, src, (vec)divisor, count * 4, float32_quotient_op);
}

VEC_KERNEL void float64_divide(void *dst, const void *src, size_t count, int nranks)
{
    const v_f64 divisor = (v_f64){0} + (double)nranks;

    vec_run_one(dst, src, (vec)divisor, count * 8, float64_quotient_op);
}

VEC_KERNEL void float32_scale(void *dst, const void *src, size_t count, const void *scalar)
{
    const v_f32 factor = vec_f32_splat(float32_load(scalar, 1));

    vec_run_one(dst, src, (vec)factor, count * 4, float32_prod_op);
}

VEC_KERNEL void float64_scale(void *dst, const void *src, size_t count, const void *scalar)
{
    vec_run_one(dst, src, float64_splat(scalar), count * 8, float64_prod_op);
}

/* ---- floats that are widened ---------------------------------------------------------------- */

enum { float16_bytes = 2, bfloat16_bytes = 2, float8e4m3_bytes = 1, float8e5m2_bytes = 1 };
enum { float32_bytes = 4 };

/* d, l, r: types of vec_float.h for what is stored and loaded */
#define VEC_LANES_RUN(name, d, l, r, op)                                                           \
    VEC_INLINE void name##_at(char *to, const char *a, const char *b, size_t n)                    \
    {                                                                                              \
        d##_store(to, op(l##_load(a, n), r##_load(b, n)), n);                                      \
    }                                                                                              \
    VEC_KERNEL void name(void *dst, const void *left, const void *right, size_t count)             \
    {                                                                                              \
        struct tw_fpenv saved;                                                                     \
        char *to = dst;                                                                            \
        const char *a = left;                                                                      \
        const char *b = right;                                                                     \
                                                                                                   \
        tw_fpenv_enter(&saved);                                                                    \
        for (; count >= VEC_LANES; count -= VEC_LANES) {                                           \
            name##_at(to, a, b, VEC_LANES);                                                        \
            to += VEC_LANES * d##_bytes;                                                           \
            a += VEC_LANES * l##_bytes;                                                            \
            b += VEC_LANES * r##_bytes;                                                            \
        }                                                                                          \
        if (count > 0) {                                                                           \
            name##_at(to, a, b, count);                                                            \
        }                                                                                          \
        tw_fpenv_leave(&saved);                                                                    \
    }

/* The same with one vector for all of the right operand. */
#define VEC_LANES_MAP(name, d, s, op)                                                              \
    VEC_INLINE void name##_map(void *dst, const void *src, size_t count, v_f32 right)              \
    {                                                                                              \
        struct tw_fpenv saved;                                                                     \
        char *to = dst;                                                                            \
        const char *from = src;                                                                    \
                                                                                                   \
        tw_fpenv_enter(&saved);                                                                    \
        for (; count >= VEC_LANES; count -= VEC_LANES) {                                           \
            d##_store(to, op(s##_load(from, VEC_LANES), right), VEC_LANES);                        \
            to += VEC_LANES * d##_bytes;                                                           \
            from += VEC_LANES * s##_bytes;                                                         \
        }                                                                                          \
        if (count > 0) {                                                                           \
            d##_store(to, op(s##_load(from, count), right), count);                                \
        }                                                                                          \
        tw_fpenv_leave(&saved);                                                                    \
    }

VEC_INLINE v_f32 wide_same(v_f32 a, v_f32 b)
{
    (void)b;
    return a;
}

/* All kernels of a narrow type but its plain ones. */
#define VEC_NARROW(name)                                                                           \
    VEC_LANES_RUN(name##_sum_widen, float32, name, name, wide_sum)                                 \
    VEC_LANES_RUN(name##_prod_widen, float32, name, name, wide_prod)                               \
    VEC_LANES_RUN(name##_max_widen, float32, name, name, wide_max)                                 \
    VEC_LANES_RUN(name##_min_widen, float32, name, name, wide_min)                                 \
    VEC_LANES_RUN(name##_sum_add, float32, float32, name, wide_sum)                                \
    VEC_LANES_RUN(name##_prod_add, float32, float32, name, wide_prod)                              \
    VEC_LANES_RUN(name##_max_add, float32, float32, name, wide_max)                                \
    VEC_LANES_RUN(name##_min_add, float32, float32, name, wide_min)                                \
    VEC_LANES_MAP(name##_divide, name, float32, wide_quotient)                                     \
    VEC_LANES_MAP(name##_scale, name, name, wide_prod)                                             \
    VEC_LANES_MAP(name##_to_wide, float32, name, wide_same)                                        \
    VEC_LANES_MAP(name##_from_wide, name, float32, wide_same)                                      \
    VEC_KERNEL void name##_divide(void *dst, const void *src, size_t count, int nranks)            \
    {                                                                                              \
        name##_divide_map(dst, src, count, (v_f32){0} + (float)nranks);                            \
    }                                                                                              \
    /* the mode is entered by whoever loads the scalar too */                                      \
    VEC_INLINE v_f32 name##_splat(const void *scalar)                                              \
    {                                                                                              \
        struct tw_fpenv saved;                                                                     \
        v_f32 value;                                                                               \
                                                                                                   \
        tw_fpenv_enter(&saved);                                                                    \
        value = vec_f32_splat(name##_load(scalar, 1));                                             \
        tw_fpenv_leave(&saved);                                                                    \
        return value;                                                                              \
    }                                                                                              \
    VEC_KERNEL void name##_scale(void *dst, const void *src, size_t count, const void *scalar)     \
    {                                                                                              \
        name##_scale_map(dst, src, count, name##_splat(scalar));                                   \
    }                                                                                              \
    VEC_KERNEL void name##_to_wide(void *dst, const void *src, size_t count)                       \
    {                                                                                              \
        name##_to_wide_map(dst, src, count, (v_f32){0});                                           \
    }                                                                                              \
    VEC_KERNEL void name##_from_wide(void *dst, const void *src, size_t count)                     \
    {                                                                                              \
        name##_from_wide_map(dst, src, count, (v_f32){0});                                         \
    }

VEC_NARROW(float16)
VEC_NARROW(bfloat16)
VEC_NARROW(float8e4m3)
VEC_NARROW(float8e5m2)

/* ---- kernels and their table ---------------------------------------------------------------- */

#define VEC_KERNEL_OF(name, op, bytes, run)                                                        \
    VEC_KERNEL void name##_##op(void *dst, const void *left, const void *right, size_t count)      \
    {                                                                                              \
        run(dst, left, right, count *(bytes), name##_##op##_op);                                   \
    }
#define VEC_ORDER_OF(name, bytes)                                                                  \
    VEC_KERNEL_OF(name, max, bytes, vec_run)                                                       \
    VEC_KERNEL_OF(name, min, bytes, vec_run)
/* arith: vec_run, or vec_run_fp where the floating-point mode matters */
#define VEC_ARITHMETIC_OF(name, bytes, arith)                                                      \
    VEC_KERNEL_OF(name, sum, bytes, arith)                                                         \
    VEC_KERNEL_OF(name, prod, bytes, arith)                                                        \
    VEC_ORDER_OF(name, bytes)
#define VEC_INT_OF(name, bytes)                                                                    \
    VEC_ARITHMETIC_OF(name, bytes, vec_run)                                                        \
    VEC_KERNEL_OF(name, band, bytes, vec_run)                                                      \
    VEC_KERNEL_OF(name, bor, bytes, vec_run)                                                       \
    VEC_KERNEL_OF(name, bxor, bytes, vec_run)
#define VEC_LANES_OF(name)                                                                         \
    VEC_LANES_RUN(name##_sum, name, name, name, wide_sum)                                          \
    VEC_LANES_RUN(name##_prod, name, name, name, wide_prod)                                        \
    VEC_ORDER_OF(name, name##_bytes)

VEC_INT_OF(int8, 1)
VEC_INT_OF(uint8, 1)
VEC_INT_OF(int32, 4)
VEC_INT_OF(uint32, 4)
VEC_INT_OF(int64, 8)
VEC_INT_OF(uint64, 8)
VEC_ARITHMETIC_OF(float32, 4, vec_run_fp)
VEC_ARITHMETIC_OF(float64, 8, vec_run_fp)
VEC_ARITHMETIC_OF(bfloat16, 2, vec_run_fp)
VEC_LANES_OF(float16)
VEC_LANES_OF(float8e4m3)
VEC_LANES_OF(float8e5m2)

#define VEC_OPS(name, form)                                                                        \
    [TWILL_SUM] = name##_sum##form, [TWILL_PROD] = name##_prod##form,                              \
    [TWILL_MAX] = name##_max##form, [TWILL_MIN] = name##_min##form

#define VEC_INT_ROW(name)                                                                          \
    {                                                                                              \
        .plain = {VEC_OPS(name, ), [TWILL_BAND] = name##_band, [TWILL_BOR] = name##_bor,           \
                  [TWILL_BXOR] = name##_bxor},                                                     \
        .divide = tw_divide_##name, .scale = name##_scale                                          \
    }
#define VEC_FLOAT_ROW(name)                                                                        \
    {                                                                                              \
        .plain = {VEC_OPS(name, )}, .divide = name##_divide, .scale = name##_scale                 \
    }
#define VEC_NARROW_ROW(name)                                                                       \
    {                                                                                              \
        .plain = {VEC_OPS(name, )}, .widen = {VEC_OPS(name, _widen)},                              \
        .add = {VEC_OPS(name, _add)}, .divide = name##_divide, .scale = name##_scale,              \
        .to_wide = name##_to_wide, .from_wide = name##_from_wide                                   \
    }

const struct tw_reduce_row VEC_ROWS[TW_TYPE_COUNT] = {
    [TWILL_INT8] = VEC_INT_ROW(int8),
    [TWILL_UINT8] = VEC_INT_ROW(uint8),
    [TWILL_INT32] = VEC_INT_ROW(int32),
    [TWILL_UINT32] = VEC_INT_ROW(uint32),
    [TWILL_INT64] = VEC_INT_ROW(int64),
    [TWILL_UINT64] = VEC_INT_ROW(uint64),
    [TWILL_FLOAT16] = VEC_NARROW_ROW(float16),
    [TWILL_BFLOAT16] = VEC_NARROW_ROW(bfloat16),
    [TWILL_FLOAT32] = VEC_FLOAT_ROW(float32),
    [TWILL_FLOAT64] = VEC_FLOAT_ROW(float64),
    [TWILL_FLOAT8E4M3] = VEC_NARROW_ROW(float8e4m3),
    [TWILL_FLOAT8E5M2] = VEC_NARROW_ROW(float8e5m2),
};
