/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the floating-point mode of the calling thread. Never knows: what is computed in it. */
#ifndef TW_DEVICE_FPENV_H
#define TW_DEVICE_FPENV_H

/*
 * Arithmetic of twill runs round to nearest, with denormals and without traps, whatever the caller
 * has set. Between enter and leave the thread is in that mode; leave brings back the caller's. In
 * the usual case (the caller is in the default mode) nothing is written, and only sticky flags may
 * be raised.
 */
#if defined(__SSE__)
#include <stdint.h>
#include <xmmintrin.h>

#define TW_MXCSR_FLAGS 0x3fu     /* sticky exception flags: not a mode */
#define TW_MXCSR_DEFAULT 0x1f80u /* all masked, round to nearest, no FTZ, no DAZ */

struct tw_fpenv {
    uint32_t mxcsr;
};

static inline void tw_fpenv_enter(struct tw_fpenv *saved)
{
    saved->mxcsr = _mm_getcsr();
    if ((saved->mxcsr & ~TW_MXCSR_FLAGS) != TW_MXCSR_DEFAULT) {
        _mm_setcsr(TW_MXCSR_DEFAULT);
    }
    __asm__ volatile("" ::: "memory"); /* operands are loaded after the mode is set */
}

static inline void tw_fpenv_leave(const struct tw_fpenv *saved)
{
    __asm__ volatile("" ::: "memory"); /* results are stored before the mode is given back */
    if ((saved->mxcsr & ~TW_MXCSR_FLAGS) != TW_MXCSR_DEFAULT) {
        _mm_setcsr(saved->mxcsr);
    }
}
#else
#include <fenv.h>

struct tw_fpenv {
    fenv_t env;
};

static inline void tw_fpenv_enter(struct tw_fpenv *saved)
{
    fegetenv(&saved->env);
    fesetenv(FE_DFL_ENV);
    __asm__ volatile("" ::: "memory");
}

static inline void tw_fpenv_leave(const struct tw_fpenv *saved)
{
    __asm__ volatile("" ::: "memory");
    fesetenv(&saved->env);
}
#endif

#endif
