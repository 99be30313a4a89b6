/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the tests are started, and that they need a device. Never knows: what they test. */
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu/base.h"
#include "gpu/roles.h"

namespace
{

const struct {
    const char *name;
    int (*run)(const std::vector<std::string> &args);
} roles[] = {{"cover", gpu::role_cover},
             {"victim", gpu::role_victim},
             {"first", gpu::role_first},
             {"p2p", gpu::role_p2p},
             {"pool", gpu::role_pool}};

int play(const char *name, const std::vector<std::string> &args)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    gpu::watch();
    for (const auto &role : roles) {
        if (strcmp(role.name, name) != 0)
            continue;
        try {
            return role.run(args);
        } catch (const std::exception &e) {
            fprintf(stderr, "%s: %s\n", name, e.what());
            return 1;
        }
    }
    fprintf(stderr, "there is no role %s\n", name);
    return 2;
}

/* Each test is something that goes on. */
class Steps : public ::testing::EmptyTestEventListener
{
    void OnTestStart(const ::testing::TestInfo &info) override
    {
        gpu::step(std::string(info.test_suite_name()) + "." + info.name());
    }
};

} // namespace

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--role") == 0)
        return play(argv[2], std::vector<std::string>(argv + 3, argv + argc));
    ::testing::InitGoogleTest(&argc, argv);
    if (gpu::devices() == 0) {
        printf("no CUDA device to test on: %s\n0 passed, 1 failed\n", gpu::absence().c_str());
        return 1;
    }
    printf("%d CUDA devices\n", gpu::devices());
    gpu::watch();
    ::testing::UnitTest::GetInstance()->listeners().Append(new Steps);
    const int result = RUN_ALL_TESTS();
    const ::testing::UnitTest &all = *::testing::UnitTest::GetInstance();
    if (all.skipped_test_count() > 0)
        printf("%d tests need 2 GPUs: not run\n", all.skipped_test_count());
    if (getenv("TW_GPU_PART") == nullptr) /* else the sum is another process's to say */
        printf("%d passed, %d failed\n", all.successful_test_count(), all.failed_test_count());
    fflush(stdout);
    return result;
}
