/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the tests are started, and that they need a device. Never knows: what they test. */
#include <cstdio>
#include <cstdlib>

#include "gpu/base.h"
#include "gpu/roles.h"

int main(int argc, char **argv)
{
    int status;

    if (gpu::has_role(argc, argv, &status))
        return status;
    ::testing::InitGoogleTest(&argc, argv);
    if (gpu::devices() == 0) {
        printf("no CUDA device to test on: %s\n0 passed, 1 failed\n", gpu::absence().c_str());
        return 1;
    }
    printf("%d CUDA devices\n", gpu::devices());
    gpu::watch_tests();
    const int result = RUN_ALL_TESTS();
    const ::testing::UnitTest &all = *::testing::UnitTest::GetInstance();
    if (all.skipped_test_count() > 0)
        printf("%d tests need 2 GPUs: not run\n", all.skipped_test_count());
    if (getenv("TW_GPU_PART") == nullptr) /* else the sum is another process's to say */
        printf("%d passed, %d failed\n", all.successful_test_count(), all.failed_test_count());
    fflush(stdout);
    return result;
}
