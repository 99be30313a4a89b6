/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: twill's interface beside NCCL's, in one process, and the page that describes both.
 * Never knows: what a program can see by itself. */
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "ranks.h"
#include "twill.h"

extern "C" ncclResult_t tw_compat_result(enum twill_status status);

static std::string value_of(const char *name)
{
    char value[256] = "";
    EXPECT_EQ(twill_param_get(name, value, sizeof value), TWILL_OK);
    return value;
}

/* Programs written for NCCL have watchdogs of their own. */
TEST(NcclInside, OperationsHaveNoTimeLimit)
{
    ranks::alone([] {
        ncclUniqueId id;
        EXPECT_EQ(value_of("TIMEOUT"), "1800s");
        EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
        EXPECT_EQ(value_of("TIMEOUT"), "0");
    });
}

static const char *const result_names[] = {
    "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
    "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress"};

/* docs/nccl.md's rows "| `TWILL_X` | `ncclY` | why |". */
TEST(NcclInside, EveryStatusIsTheResultThatThePageSays)
{
    const char *top = getenv("srcdir");
    std::ifstream page(std::string(top ? top : ".") + "/docs/nccl.md");
    ASSERT_TRUE(page.is_open());
    std::map<std::string, std::string> rows;
    for (std::string line; std::getline(page, line);) {
        std::istringstream words(line);
        std::string bar, status, result;
        words >> bar >> status >> bar >> result;
        if (bar == "|" && status.rfind("`TWILL_", 0) == 0 && result.rfind("`nccl", 0) == 0)
            rows[status.substr(1, status.size() - 2)] = result.substr(1, result.size() - 2);
    }
#define CHECK_ROW(name, value, text)                                                               \
    EXPECT_EQ(rows["TWILL_" #name], result_names[tw_compat_result(TWILL_##name)]) << #name;
    TWILL_STATUS_LIST(CHECK_ROW)
#undef CHECK_ROW
    EXPECT_EQ(tw_compat_result((enum twill_status) - 99), ncclInternalError);
}
