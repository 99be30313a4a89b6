/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs with random calls, each from one seed, compared with plain arithmetic.
 *   TW_PROPERTY_SEED=0x...   one case, printed before it runs
 *   TW_PROPERTY_SECONDS      how long new cases are begun (30)
 *   TW_PROPERTY_FIRST        of the run, a number or "random"; otherwise every run is the same one
 * Knows: which cases are run, what is printed. Never knows: what a case does. */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "device/reference.h"
#include "property/world.h"

namespace
{

using namespace property;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const double LIMIT_S = 600;
#else
const double LIMIT_S = 60;
#endif
const int FAILURES_MOST = 10;

struct Tally {
    int passed = 0, failed = 0;
    std::map<std::string, int> calls;  /* by collective */
    std::map<std::string, int> forced; /* by collective and algorithm */

    void add(const Case &c)
    {
        for (const Batch &batch : c.batches) {
            for (const Call &call : batch.calls) {
                calls[name(call.kind)]++;
                if (c.forced[call.kind])
                    forced[std::string(name(call.kind)) + '=' + c.forced[call.kind]]++;
            }
        }
    }
    void print() const
    {
        int sum = 0;
        for (const auto &entry : calls) {
            printf("%s %d  ", entry.first.c_str(), entry.second);
            sum += entry.second;
        }
        printf("\nforced:");
        for (const auto &entry : forced)
            printf(" %s %d ", entry.first.c_str(), entry.second);
        printf("\n%d cases, %d calls\n%d passed, %d failed\n", passed + failed, sum, passed,
               failed);
    }
};

bool run_one(uint64_t seed, bool print, Tally *tally)
{
    const Case c = draw(seed);
    if (print)
        printf("%s", c.text().c_str());
    tally->add(c);
    const std::string wrong = run(c, LIMIT_S);
    (wrong.empty() ? tally->passed : tally->failed)++;
    if (!wrong.empty())
        printf("FAILED TW_PROPERTY_SEED=0x%llx tests/property/test_property: %s; %s\n",
               (unsigned long long)seed, wrong.c_str(), c.head().c_str());
    fflush(stdout);
    return wrong.empty();
}

/* Tables of the reference that are made at first use: here, before there are threads. */
void warm_up()
{
    for (int type = 0; type < reference::type_count; type++) {
        (void)reference::from_int((twill_type_t)type, 0);
        (void)reference::decode((twill_type_t)type, 0);
    }
}

uint64_t first_seed()
{
    const char *text = getenv("TW_PROPERTY_FIRST");
    if (!text || !*text)
        return 1;
    if (std::string(text) != "random")
        return strtoull(text, nullptr, 0);
    std::random_device device;
    return ((uint64_t)device() << 32) | device();
}

} // namespace

int main()
{
    warm_up();
    Tally tally;
    const char *one = getenv("TW_PROPERTY_SEED"), *seconds = getenv("TW_PROPERTY_SECONDS");
    if (one && *one)
        return run_one(strtoull(one, nullptr, 0), true, &tally) ? 0 : 1;
    const double end_s = now_s() + (seconds && *seconds ? atof(seconds) : 30);
    const uint64_t first = first_seed();
    printf("first 0x%llx\n", (unsigned long long)first);
    for (uint64_t i = 0; tally.failed < FAILURES_MOST && now_s() < end_s; i++)
        run_one(mix(first + i * 0x9e3779b97f4a7c15ull), false, &tally);
    tally.print();
    return tally.passed > 0 && tally.failed == 0 ? 0 : 1;
}
