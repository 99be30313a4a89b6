/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: whose numbers are whose. Never knows: whether they are right. */
#include <gtest/gtest.h>

extern "C" {
#include "topo/build.h"
}

namespace
{

TEST(Typical, VendorsDifferAndUnknownOnesAreAlike)
{
    const struct tw_topo_rates *amd = tw_topo_typical("AuthenticAMD");
    const struct tw_topo_rates *intel = tw_topo_typical("GenuineIntel");
    const struct tw_topo_rates *other = tw_topo_typical(nullptr);
    EXPECT_EQ(tw_topo_typical("0x41"), other);
    EXPECT_NE(amd, intel);
    EXPECT_NE(amd, other);
    EXPECT_NE(intel, other);
    /* cores of one L3 are nearer each other on AMD's dies than across Intel's mesh */
    EXPECT_LT(amd->line_ps[TW_TOPO_NEAR_L3], intel->line_ps[TW_TOPO_NEAR_L3]);
}

TEST(Typical, FartherIsNeverQuicker)
{
    for (const char *vendor : {"AuthenticAMD", "GenuineIntel", "other"}) {
        const struct tw_topo_rates *rates = tw_topo_typical(vendor);
        for (int near = 1; near < TW_TOPO_NEAR_COUNT; near++)
            EXPECT_GE(rates->line_ps[near], rates->line_ps[near - 1]) << vendor << near;
        EXPECT_GT(rates->core_bytes_per_s, 0u);
        EXPECT_GT(rates->memory_bytes_per_s, 0u);
    }
}

} // namespace
