/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that the public header stands alone in C++ too, and its frozen values. */
#pragma GCC diagnostic error "-Wpedantic"
#include "twill.h"

#include <gtest/gtest.h>

struct header_names;
extern "C" const struct header_names *header_names(void);
extern "C" struct twill_config header_config(void);

namespace
{

TEST(Header, LinksFromC) { EXPECT_NE(header_names(), nullptr); }

TEST(Header, ConfigIsTheSameInBothLanguages)
{
    const twill_config from_c = header_config();
    const twill_config from_cxx = TWILL_CONFIG_INIT;
    EXPECT_EQ(from_c.size, sizeof(twill_config));
    EXPECT_EQ(from_c.size, from_cxx.size);
    EXPECT_EQ(from_c.magic, from_cxx.magic);
    EXPECT_EQ(from_c.version, from_cxx.version);
    EXPECT_EQ(from_c.blocking, TWILL_UNSET);
    EXPECT_EQ(from_c.channels, TWILL_UNSET);
    EXPECT_EQ(from_c.name, nullptr);
    EXPECT_EQ(from_c.max_sms, TWILL_UNSET);
}

/* Programs are compiled against these for ever. */
TEST(Header, ValuesAreFrozen)
{
    EXPECT_EQ(TWILL_OK, 0);
    EXPECT_EQ(TWILL_INPROGRESS, 1);
    EXPECT_EQ(TWILL_ERR_INVALID, -1);
    EXPECT_EQ(TWILL_ERR_UNSUPPORTED, -4);
    EXPECT_EQ(TWILL_ERR_NOMEM, -20);
    EXPECT_EQ(TWILL_ERR_PEER, -40);
    EXPECT_EQ(TWILL_ERR_VERSION, -45);
    EXPECT_EQ(TWILL_INT8, 0);
    EXPECT_EQ(TWILL_FLOAT32, 7);
    EXPECT_EQ(TWILL_BFLOAT16, 9);
    EXPECT_EQ(TWILL_FLOAT8E5M2, 11);
    EXPECT_EQ(TWILL_SUM, 0);
    EXPECT_EQ(TWILL_AVG, 4);
    EXPECT_EQ(sizeof(twill_unique_id), 128u);
}

TEST(Header, StatusNames)
{
    EXPECT_STREQ(twill_status_string(TWILL_OK), "TWILL_OK");
    EXPECT_STREQ(twill_status_string(TWILL_ERR_PEER), "TWILL_ERR_PEER");
    EXPECT_STREQ(twill_status_string((enum twill_status)7777), "TWILL_UNKNOWN");
}

} // namespace
