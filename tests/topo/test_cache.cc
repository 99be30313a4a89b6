/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: files that can and cannot be believed. Never knows: how measurements are made. */
#include "graphs.hh"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

extern "C" {
#include "base/host.h"
#include "topo/probe.h"
uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
}

static uid_t other_user; /* 0: the real one */

extern "C" uid_t __wrap_geteuid(void) { return other_user ? other_user : __real_geteuid(); }

namespace
{

const uint64_t kNow = 5000000000000, kKey = 0x1234, kDay = 86400000000000;

class Cache : public testing::Test
{
  protected:
    void SetUp() override
    {
        char path[] = "/tmp/twill-cache-XXXXXX";
        ASSERT_NE(mkdtemp(path), nullptr);
        directory = path;
        measured.line_ps[TW_TOPO_NEAR_L3] = 77;
        measured.cma_bytes_per_s = 99;
    }
    void TearDown() override
    {
        other_user = 0;
        unsetenv("XDG_RUNTIME_DIR");
        std::filesystem::remove_all(directory);
    }
    bool write(uint64_t now = kNow)
    {
        return tw_topo_cache_write(directory.c_str(), kKey, now, &measured);
    }
    bool read(uint64_t now = kNow, uint64_t key = kKey)
    {
        memset(&got, 0x5a, sizeof(got));
        return tw_topo_cache_read(directory.c_str(), key, now, &got);
    }
    std::string file() { return directory + "/twill/probe-0000000000001234"; }
    std::string bytes()
    {
        std::ifstream in(file(), std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }
    void put(const std::string &text) { std::ofstream(file(), std::ios::binary) << text; }

    std::string directory;
    struct tw_topo_measured measured = {}, got;
};

TEST_F(Cache, GivesBackWhatWasKept)
{
    EXPECT_FALSE(read());
    ASSERT_TRUE(write());
    ASSERT_TRUE(read());
    EXPECT_EQ(memcmp(&got, &measured, sizeof(got)), 0);
    measured.line_ps[0] = 5;
    ASSERT_TRUE(write()); /* a newer one takes its place */
    ASSERT_TRUE(read());
    EXPECT_EQ(got.line_ps[0], 5u);
    struct stat stat;
    ASSERT_EQ(::stat(file().c_str(), &stat), 0);
    EXPECT_EQ(stat.st_mode & 0777, 0600u);
    /* nothing else is left in the folder */
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory + "/twill"), {}), 1);
}

TEST_F(Cache, IsForOneKeyAndOneDay)
{
    ASSERT_TRUE(write());
    EXPECT_FALSE(read(kNow, kKey + 1));
    EXPECT_TRUE(read(kNow + kDay - 1));
    EXPECT_FALSE(read(kNow + kDay));
    EXPECT_FALSE(read(kNow - 1)); /* of a boot whose clock was further */
    std::filesystem::rename(file(), directory + "/twill/probe-0000000000001235");
    EXPECT_FALSE(read(kNow, kKey + 1)); /* the name is not believed, either */
}

TEST_F(Cache, BelievesNoByteThatChanged)
{
    ASSERT_TRUE(write());
    std::string good = bytes();
    for (size_t i = 0; i < good.size(); i++) {
        std::string bad = good;
        bad[i] ^= 1;
        put(bad);
        EXPECT_FALSE(read()) << i;
    }
    for (size_t size = 0; size < good.size(); size += 7) {
        put(good.substr(0, size));
        EXPECT_FALSE(read()) << size;
    }
    put(good + "x");
    EXPECT_FALSE(read());
    put(good);
    EXPECT_TRUE(read());
}

TEST_F(Cache, BelievesNoFileThatOthersCouldHaveMade)
{
    ASSERT_TRUE(write());
    std::string good = bytes(), folder = directory + "/twill";
    const struct {
        const char *what;
        std::function<void()> spoil, mend;
    } faults[] = {
        {"file for the group", [&] { chmod(file().c_str(), 0620); },
         [&] { chmod(file().c_str(), 0600); }},
        {"file for all", [&] { chmod(file().c_str(), 0602); },
         [&] { chmod(file().c_str(), 0600); }},
        {"folder for all", [&] { chmod(folder.c_str(), 0777); },
         [&] { chmod(folder.c_str(), 0700); }},
        {"outer folder for all", [&] { chmod(directory.c_str(), 01777); },
         [&] { chmod(directory.c_str(), 0700); }},
        {"another user", [&] { other_user = 12345; }, [&] { other_user = 0; }},
        {"two names", [&] { EXPECT_EQ(link(file().c_str(), (folder + "/x").c_str()), 0); },
         [&] { unlink((folder + "/x").c_str()); }},
        {"a link",
         [&] {
             rename(file().c_str(), (folder + "/x").c_str());
             EXPECT_EQ(symlink("x", file().c_str()), 0);
         },
         [&] { rename((folder + "/x").c_str(), file().c_str()); }},
        {"a folder that is a link",
         [&] {
             rename(folder.c_str(), (directory + "/y").c_str());
             EXPECT_EQ(symlink("y", folder.c_str()), 0);
         },
         [&] {
             unlink(folder.c_str());
             rename((directory + "/y").c_str(), folder.c_str());
         }},
        {"a pipe",
         [&] {
             unlink(file().c_str());
             EXPECT_EQ(mkfifo(file().c_str(), 0600), 0);
         },
         [&] {
             unlink(file().c_str());
             ASSERT_TRUE(write());
         }},
    };
    for (const auto &fault : faults) {
        ASSERT_TRUE(read()) << "before " << fault.what;
        fault.spoil();
        EXPECT_FALSE(read()) << fault.what;
        fault.mend();
    }
    EXPECT_TRUE(read());
}

TEST_F(Cache, KeepsNothingWhereOthersCouldChangeIt)
{
    chmod(directory.c_str(), 0770);
    EXPECT_FALSE(write());
    chmod(directory.c_str(), 0700);
    other_user = 12345;
    EXPECT_FALSE(write());
    other_user = 0;
    ASSERT_EQ(mkdir((directory + "/twill").c_str(), 0700), 0);
    chmod((directory + "/twill").c_str(), 0777);
    EXPECT_FALSE(write());
    EXPECT_FALSE(tw_topo_cache_write("/tmp/twill-no-such-folder", kKey, kNow, &measured));
    /* a file in the folder's place */
    std::filesystem::remove_all(directory + "/twill");
    std::ofstream(directory + "/twill") << "x";
    EXPECT_FALSE(write());
    EXPECT_FALSE(read());
}

TEST_F(Cache, KeyTellsMachinesApart)
{
    Graph a("amd-2s-nps4"), b("intel-2s"), c("amd-2s-nps4");
    uint64_t key_a = 0, key_b = 0, key_c = 0;
    ASSERT_EQ(tw_topo_cache_key(a.g->machines, &key_a), TWILL_OK);
    ASSERT_EQ(tw_topo_cache_key(b.g->machines, &key_b), TWILL_OK);
    ASSERT_EQ(tw_topo_cache_key(c.g->machines, &key_c), TWILL_OK);
    EXPECT_NE(key_a, key_b);
    EXPECT_EQ(key_a, key_c);
    c.machine().nodes[c.nth(TW_NODE_PU, 3)].os_index = 999; /* other CPUs of the same host */
    ASSERT_EQ(tw_topo_cache_key(c.g->machines, &key_c), TWILL_OK);
    EXPECT_NE(key_a, key_c);
}

TEST_F(Cache, MeasureTakesWhatIsThereAndKeepsWhatIsNot)
{
    Graph here;
    ASSERT_EQ(tw_topo_discover(&here.g, TW_TOPO_SCOPE_PROCESS), TWILL_OK);
    ASSERT_EQ(setenv("XDG_RUNTIME_DIR", directory.c_str(), 1), 0);
    struct tw_topo_measured first, second;
    ASSERT_EQ(tw_topo_measure(here.g->machines, 20000000000, &first), TWILL_OK);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory + "/twill"), {}), 1);
    /* with no time at all the same comes back: it was not measured again */
    ASSERT_EQ(tw_topo_measure(here.g->machines, 0, &second), TWILL_OK);
    EXPECT_EQ(memcmp(&first, &second, sizeof(first)), 0);
    ASSERT_EQ(setenv("XDG_RUNTIME_DIR", "relative", 1), 0);
    ASSERT_EQ(tw_topo_measure(here.g->machines, 0, &second), TWILL_OK);
    EXPECT_EQ(second.copy_bytes_per_s[0], 0u);
    /* what is not whole is not kept */
    std::filesystem::remove_all(directory + "/twill");
    ASSERT_EQ(setenv("XDG_RUNTIME_DIR", directory.c_str(), 1), 0);
    ASSERT_EQ(tw_topo_measure(here.g->machines, 0, &second), TWILL_OK);
    EXPECT_FALSE(std::filesystem::exists(directory + "/twill/probe"));
    EXPECT_TRUE(!std::filesystem::exists(directory + "/twill") ||
                std::filesystem::is_empty(directory + "/twill"));
}

TEST_F(Cache, RuntimeFolderMustBeAbsoluteAndFit)
{
    char path[64];
    unsetenv("XDG_RUNTIME_DIR");
    EXPECT_FALSE(tw_host_runtime_dir(path, sizeof(path)));
    for (const char *bad : {"", "run", "./run"}) {
        setenv("XDG_RUNTIME_DIR", bad, 1);
        EXPECT_FALSE(tw_host_runtime_dir(path, sizeof(path))) << bad;
    }
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    EXPECT_TRUE(tw_host_runtime_dir(path, sizeof(path)));
    EXPECT_STREQ(path, "/run/user/7");
    EXPECT_FALSE(tw_host_runtime_dir(path, 11));
    EXPECT_TRUE(tw_host_runtime_dir(path, 12));
}

} // namespace
