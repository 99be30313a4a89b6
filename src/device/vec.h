/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: vectors of VEC_BYTES bytes. Never knows: what is computed on them, which instruction set
 * they become. */

/*
 * Included once by each reduce_<isa>.c (through reduce_vec.h), which defines
 *   VEC_BYTES   bytes of a vector
 *   VEC_TARGET  attribute that selects the instruction set for one function
 *   VEC_F16C    defined where the set converts float16 in hardware
 *   VEC_ROWS    name of the table to define
 * Values are defined once, in the compilers' vector types, so that all sets agree bit for bit.
 */
#include <stdint.h>
#include <string.h>

#define VEC_INLINE static inline __attribute__((always_inline, unused)) VEC_TARGET
#define VEC_KERNEL static VEC_TARGET

#define VEC_LANES (VEC_BYTES / 4) /* floats in a vector */

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

/* as many narrow elements as a vector has floats */
typedef uint16_t half_u16 __attribute__((vector_size(VEC_BYTES / 2)));
typedef int16_t half_s16 __attribute__((vector_size(VEC_BYTES / 2)));
typedef uint8_t quarter_u8 __attribute__((vector_size(VEC_BYTES / 4)));

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

VEC_INLINE v_u32 v_u32_select(v_s32 mask, v_u32 yes, v_u32 no)
{
    return ((v_u32)mask & yes) | (~(v_u32)mask & no);
}

VEC_INLINE v_u32 v_u32_all(uint32_t value) { return (v_u32){0} + value; }

/* The first lane's float in all of them, bit for bit. */
VEC_INLINE v_f32 vec_f32_splat(v_f32 value) { return (v_f32)v_u32_all(((v_u32)value)[0]); }
