/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/value.c. Never knows: parameters. */
#include <clocale>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>

extern "C" {
#include "base/value.h"
}

namespace
{

TEST(Value, Integers)
{
    int64_t value = 77;
    EXPECT_TRUE(tw_value_int("-1", &value));
    EXPECT_EQ(-1, value);
    EXPECT_TRUE(tw_value_int("+12", &value));
    EXPECT_EQ(12, value);
    EXPECT_TRUE(tw_value_int("9223372036854775807", &value));
    EXPECT_EQ(INT64_MAX, value);
    EXPECT_TRUE(tw_value_int("-9223372036854775808", &value));
    EXPECT_EQ(INT64_MIN, value);
    value = 77;
    for (const char *bad :
         {"", "-", "+", "1x", " 1", "1 ", "--1", "0x10", "1.0", "1e3", "9223372036854775808",
          "-9223372036854775809", "99999999999999999999999"})
        EXPECT_FALSE(tw_value_int(bad, &value)) << bad;
    EXPECT_EQ(77, value);
}

TEST(Value, Switches)
{
    bool value = false;
    for (const char *on : {"1", "yes", "on", "true"}) {
        value = false;
        EXPECT_TRUE(tw_value_bool(on, &value)) << on;
        EXPECT_TRUE(value) << on;
    }
    for (const char *off : {"0", "no", "off", "false"}) {
        value = true;
        EXPECT_TRUE(tw_value_bool(off, &value)) << off;
        EXPECT_FALSE(value) << off;
    }
    for (const char *bad : {"", "2", "00", "Yes", "y", "true "})
        EXPECT_FALSE(tw_value_bool(bad, &value)) << bad;
}

TEST(Value, Bytes)
{
    const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},           {"4096", 4096},     {"12B", 12},
        {"64K", 65536},     {"64KiB", 65536},   {"64KB", 65536},
        {"32M", 33554432},  {"1.5K", 1536},     {"0.5M", 524288},
        {"2G", 2147483648}, {"1T", 1ull << 40}, {"16777215T", 16777215ull << 40},
        {"1.0", 1},         {"0.25K", 256},     {"18446744073709551615", UINT64_MAX},
    };
    for (const auto &row : good) {
        uint64_t value = 1;
        EXPECT_TRUE(tw_value_bytes(row.text, &value)) << row.text;
        EXPECT_EQ(row.bytes, value) << row.text;
    }
    uint64_t value = 77;
    for (const char *bad : {"",
                            "K",
                            "-1",
                            "+1",
                            "1.5",
                            "1.5B",
                            "0.3K",
                            "1 K",
                            "1k",
                            "1KiBB",
                            "1.K",
                            ".5K",
                            "1..5K",
                            "1e3",
                            "16777216T",
                            "18446744073709551616",
                            "0.0000000000000000000001T",
                            "64K ",
                            "nan",
                            "inf"})
        EXPECT_FALSE(tw_value_bytes(bad, &value)) << bad;
    EXPECT_EQ(77u, value);
}

TEST(Value, Times)
{
    const struct {
        const char *text, *unit;
        uint64_t ns;
    } good[] = {
        {"300s", "s", 300000000000ull},
        {"300", "s", 300000000000ull},
        {"1.8us", "s", 1800},
        {"20ms", "s", 20000000},
        {"7ns", "s", 7},
        {"5", "us", 5000},
        {"0", "s", 0},
        {"2min", "s", 120000000000ull},
        {"1h", "s", 3600000000000ull},
        {"0.5", "s", 500000000},
        {"1.000000001s", "s", 1000000001},
    };
    for (const auto &row : good) {
        uint64_t value = 1;
        EXPECT_TRUE(tw_value_ns(row.text, row.unit, &value)) << row.text;
        EXPECT_EQ(row.ns, value) << row.text;
    }
    uint64_t value = 77;
    for (const char *bad : {"", "s", "-1s", "1.0000000001s", "0.5ns", "1 s", "1m", "1S", "300ss",
                            "18446744074s", "99999999999h", "1,5s"})
        EXPECT_FALSE(tw_value_ns(bad, "s", &value)) << bad;
    EXPECT_EQ(77u, value);
}

TEST(Value, DistanceIsLevenshteins)
{
    EXPECT_EQ(0u, tw_value_distance("", ""));
    EXPECT_EQ(3u, tw_value_distance("", "abc"));
    EXPECT_EQ(3u, tw_value_distance("kitten", "sitting"));
    EXPECT_EQ(2u, tw_value_distance("flaw", "lawn"));
    EXPECT_EQ(1u, tw_value_distance("TIMEOUT", "TIMEOUTS"));
    EXPECT_EQ(0u, tw_value_distance("SHM", "SHM"));
    EXPECT_EQ(64u, tw_value_distance(std::string(500, 'a').c_str(), std::string(500, 'b').c_str()));
}

} // namespace
