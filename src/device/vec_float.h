/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: float16, bfloat16 and both float8 in terms of fp32, VEC_LANES at a time.
 * Never knows: reductions. docs/numbers.md has the formats.
 *
 * Each narrow type T has
 *   T_load(from, n)       n elements as fp32, exactly; lanes from n on are zero
 *   T_store(to, value, n) to nearest even; NaN canonical; float8 saturates
 * of n = VEC_LANES elements, or fewer at the end of an array. The thread is in the mode of fpenv.h.
 */
#if defined(VEC_F16C)
#include <immintrin.h>
#endif

#define F32_SIGN 0x80000000u
#define F32_MAGNITUDE 0x7fffffffu
#define F32_INF 0x7f800000u
#define F32_NAN 0x7fc00000u

VEC_INLINE v_f32 f32_canonical(v_f32 value)
{
    return (v_f32)v_u32_select(value != value, v_u32_all(F32_NAN), (v_u32)value);
}

/* ---- bits of a format to fp32 and back --------------------------------------------------------
 */

/* How a format's magnitude bits lie in those of fp32. */
struct vec_format {
    unsigned shift;      /* fraction bits that fp32 has more */
    uint32_t rebias;     /* exponent bias of fp32 less the format's */
    uint32_t special;    /* the least magnitude that is no number: inf or NaN */
    uint32_t most;       /* fp32 magnitudes above it are stored as this one */
    uint32_t nan;        /* canonical */
    uint32_t tiny_magic; /* fp32 number whose unit in the last place is the least subnormal */
};

static const struct vec_format float16_format __attribute__((unused)) = {
    13, 112, 0x7c00, 0x47800000 /* 65536: rounds to inf */, 0x7e00, 0x3f000000 /* 2^-1 */};
static const struct vec_format float8e4m3_format
    __attribute__((unused)) = {20, 120, 0x7f, 0x43e00000 /* 448 */, 0x7f, 0x46800000 /* 2^14 */};
static const struct vec_format float8e5m2_format
    __attribute__((unused)) = {21, 112, 0x7c, 0x47600000 /* 57344 */, 0x7e, 0x43000000 /* 2^7 */};

/* All magnitudes are below 2^31: they compare as signed, which more sets can. */

/* mag: magnitudes. Subnormals: the fraction is put behind a leading one, which is taken off again.
 * Specials get fp32's largest exponent; with one special (e4m3's NaN) the fraction is not zero. */
VEC_INLINE v_u32 format_widen(const struct vec_format *format, v_u32 mag)
{
    const unsigned shift = format->shift;
    const uint32_t rebias = format->rebias << 23;
    const uint32_t one = rebias + (1u << 23); /* least normal number */
    const v_u32 moved = mag << shift;
    const v_u32 tiny = (v_u32)((v_f32)(moved + one) - (v_f32)v_u32_all(one));
    const v_s32 subnormal = (v_s32)mag < (int32_t)1 << (23 - shift);
    const v_s32 special = (v_s32)mag >= (int32_t)format->special;
    const v_u32 number = v_u32_select(subnormal, tiny, moved + rebias);

    return v_u32_select(special, moved | F32_INF, number);
}

/* The format's bits, sign not included, of fp32 values, to nearest even. */
VEC_INLINE v_u32 format_narrow(const struct vec_format *format, v_f32 value)
{
    const unsigned shift = format->shift;
    const uint32_t rebias = format->rebias << 23;
    const v_u32 magic = v_u32_all(format->tiny_magic);
    const v_u32 all = (v_u32)value & F32_MAGNITUDE;
    const v_s32 over = (v_s32)all > (int32_t)format->most;
    const v_u32 mag = v_u32_select(over, v_u32_all(format->most), all);
    const v_u32 odd = (mag >> shift) & 1u;
    const v_u32 number = (mag + (((1u << (shift - 1)) - 1) - rebias) + odd) >> shift;
    const v_u32 tiny = (v_u32)((v_f32)mag + (v_f32)magic) - magic;
    const v_s32 subnormal = (v_s32)mag < (int32_t)(rebias + (1u << 23));
    const v_u32 rounded = v_u32_select(subnormal, tiny, number);

    return v_u32_select((v_s32)all > (int32_t)F32_INF, v_u32_all(format->nan), rounded);
}

/* The sign, except of NaN, at the top of `bits` bits. */
VEC_INLINE v_u32 sign_of(v_f32 value, unsigned bits)
{
    const v_s32 number = value == value;

    return (v_u32)number & (((v_u32)value & F32_SIGN) >> (32 - bits));
}

/* ---- 16 bits ----------------------------------------------------------------------------------
 */

VEC_INLINE half_u16 half_load(const char *from, size_t n)
{
    half_u16 bits = {0};

    memcpy(&bits, from, n * 2);
    return bits;
}

VEC_INLINE void half_store(char *to, half_u16 bits, size_t n) { memcpy(to, &bits, n * 2); }

#if defined(VEC_F16C)
VEC_INLINE v_f32 half_widen(half_u16 bits)
{
#if VEC_BYTES == 64
    return (v_f32)_mm512_cvtph_ps((__m256i)bits);
#else
    return (v_f32)_mm256_cvtph_ps((__m128i)bits);
#endif
}

VEC_INLINE half_u16 half_narrow(v_f32 value)
{
#if VEC_BYTES == 64
    const half_u16 bits = (half_u16)_mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT);
#else
    const half_u16 bits = (half_u16)_mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT);
#endif
    const half_u16 nan = (half_u16)((half_s16)(bits & 0x7fff) > 0x7c00);

    return (nan & 0x7e00) | (~nan & bits);
}
#else
VEC_INLINE v_f32 half_widen(half_u16 bits)
{
    const v_u32 wide = __builtin_convertvector(bits, v_u32);

    return (v_f32)(format_widen(&float16_format, wide & 0x7fff) | (wide & 0x8000) << 16);
}

VEC_INLINE half_u16 half_narrow(v_f32 value)
{
    return __builtin_convertvector(format_narrow(&float16_format, value) | sign_of(value, 16),
                                   half_u16);
}
#endif

VEC_INLINE v_f32 float16_load(const char *from, size_t n) { return half_widen(half_load(from, n)); }

VEC_INLINE void float16_store(char *to, v_f32 value, size_t n)
{
    half_store(to, half_narrow(value), n);
}

/* A bfloat16 is the upper half of a float. To nearest, ties to even; the result is the upper half
 * of each lane. */
VEC_INLINE v_u32 bf16_round(v_f32 value)
{
    const v_u32 bits = (v_u32)f32_canonical(value);

    return bits + 0x7fffu + ((bits >> 16) & 1u);
}

VEC_INLINE v_f32 bfloat16_load(const char *from, size_t n)
{
    return (v_f32)(__builtin_convertvector(half_load(from, n), v_u32) << 16);
}

VEC_INLINE void bfloat16_store(char *to, v_f32 value, size_t n)
{
    half_store(to, __builtin_convertvector(bf16_round(value) >> 16, half_u16), n);
}

/* ---- 8 bits -----------------------------------------------------------------------------------
 */

VEC_INLINE quarter_u8 quarter_load(const char *from, size_t n)
{
    quarter_u8 bits = {0};

    memcpy(&bits, from, n);
    return bits;
}

/* The lowest byte of each lane, the others being zero. */
VEC_INLINE void quarter_store(char *to, v_u32 bits, size_t n)
{
#if defined(VEC_F16C) && VEC_BYTES == 32 /* compilers would take byte by byte */
    const __m256i words = _mm256_packus_epi32((__m256i)bits, (__m256i)bits);
    const __m256i bytes = _mm256_packus_epi16(words, words); /* of each half, in each half */
    const __m128i narrow =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
#else
    const quarter_u8 narrow = __builtin_convertvector(bits, quarter_u8);
#endif

    memcpy(to, &narrow, n);
}

#if defined(VEC_F16C)
VEC_INLINE half_u16 quarter_load_half(const char *from, size_t n)
{
#if VEC_BYTES == 32 /* likewise */
    __m128i bits = _mm_setzero_si128();

    memcpy(&bits, from, n);
    return (half_u16)_mm_cvtepu8_epi16(bits);
#else
    return __builtin_convertvector(quarter_load(from, n), half_u16);
#endif
}

/* The upper half of a float16. */
VEC_INLINE v_f32 float8e5m2_load(const char *from, size_t n)
{
    return half_widen(quarter_load_half(from, n) << 8);
}

/* As a float16 it is 2^8 too small; NaN is a number there. */
VEC_INLINE v_f32 float8e4m3_load(const char *from, size_t n)
{
    const half_u16 bits = quarter_load_half(from, n);
    const half_u16 mag = bits & 0x7f;
    const half_u16 nan = (half_u16)(mag == 0x7f);

    return half_widen((mag << 7) | (bits & 0x80) << 8 | (nan & 0x7c00)) * 256.0f;
}
#else
VEC_INLINE v_f32 float8_load(const struct vec_format *format, const char *from, size_t n)
{
    const v_u32 wide = __builtin_convertvector(quarter_load(from, n), v_u32);

    return (v_f32)(format_widen(format, wide & 0x7f) | (wide & 0x80) << 24);
}

VEC_INLINE v_f32 float8e4m3_load(const char *from, size_t n)
{
    return float8_load(&float8e4m3_format, from, n);
}

VEC_INLINE v_f32 float8e5m2_load(const char *from, size_t n)
{
    return float8_load(&float8e5m2_format, from, n);
}
#endif

VEC_INLINE void float8e4m3_store(char *to, v_f32 value, size_t n)
{
    quarter_store(to, format_narrow(&float8e4m3_format, value) | sign_of(value, 8), n);
}

VEC_INLINE void float8e5m2_store(char *to, v_f32 value, size_t n)
{
    quarter_store(to, format_narrow(&float8e5m2_format, value) | sign_of(value, 8), n);
}

/* ---- 32 bits: the wide type of all above ------------------------------------------------------
 */

VEC_INLINE v_f32 float32_load(const char *from, size_t n)
{
    v_f32 value = {0};

    memcpy(&value, from, n * 4);
    return value;
}

VEC_INLINE void float32_store(char *to, v_f32 value, size_t n)
{
    value = f32_canonical(value);
    memcpy(to, &value, n * 4);
}
