/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-info promises. Never knows: the parameters' meaning. */
#include "config.h"

#include <gtest/gtest.h>

#include "command.h"

namespace
{

const char *kInfo = BUILD_DIR "/tools/twill-info";

TEST(Info, ShowsVersionBuildDevicesAndParameters)
{
    Command c({kInfo}, "", {"TWILL_WARN=5s"});
    EXPECT_EQ(c.finish(), 0) << c.err;
    EXPECT_EQ(c.out.compare(0, 6, "twill "), 0);
    EXPECT_TRUE(contains(c.out, "\nbuild\n"));
    EXPECT_TRUE(contains(c.out, "sanitizer="));
    EXPECT_TRUE(contains(c.out, "cuda="));
    EXPECT_TRUE(contains(c.out, "NUMA node"));
    EXPECT_TRUE(contains(c.out, "TWILL_WARN           = 5s  default 20s  [environment]\n"))
        << c.out;
    EXPECT_TRUE(contains(c.out, "TWILL_STAGING        = 32M  [default]\n")) << c.out;
}

/* In a build without CUDA, in one on a machine without a driver, and where there are devices. */
TEST(Info, ListsGpusOrSaysWhyThereAreNone)
{
    Command c({kInfo});
    EXPECT_EQ(c.finish(), 0) << c.err;
    EXPECT_EQ(c.err, "");
#ifdef TW_HAVE_CUDA
    EXPECT_TRUE(contains(c.out, "cuda=yes")) << c.out;
    EXPECT_TRUE(contains(c.out, "cuda-arch=")) << c.out;
    EXPECT_FALSE(contains(c.out, "\nCUDA runtime none")) << c.out;
    const bool driver = !contains(c.out, ", driver none\n");
    const bool listed = contains(c.out, "GPU 0  ");
    const char *why = driver ? "GPUs  none: the CUDA driver" : "GPUs  none: no CUDA driver on this";
    EXPECT_NE(listed, contains(c.out, why)) << c.out;
    EXPECT_EQ(listed, contains(c.out, " GiB, capability ") && contains(c.out, ", PCI ")) << c.out;
#else
    EXPECT_TRUE(contains(c.out, "cuda=no")) << c.out;
    EXPECT_TRUE(contains(c.out, "\nCUDA runtime none, driver none\n")) << c.out;
    EXPECT_TRUE(contains(c.out, "GPUs  none: this build has no CUDA\n")) << c.out;
#endif
}

TEST(Info, HidesDevicesThatTheEnvironmentHides)
{
    Command c({kInfo}, "", {"CUDA_VISIBLE_DEVICES="});
    EXPECT_EQ(c.finish(), 0) << c.err;
    EXPECT_TRUE(contains(c.out, "GPUs  none: ")) << c.out;
    EXPECT_FALSE(contains(c.out, "GPU 0")) << c.out;
}

TEST(Info, SaysWhyAValueDoesNotParse)
{
    Command c({kInfo}, "", {"TWILL_CHANNELS=many"});
    EXPECT_EQ(c.finish(), 1);
    EXPECT_TRUE(contains(c.out, "= many  default 0  [environment]")) << c.out;
    EXPECT_TRUE(contains(c.err, "TWILL_CHANNELS")) << c.err;
}

TEST(Info, WarnsOfUnknownVariables)
{
    Command c({kInfo}, "", {"TWILL_CHANELS=1"});
    EXPECT_EQ(c.finish(), 0);
    EXPECT_TRUE(contains(c.err, "TWILL_CHANELS")) << c.err;
}

TEST(Info, JsonIsOneObject)
{
    Command c({kInfo, "--json"}, "", {"TWILL_ALGO=quo\"te\\", "TWILL_WARN=5s"});
    EXPECT_EQ(c.finish(), 0) << c.err;
    EXPECT_TRUE(contains(c.out, "\"name\": \"TWILL_WARN\", \"type\": \"time\", \"unit\": \"s\", "
                                "\"value\": \"5s\", \"source\": \"environment\", \"default\": "
                                "\"20s\""))
        << c.out;
    EXPECT_TRUE(contains(c.out, "\"value\": \"quo\\\"te\\\\\""));
    if (!have_tool("python3"))
        GTEST_SKIP() << "python3 is missing";
    Command python(
        {"python3", "-c",
         "import json, sys\n"
         "d = json.load(sys.stdin)\n"
         "p = {r['name']: r for r in d['parameters']}\n"
         "assert p['TWILL_ALGO']['value'] == 'quo\"te\\\\'\n"
         "assert p['TWILL_STAGING']['source'] == 'default'\n"
         "assert d['devices'][0]['kind'] == 'host' and d['devices'][0]['cpus'] >= 1\n"
         "gpus = d['gpus']\n"
         "assert gpus['count'] == len(gpus['list'])\n"
         "assert (gpus['count'] == 0) == (gpus['reason'] != '')\n"
         "for g in gpus['list']:\n"
         "    assert g['name'] and g['bytes'] > 0 and g['pci'] and '.' in g['capability']\n"
         "n = gpus['count']\n"
         "assert len(gpus['reach']) in ((n * (n - 1), 1) if n > 1 else (0,))\n"
         "between = d['between_gpus']\n"
         "assert len(between['ring']) in (0, len(between['gpus']))\n"
         "for g in between['gpus']:\n"
         "    assert g['name'] and all(l['to'] and l['bytes_per_s'] > 0 for l in g['nvlink'])\n"
         "assert d['cuda']['runtime'] and d['cuda']['driver']\n"
         "assert d['version'] and d['header_version'] and d['build']['compiler']\n"},
        c.out);
    EXPECT_EQ(python.finish(), 0) << python.err;
}

TEST(Info, LostOutputIsAFailure)
{
    for (const char *to : {" >/dev/full", " --json >&-", " --help >/dev/full"}) {
        Command c({"sh", "-c", std::string(kInfo) + to});
        EXPECT_EQ(c.finish(), 1) << to;
        EXPECT_TRUE(contains(c.err, "standard output could not be written")) << c.err;
    }
}

TEST(Info, UsageHelpVersion)
{
    Command bad({kInfo, "--bogus"});
    EXPECT_EQ(bad.finish(), 2);
    EXPECT_TRUE(contains(bad.err, "unknown option '--bogus'"));
    Command help({kInfo, "--help"});
    EXPECT_EQ(help.finish(), 0);
    EXPECT_TRUE(contains(help.out, "--json"));
    Command version({kInfo, "--version"});
    EXPECT_EQ(version.finish(), 0);
    EXPECT_EQ(version.out.compare(0, 11, "twill-info "), 0);
}

/* ---- --nccl ---------------------------------------------------------------------------------- */

TEST(InfoNccl, WhatIsNoProgramIsAnError)
{
    for (const char *path :
         {"/nowhere/program", SOURCE_DIR "/README.md", "/dev/null", "/tmp", ""}) {
        Command c({kInfo, "--nccl", path});
        EXPECT_EQ(c.finish(), 1) << path;
        EXPECT_EQ(c.out, "") << path;
        EXPECT_TRUE(contains(c.err, "twill-info: ")) << c.err;
    }
    Command none({kInfo, "--nccl", "4194305"}); /* more than Linux counts to */
    EXPECT_EQ(none.finish(), 1);
    Command usage({kInfo, "--nccl"});
    EXPECT_EQ(usage.finish(), 2);
}

TEST(InfoNccl, ProgramsAndProcessesWithoutOne)
{
    Command program({kInfo, "--nccl", "/bin/sh"});
    EXPECT_EQ(program.finish(), 0) << program.err;
    EXPECT_TRUE(contains(program.out, "/bin/sh is not linked with libnccl.so.2")) << program.out;
    Command process({kInfo, "--nccl", std::to_string(getpid())});
    EXPECT_EQ(process.finish(), 0) << process.err;
    EXPECT_TRUE(contains(process.out, " has no libnccl.so.2 loaded")) << process.out;
}

#ifdef TW_NCCL_BUILT
const char *kClient = BUILD_DIR "/tests/compat/basic_c";

TEST(InfoNccl, OfAProgramThatIsLinked)
{
    Command c({kInfo, "--nccl", kClient});
    EXPECT_EQ(c.finish(), 0) << c.err;
    EXPECT_EQ(c.out, std::string(BUILD_DIR "/nccl/.libs/libnccl.so.2: twill's\n"));
}

/* The environment has its say; what has the name need not be twill's. */
TEST(InfoNccl, OfAPathInTheEnvironment)
{
    const struct {
        const char *library, *what;
    } cases[] = {{BUILD_DIR "/nccl/.libs/libnccl.so.2", "twill's"},
                 {BUILD_DIR "/.libs/libtwill.so", "not twill's"}};
    char folder[] = "/tmp/twill-info-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const std::string path = std::string(folder) + "/libnccl.so.2";
    for (const auto &one : cases) {
        Command copy({"cp", one.library, path});
        ASSERT_EQ(copy.finish(), 0) << copy.err;
        Command c({kInfo, "--nccl", kClient}, "", {std::string("LD_LIBRARY_PATH=") + folder});
        EXPECT_EQ(c.finish(), 0) << c.err;
        EXPECT_EQ(c.out, path + ": " + one.what + "\n");
        unlink(path.c_str());
    }
    rmdir(folder);
}
#endif

} // namespace
