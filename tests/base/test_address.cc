/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

extern "C" {
#include "base/host.h"
}

TEST(Address, OfThisHost)
{
    char name[256] = "";
    ASSERT_EQ(0, gethostname(name, sizeof(name) - 1));
    EXPECT_EQ(TW_HERE_YES, tw_host_here(name));
    EXPECT_EQ(TW_HERE_YES, tw_host_here((std::string(name) + ".example.com").c_str()));
    EXPECT_EQ(TW_HERE_YES, tw_host_here("127.0.0.1"));
    EXPECT_EQ(TW_HERE_YES, tw_host_here("127.9.8.7"));
}

/* From the blocks that are kept for documentation: nobody has them. */
TEST(Address, OfAnotherHost)
{
    for (const char *address : {"192.0.2.1", "198.51.100.7", "203.0.113.200"})
        EXPECT_EQ(TW_HERE_NO, tw_host_here(address)) << address;
}

TEST(Address, ThatIsNone)
{
    EXPECT_EQ(TW_HERE_UNKNOWN, tw_host_here("not a name at all"));
    EXPECT_EQ(TW_HERE_UNKNOWN, tw_host_here("300.1.2.3.4.5"));
}
