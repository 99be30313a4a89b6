// SPDX-License-Identifier: Apache-2.0
// Knows: that the caller's floating-point mode changes no result and is given back. Never knows:
// how kernels see to it.
#include <cfenv>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "kernels.h"

namespace
{

// The thread rounds upwards, and flushes denormals where it can.
class OddMode
{
  public:
    OddMode()
    {
        std::fegetenv(&saved_);
        std::fesetround(FE_UPWARD);
#if defined(__SSE__)
        _mm_setcsr(_mm_getcsr() | 0x8040); // FTZ, DAZ
        mxcsr_ = _mm_getcsr() & ~0x3fu;
#endif
    }
    ~OddMode() { std::fesetenv(&saved_); }
    OddMode(const OddMode &) = delete;
    OddMode &operator=(const OddMode &) = delete;
    bool still_on() const
    {
#if defined(__SSE__)
        if ((_mm_getcsr() & ~0x3fu) != mxcsr_) {
            return false;
        }
#endif
        return std::fegetround() == FE_UPWARD;
    }

  private:
    std::fenv_t saved_;
#if defined(__SSE__)
    unsigned mxcsr_;
#endif
};

// run fills an array; it must fill it alike in both modes.
template <class Run> void check_modes(size_t length, const std::string &what, Run run)
{
    std::vector<uint8_t> want(length);
    std::vector<uint8_t> got(length);
    bool kept;
    run(want.data());
    {
        const OddMode mode;
        run(got.data());
        kept = mode.still_on();
    }
    EXPECT_TRUE(kept) << what;
    EXPECT_TRUE(got == want) << what;
}

const size_t elems = 1003;

TEST(ReduceMode, DoesNotMatterToReductions)
{
    for (const Kernel &kernel : all_kernels()) {
        const std::vector<uint8_t> a =
            reference::pack(kernel.left(), draw_many(kernel.left(), elems, 5));
        const std::vector<uint8_t> b =
            reference::pack(kernel.right(), draw_many(kernel.right(), elems, 6));
        for (const tw_isa isa : isas_here()) {
            const tw_reduce_fn fn = tw_reduce_form_find(kernel.type, kernel.op, kernel.form, isa);
            check_modes(elems * reference::bytes(kernel.dst()), kernel.name(),
                        [&](void *dst) { fn(dst, a.data(), b.data(), elems); });
        }
    }
}

TEST(ReduceMode, DoesNotMatterToMapsAndConversions)
{
    for (int t = 0; t < reference::type_count; t++) {
        const twill_type_t type = (twill_type_t)t;
        const twill_type_t wide = reference::wide_type(type);
        const std::vector<uint8_t> a = reference::pack(type, draw_many(type, elems, 7));
        const std::vector<uint8_t> w = reference::pack(wide, draw_many(wide, elems, 8));
        const size_t narrow_bytes = elems * reference::bytes(type);
        const size_t wide_bytes = elems * reference::bytes(wide);
        const uint64_t least = 1; // the smallest subnormal
        const std::string what = reference::name(type);
        for (const tw_isa isa : isas_here()) {
            check_modes(narrow_bytes, what + " divide",
                        [&](void *dst) { tw_divide_find(type, isa)(dst, w.data(), elems, 3); });
            for (const void *scalar : {(const void *)&least, (const void *)&a[0]}) {
                check_modes(narrow_bytes, what + " scale", [&](void *dst) {
                    tw_scale_find(type, isa)(dst, a.data(), elems, scalar);
                });
            }
            if (reference::is_narrow(type)) {
                check_modes(wide_bytes, what + " widen",
                            [&](void *dst) { tw_widen_find(type, isa)(dst, a.data(), elems); });
                check_modes(narrow_bytes, what + " round",
                            [&](void *dst) { tw_round_find(type, isa)(dst, w.data(), elems); });
            }
        }
    }
}

#if defined(__SSE__)
TEST(ReduceMode, CallersTrapsStaySilentAndStaySet)
{
    const unsigned saved = _mm_getcsr();
    const unsigned trapping = 0x1e80 & ~0x1800u; // unmasked: inexact, underflow
    for (const Kernel &kernel : all_kernels()) {
        const std::vector<uint8_t> a =
            reference::pack(kernel.left(), draw_many(kernel.left(), elems, 5));
        const std::vector<uint8_t> b =
            reference::pack(kernel.right(), draw_many(kernel.right(), elems, 6));
        std::vector<uint8_t> got(elems * reference::bytes(kernel.dst()));
        for (const tw_isa isa : isas_here()) {
            _mm_setcsr(trapping);
            tw_reduce_form_find(kernel.type, kernel.op, kernel.form, isa)(got.data(), a.data(),
                                                                          b.data(), elems);
            const unsigned after = _mm_getcsr();
            _mm_setcsr(saved);
            EXPECT_EQ(after, trapping) << kernel.name();
        }
    }
}
#endif

} // namespace
