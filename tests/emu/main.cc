/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which tests of tests/gpu and of this folder a run on the processor has, and how they are
 * started. Never knows: what they test.
 *
 * All of them with TW_TEST_BUDGET=60 or more, else those that are quick; or --gtest_filter. */
#include <cstdlib>

#include "gpu/base.h"
#include "gpu/roles.h"

namespace
{

const char QUICK[] =
    "Kernels.*:Around.*:Packets.*:Pushes.*:Reach.*:Copies.*:Cover.ByPinnedMemory:Cover."
    "ByCopyEngines:Lost.*:"
    "Arguments."
    "*:"
    "Devices.*:Order.ChainInAGraph:Mismatch.OneCallMore:P2p."
    "Mismatch:"
    "P2p.AbortEndsTheWait:P2p.ItselfNeedsBoth:P2p.AbortBetweenAPairWithItself:P2p.Arguments:P2p."
    "TwoProcesses:Plans.*:Apart.MappedInOneProcess:Apart.MappedInTwoProcesses:Apart."
    "BuffersThatEndTooEarly:"
    "DeviceMemory.OfAPool";
/* Blocks for all pairs of eight ranks, or of two large calls at once, are more than devices have
 * here, and the threads that run them are kept, so that they cannot be counted. */
const char NEVER[] = "-P2p.RandomBatches:DeviceMemory.SixteenCommunicatorsComeAndGo:"
                     "Order.FirstCallBesideAKernelThatWaits";

} // namespace

int main(int argc, char **argv)
{
    const char *budget = getenv("TW_TEST_BUDGET");
    int status;

    if (gpu::has_role(argc, argv, &status))
        return status;
    const bool all = budget != nullptr && atoi(budget) >= 60;
    GTEST_FLAG_SET(filter, all ? NEVER : QUICK);
    if (!all)
        (void)setenv("TW_GPU_BRIEF", "1", 0);
    ::testing::InitGoogleTest(&argc, argv);
    (void)setenv("TW_GPU_BUDGET", budget != nullptr ? budget : "15", 0);
    gpu::watch_tests();
    return RUN_ALL_TESTS();
}
