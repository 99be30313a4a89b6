/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/host.c. Never knows: other hosts. */
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include "base/host.h"
}
#include "capture.h"

namespace
{

std::string id_of(const char *override)
{
    struct tw_host host;
    EXPECT_EQ(TWILL_OK, tw_host_get(override, &host));
    EXPECT_NE(nullptr, std::memchr(host.name, '\0', sizeof(host.name)));
    EXPECT_NE('\0', host.name[0]);
    return std::string(reinterpret_cast<char *>(host.id), sizeof(host.id));
}

TEST(Host, IdentityIsStableAndCanBeOverridden)
{
    std::string own = id_of(nullptr);
    EXPECT_EQ(own, id_of(nullptr));
    EXPECT_EQ(own, id_of(""));
    EXPECT_NE(own, id_of("a"));
    EXPECT_NE(id_of("a"), id_of("b"));
    EXPECT_EQ(id_of("a"), id_of("a"));
    EXPECT_EQ(std::string::npos, own.find(text_of("/proc/sys/kernel/random/boot_id").substr(0, 8)));
}

class Cgroup : public testing::Test
{
  protected:
    void SetUp() override
    {
        mkdir(folder_.path("a").c_str(), 0700);
        mkdir(folder_.path("a/b").c_str(), 0700);
    }
    void put(const char *file, const char *text) { std::ofstream(folder_.path(file)) << text; }
    int cpus(const char *group)
    {
        std::string mount = folder_.path("");
        mount.pop_back();
        return tw_host_cgroup_cpus(mount.c_str(), group);
    }
    Folder folder_;
};

TEST_F(Cgroup, NoLimitIsZero)
{
    EXPECT_EQ(0, cpus("/"));
    EXPECT_EQ(0, cpus("/a/b"));
    EXPECT_EQ(0, cpus("/no/such"));
    put("a/b/cpu.max", "max 100000\n");
    EXPECT_EQ(0, cpus("/a/b"));
}

TEST_F(Cgroup, TheTightestOfTheGroupAndThoseAboveCounts)
{
    put("a/b/cpu.max", "350000 100000\n");
    EXPECT_EQ(4, cpus("/a/b"));
    EXPECT_EQ(0, cpus("/a"));
    put("a/cpu.max", "150000 100000\n");
    EXPECT_EQ(2, cpus("/a/b"));
    put("cpu.max", "50000 100000\n");
    EXPECT_EQ(1, cpus("/a/b"));
    EXPECT_EQ(1, cpus("/"));
}

TEST_F(Cgroup, VersionOne)
{
    put("a/cpu.cfs_quota_us", "250000\n");
    EXPECT_EQ(0, cpus("/a")) << "no period";
    put("a/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(3, cpus("/a"));
    put("a/cpu.cfs_quota_us", "-1\n");
    EXPECT_EQ(0, cpus("/a"));
}

TEST_F(Cgroup, NonsenseIsNoLimit)
{
    for (const char *text : {"", "x", "0 100000", "-5 100000", "100000 0", "100000",
                             "99999999999999999999 1", "9223372036854775807 1"}) {
        put("a/cpu.max", text);
        EXPECT_EQ(0, cpus("/a")) << text;
    }
    EXPECT_EQ(0, cpus(("/" + std::string(10000, 'g')).c_str()));
}

TEST(Host, TemporaryFilesGoWhereTheUserSays)
{
    char path[16];
    const char *own = getenv("TMPDIR");
    std::string before = own ? own : "";
    for (const char *bad : {"", "tmp", "./tmp", "/longer/than/path"}) {
        setenv("TMPDIR", bad, 1);
        tw_host_temp_dir(path, sizeof(path));
        EXPECT_STREQ(path, "/tmp") << bad;
    }
    setenv("TMPDIR", "/var/tmp", 1);
    tw_host_temp_dir(path, sizeof(path));
    EXPECT_STREQ(path, "/var/tmp");
    unsetenv("TMPDIR");
    tw_host_temp_dir(path, sizeof(path));
    EXPECT_STREQ(path, "/tmp");
    if (own)
        setenv("TMPDIR", before.c_str(), 1);
}

TEST(Host, HashDependsOnEveryByte)
{
    std::set<uint64_t> seen;
    std::vector<unsigned char> data(100);
    seen.insert(tw_hash64(data.data(), data.size()));
    for (size_t i = 0; i < data.size(); i++) {
        data[i] = 1;
        seen.insert(tw_hash64(data.data(), data.size()));
        data[i] = 0;
    }
    for (size_t length = 0; length < data.size(); length++)
        seen.insert(tw_hash64(data.data(), length));
    EXPECT_EQ(201u, seen.size());
    EXPECT_EQ(tw_hash64("twill", 5), tw_hash64("twill", 5));
}

TEST(Host, RandomBytesAreFreshAndStayInside)
{
    unsigned char a[66] = {};
    unsigned char b[66] = {};
    tw_random(a + 1, 64);
    tw_random(b + 1, 64);
    EXPECT_NE(0, std::memcmp(a + 1, b + 1, 64));
    EXPECT_EQ(0, a[0]);
    EXPECT_EQ(0, a[65]);
    std::vector<unsigned char> big(1 << 16);
    tw_random(big.data(), big.size());
    EXPECT_EQ(256u, std::set<unsigned char>(big.begin(), big.end()).size());
    tw_random(nullptr, 0);
}

} // namespace
