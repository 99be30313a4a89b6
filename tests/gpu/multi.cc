/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: ranks in several processes, each with its device, or some with one between them: what they
 * compute. Never knows: what happens when one is lost (lost.cc). */
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "gpu/base.h"
#include "gpu/process.h"
#include "gpu/roles.h"
#include "gpu/world.h"

namespace gpu
{

/* ---- in the processes --------------------------------------------------------------------------
 */

/* args: "id" or "env", ranks, the first one here, how many are here, first case, cases, bytes of a
 * buffer */
int role_cover(const std::vector<std::string> &args)
{
    const int size = std::stoi(args.at(1)), first = std::stoi(args.at(2));
    const int here = std::stoi(args.at(3)), device = first / here % devices();
    std::vector<int> ranks;
    std::vector<twill_comm_t> comms(1);

    if (args[0] == "id") {
        comms = join_by_id(size, first, here, device);
    } else {
        struct twill_config config = TWILL_CONFIG_INIT;
        config.device = device;
        TWILL(twill_comm_init_env(&comms[0], &config), nullptr);
    }
    for (int i = 0; i < here; i++)
        ranks.push_back(first + i);
    World world(size, ranks, std::vector<int>((size_t)here, device), comms);
    const int result = cover_ranks(&world, std::stoull(args.at(4)), std::stoull(args.at(5)),
                                   std::stoull(args.at(6)));
    if (result == 0)
        world.destroy();
    else /* the others may never come */
        world.abort();
    return result;
}

/* ---- in the test -------------------------------------------------------------------------------
 */

namespace
{

/* What a meeting by the environment needs; gone afterwards. */
class Meeting
{
  public:
    Meeting()
    {
        static int meetings = 0;
        name_ = format("twill-test-gpu-%d-%d", (int)getpid(), meetings++);
        char path[] = "/tmp/twill-test-gpu-key-XXXXXX";
        const int fd = mkstemp(path);
        unsigned char key[32];
        const int random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

        if (fd < 0 || random < 0 || read(random, key, sizeof key) != (ssize_t)sizeof key ||
            write(fd, key, sizeof key) != (ssize_t)sizeof key)
            throw Failure("no key file");
        close(random);
        close(fd);
        path_ = path;
    }
    ~Meeting() { unlink(path_.c_str()); }
    Env of(int rank, int size) const
    {
        return {{"TWILL_RANK", std::to_string(rank)},
                {"TWILL_SIZE", std::to_string(size)},
                {"TWILL_LOCAL_RANK", std::to_string(rank)},
                {"TWILL_RENDEZVOUS", "unix:" + name_},
                {"TWILL_KEY_FILE", path_}};
    }

  private:
    std::string name_, path_;
};

/* Devices that several processes share give each its turn for milliseconds: correct and slow. */
struct Amount {
    int cases;
    size_t bytes;
};
Amount amount(int processes)
{
    return processes <= devices() ? Amount{300, (size_t)8 << 20} : Amount{40, (size_t)256 << 10};
}

void cover(int processes, int each, bool by_id, const Env &env = {})
{
    const Meeting meeting;
    const Amount some = amount(processes);
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;
    const int size = processes * each;
    const int first_case = 1000 * size + 10 * each + by_id;

    for (int p = 0; p < processes; p++) {
        const std::vector<std::string> args = {"--role",
                                               "cover",
                                               by_id ? "id" : "env",
                                               std::to_string(size),
                                               std::to_string(p * each),
                                               std::to_string(each),
                                               std::to_string(first_case),
                                               std::to_string(some.cases),
                                               std::to_string(some.bytes)};
        Env its = by_id ? Env() : meeting.of(p, processes);
        its.insert(its.end(), env.begin(), env.end());
        children.push_back(std::make_unique<Child>(args, its));
        all.push_back(children.back().get());
    }
    if (by_id)
        pass_id(all);
    for (int p = 0; p < processes; p++) {
        for (int turns = 0; turns < 5; turns++) { /* each has a watchdog of its own */
            step(format("process %d of %d, %d ranks each", p, processes, each));
            const int status = children[(size_t)p]->wait(50);
            if (status != -1) {
                EXPECT_EQ(status, 0) << "process " << p << " of " << processes;
                break;
            }
            EXPECT_NE(turns, 4) << "process " << p << " does not end";
        }
    }
}

} // namespace

TEST(Multi, TwoProcessesById) { cover(2, 1, true); }
TEST(Multi, ThreeProcessesById) { cover(3, 1, true); }
TEST(Multi, FourProcessesById) { cover(4, 1, true); }
TEST(Multi, TwoProcessesOfTwoRanks) { cover(2, 2, true); }
TEST(Multi, TwoProcessesOfFourRanks) { cover(2, 4, true); }
TEST(Multi, TwoProcessesByEnvironment) { cover(2, 1, false); }
TEST(Multi, FourProcessesByEnvironment) { cover(4, 1, false); }

/* As where devices of several processes do not address each other. */
TEST(Multi, TwoProcessesByPinnedMemory) { cover(2, 1, true, {{"TWILL_P2P", "0"}}); }
TEST(Multi, ThreeProcessesByPinnedMemory) { cover(3, 1, true, {{"TWILL_P2P", "0"}}); }
TEST(Multi, TwoProcessesOfTwoRanksByPinnedMemory) { cover(2, 2, true, {{"TWILL_P2P", "0"}}); }

} // namespace gpu
