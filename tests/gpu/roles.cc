/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/roles.h"

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "gpu/base.h"

namespace gpu
{

namespace
{

const struct {
    const char *name;
    int (*run)(const std::vector<std::string> &args);
} roles[] = {{"cover", role_cover}, {"victim", role_victim}, {"first", role_first},
             {"p2p", role_p2p},     {"plans", role_plans},   {"cut", role_cut},
             {"pool", role_pool},   {"mapped", role_mapped}, {"pieces", role_pieces},
             {"copy", role_copy}};

int play(const char *name, const std::vector<std::string> &args)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    watch();
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
        step(std::string(info.test_suite_name()) + "." + info.name());
    }
};

} // namespace

bool has_role(int argc, char **argv, int *status)
{
    if (argc <= 2 || strcmp(argv[1], "--role") != 0)
        return false;
    *status = play(argv[2], std::vector<std::string>(argv + 3, argv + argc));
    return true;
}

void watch_tests()
{
    watch();
    ::testing::UnitTest::GetInstance()->listeners().Append(new Steps);
}

} // namespace gpu
