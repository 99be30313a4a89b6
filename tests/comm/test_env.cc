/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "ranks.h"

extern "C" {
#include "base/launcher.h"
#include "base/log.h"
#include "comm/control.h"
#include "comm/meeting.h"
}

typedef std::vector<std::pair<std::string, std::string>> Vars;

/* What a launcher sets is all there is. */
static void set_environment(const Vars &vars)
{
    for (int i = 0; i < TW_LAUNCHER_COUNT; i++)
        unsetenv(tw_launcher_name((enum tw_launcher_var)i));
    for (const char *name : {"RANK", "SIZE", "LOCAL_RANK", "RENDEZVOUS", "KEY_FD", "KEY_FILE",
                             "REQUIRE_KEY", "INIT_TIMEOUT", "LOG_FILE"})
        unsetenv((std::string("TWILL_") + name).c_str());
    for (const auto &var : vars)
        setenv(var.first.c_str(), var.second.c_str(), 1);
    tw_params_reset();
}

/* Expects that init from this environment is refused. */
static void refused(const Vars &vars, enum twill_status status, const std::string &text)
{
    Child child([&](const Wire &) {
        set_environment(vars);
        Count before = count_now();
        struct tw_comm_args args = args_of(0, 0, {});
        EXPECT_EQ(status, tw_env_args(&args)) << tw_fail_text();
        EXPECT_TRUE(contains(tw_fail_text(), text)) << tw_fail_text();
        EXPECT_TRUE(count_returns(before));
        return 0;
    });
    EXPECT_EQ(0, child.wait());
}

static Outcome connect_from_env(int rank, int size, int times = 1)
{
    Outcome outcome;
    for (int i = 0; i < times; i++) {
        struct tw_comm_args args = args_of(-1, -1, {});
        outcome.status = tw_env_args(&args);
        if (outcome.status != TWILL_OK) {
            strcpy(outcome.text, tw_fail_text());
            return outcome;
        }
        EXPECT_EQ(rank, args.rank);
        EXPECT_EQ(size, args.size);
        Comm comm(args);
        (void)comm.connect();
        outcome = outcome_of(comm.get());
        if (outcome.status == TWILL_OK) {
            outcome.at_ms = comm->id_hash;
            EXPECT_EQ(TWILL_OK, comm.finalize()) << comm.failure();
        }
    }
    return outcome;
}

/* Jobs side by side: a process for each rank of each, with its environment; all connect. */
static std::vector<Outcome> jobs(int count, int size, const std::function<Vars(int, int)> &vars,
                                 int times = 1, const std::function<void(int)> &prepare = nullptr)
{
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Outcome> outcomes(count * size);
    for (int i = 0; i < count * size; i++) {
        int rank = i % size;
        children.push_back(std::make_unique<Child>([&, i, rank](const Wire &wire) {
            set_environment(vars(i / size, rank));
            if (prepare)
                prepare(rank);
            Count before = count_now();
            if (getenv("TWILL_KEY_FD") != nullptr)
                before.fds--; /* closed by its reading */
            wire.put(connect_from_env(rank, size, times));
            EXPECT_TRUE(count_returns(before));
            return 0;
        }));
    }
    for (int i = 0; i < count * size; i++) {
        EXPECT_TRUE(children[i]->wire.get(&outcomes[i]));
        EXPECT_EQ(0, children[i]->wait());
    }
    return outcomes;
}

static std::vector<Outcome> job(int size, const std::function<Vars(int)> &vars, int times = 1,
                                const std::function<void(int)> &prepare = nullptr)
{
    return jobs(
        1, size, [&](int, int rank) { return vars(rank); }, times, prepare);
}

static void expect_met(const std::vector<Outcome> &outcomes)
{
    for (const Outcome &outcome : outcomes) {
        EXPECT_EQ(TWILL_OK, outcome.status) << outcome.text;
        EXPECT_EQ(outcomes[0].at_ms, outcome.at_ms) << "one communicator";
    }
}

static std::string unique(const char *what)
{
    return std::string(what) + "-" + std::to_string(getpid()) + "-" + std::to_string(now_ms());
}

/* ---- twill-run's variables ---- */

static Vars twill_vars(int rank, int size, const std::string &meet, const Vars &more = {})
{
    Vars vars = {{"TWILL_RANK", std::to_string(rank)},
                 {"TWILL_SIZE", std::to_string(size)},
                 {"TWILL_RENDEZVOUS", "unix:" + meet}};
    vars.insert(vars.end(), more.begin(), more.end());
    return vars;
}

/* A descriptor with a key, as children inherit it. */
static int key_memfd(const std::string &key)
{
    int fd = memfd_create("key", 0);
    EXPECT_EQ((ssize_t)key.size(), write(fd, key.data(), key.size()));
    EXPECT_EQ(0, lseek(fd, 0, SEEK_SET));
    return fd;
}

static const std::string raw_key = "0123456789abcdef0123456789abcdef";

TEST(Env, NoLauncherIsOneRank)
{
    expect_met(job(1, [](int) { return Vars{}; }));
}

TEST(Env, TwillRunWithAKeyFromAFileDescriptor)
{
    std::string meet = unique("fd");
    int fd = key_memfd(raw_key); /* one open file, whose offset all share */
    expect_met(job(4, [&](int rank) {
        return twill_vars(rank, 4, meet, {{"TWILL_KEY_FD", std::to_string(fd)}});
    }));
    close(fd);
}

TEST(Env, TheKeyIsReadOnceAndServesLaterInits)
{
    std::string meet = unique("pipe");
    int pipes[2][2];
    for (auto &ends : pipes) {
        ASSERT_EQ(0, pipe(ends));
        ASSERT_EQ((ssize_t)raw_key.size(), write(ends[1], raw_key.data(), raw_key.size()));
        close(ends[1]);
    }
    expect_met(job(
        2,
        [&](int rank) {
            return twill_vars(rank, 2, meet, {{"TWILL_KEY_FD", std::to_string(pipes[rank][0])}});
        },
        3));
    close(pipes[0][0]);
    close(pipes[1][0]);
}

TEST(Env, KeyFileInBothForms)
{
    std::string path = "/tmp/" + unique("twill-key");
    std::string meet = unique("file");
    const std::string forms[] = {raw_key, std::string(64, 'a') + "\n", std::string(64, '7')};
    for (const std::string &form : forms) {
        std::ofstream(path) << form;
        ASSERT_EQ(0, chmod(path.c_str(), 0600));
        expect_met(job(3, [&](int rank) {
            return twill_vars(rank, 3, meet + form.substr(0, 1),
                              {{"TWILL_KEY_FILE", path}, {"TWILL_REQUIRE_KEY", "1"}});
        }));
    }
    unlink(path.c_str());
}

TEST(Env, AKeyFileThatOthersMayOpenIsRefused)
{
    std::string path = "/tmp/" + unique("twill-open-key");
    std::ofstream(path) << raw_key;
    for (mode_t mode : {0640, 0604, 0660, 0644, 0601}) {
        ASSERT_EQ(0, chmod(path.c_str(), mode));
        refused(twill_vars(0, 2, unique("open"), {{"TWILL_KEY_FILE", path}}), TWILL_ERR_AUTH,
                "chmod 600");
    }
    unlink(path.c_str());
}

TEST(Env, DifferentKeysDoNotMeet)
{
    std::string meet = unique("differ");
    int fds[2] = {key_memfd(raw_key), key_memfd("another key, of as many bytes!!!")};
    std::vector<Outcome> outcomes = job(2, [&](int rank) {
        return twill_vars(
            rank, 2, meet,
            {{"TWILL_KEY_FD", std::to_string(fds[rank])}, {"TWILL_INIT_TIMEOUT", "500ms"}});
    });
    for (const Outcome &outcome : outcomes)
        EXPECT_NE(TWILL_OK, outcome.status);
    EXPECT_EQ(TWILL_ERR_AUTH, outcomes[1].status) << outcomes[1].text;
    close(fds[0]);
    close(fds[1]);
}

TEST(Env, WithoutAKeyThereIsOneWarningAndAFreshKey)
{
    std::string meet = unique("keyless");
    std::string log = "/tmp/" + unique("twill-log");
    expect_met(job(
        3,
        [&](int rank) {
            return twill_vars(rank, 3, meet,
                              {{"TWILL_LOG_FILE", log + "-" + std::to_string(rank)}});
        },
        2,
        /* the log's descriptor stays open: it must be there before anything is counted */
        [&](int rank) {
            (void)tw_log_configure("warn", (log + "-" + std::to_string(rank)).c_str());
        }));
    for (int rank = 0; rank < 3; rank++) {
        std::string path = log + "-" + std::to_string(rank);
        std::ifstream in(path);
        std::stringstream text;
        text << in.rdbuf();
        size_t first = text.str().find("unauthenticated first contact");
        EXPECT_NE(std::string::npos, first) << text.str();
        EXPECT_EQ(first, text.str().rfind("unauthenticated first contact")) << text.str();
        unlink(path.c_str());
    }
}

TEST(Env, WithoutAKeyWhereOneIsRequired)
{
    refused(twill_vars(0, 2, unique("required"), {{"TWILL_REQUIRE_KEY", "1"}}), TWILL_ERR_AUTH,
            "TWILL_REQUIRE_KEY=1");
}

TEST(Env, AMissingRankIsNamed)
{
    std::string meet = unique("missing");
    std::vector<Outcome> outcomes = job(2, [&](int rank) {
        return twill_vars(rank, 2, rank == 1 ? meet + "-elsewhere" : meet,
                          {{"TWILL_INIT_TIMEOUT", "300ms"}});
    });
    EXPECT_EQ(TWILL_ERR_TIMEOUT, outcomes[0].status);
    EXPECT_TRUE(contains(outcomes[0].text, "missing: 1")) << outcomes[0].text;
    EXPECT_EQ(TWILL_ERR_TIMEOUT, outcomes[1].status) << outcomes[1].text;
    EXPECT_TRUE(contains(outcomes[1].text, "rank 1 found no meeting point on host"))
        << outcomes[1].text;
}

TEST(Env, BadVariablesAreNamed)
{
    std::string meet = unique("bad");
    refused({{"TWILL_RANK", "0"}}, TWILL_ERR_INVALID, "TWILL_SIZE");
    refused({{"TWILL_SIZE", "2"}}, TWILL_ERR_INVALID, "TWILL_RANK");
    refused({{"TWILL_RANK", "0"}, {"TWILL_SIZE", "2"}}, TWILL_ERR_INVALID, "TWILL_RENDEZVOUS");
    refused({{"TWILL_RANK", "0"}, {"TWILL_SIZE", "2"}, {"TWILL_RENDEZVOUS", "tcp:x"}},
            TWILL_ERR_INVALID, "tcp:x");
    refused(twill_vars(2, 2, meet), TWILL_ERR_INVALID, "rank 2 of 2");
    refused(twill_vars(0, 0, meet), TWILL_ERR_INVALID, "rank 0 of 0");
    refused(twill_vars(0, 2, meet, {{"TWILL_KEY_FILE", "/nonexistent/key"}}), TWILL_ERR_INVALID,
            "/nonexistent/key");
    refused(twill_vars(0, 2, meet, {{"TWILL_KEY_FD", "999"}}), TWILL_ERR_SYSTEM, "TWILL_KEY_FD");
    for (const char *none : {"-2", "4294967295", "4294967296"})
        refused(twill_vars(0, 2, meet, {{"TWILL_KEY_FD", none}}), TWILL_ERR_INVALID,
                "is no descriptor");
    refused({{"TWILL_RANK", "-2"}, {"TWILL_SIZE", "2"}}, TWILL_ERR_INVALID, "TWILL_RANK=-2");
    refused({{"TWILL_RANK", "0"}, {"TWILL_SIZE", "-5"}}, TWILL_ERR_INVALID, "TWILL_SIZE=-5");
    refused(twill_vars(0, 65537, meet), TWILL_ERR_INVALID, "rank 0 of 65537");
    refused(twill_vars(0, INT32_MAX, meet), TWILL_ERR_INVALID, "of 2147483647");
    refused({{"TWILL_RANK", "4294967296"}, {"TWILL_SIZE", "4294967297"}}, TWILL_ERR_INVALID,
            "beyond all ranks");
    int fd = key_memfd("too short");
    refused(twill_vars(0, 2, meet, {{"TWILL_KEY_FD", std::to_string(fd)}}), TWILL_ERR_INVALID,
            "9 bytes");
    close(fd);
    fd = key_memfd(std::string(64, 'x'));
    refused(twill_vars(0, 2, meet, {{"TWILL_KEY_FD", std::to_string(fd)}}), TWILL_ERR_INVALID,
            "64 hexadecimal digits");
    close(fd);
    fd = key_memfd(std::string(5000, 'a'));
    refused(twill_vars(0, 2, meet, {{"TWILL_KEY_FD", std::to_string(fd)}}), TWILL_ERR_INVALID,
            "more than");
    close(fd);
}

/* ---- other launchers ---- */

static Vars torch_vars(int rank, int size, const std::string &run, const std::string &port)
{
    return {{"RANK", std::to_string(rank)},       {"WORLD_SIZE", std::to_string(size)},
            {"LOCAL_RANK", std::to_string(rank)}, {"LOCAL_WORLD_SIZE", std::to_string(size)},
            {"MASTER_ADDR", "127.0.0.1"},         {"MASTER_PORT", port},
            {"TORCHELASTIC_RUN_ID", run},         {"TORCHELASTIC_RESTART_COUNT", "0"}};
}

TEST(Env, TorchrunOnOneHost)
{
    std::string run = unique("run");
    expect_met(job(
        4, [&](int rank) { return torch_vars(rank, 4, run, "29500"); }, 2));
}

TEST(Env, TorchrunJobsSideBySideDoNotMix)
{
    std::string run = unique("side");
    std::vector<Outcome> both = jobs(2, 2, [&](int which, int rank) {
        return torch_vars(rank, 2, run, which == 0 ? "29500" : "29501");
    });
    expect_met({both[0], both[1]});
    expect_met({both[2], both[3]});
    EXPECT_NE(both[0].at_ms, both[2].at_ms);
}

TEST(Env, TorchrunOverSeveralHostsIsRefused)
{
    Vars vars = torch_vars(0, 16, "x", "1");
    vars.push_back({"LOCAL_WORLD_SIZE", "8"});
    refused(vars, TWILL_ERR_UNSUPPORTED, "8 of the job's 16 ranks");
}

static std::string host_name()
{
    char name[64] = "";
    EXPECT_EQ(0, gethostname(name, sizeof(name) - 1));
    return name;
}

/* Without the number of ranks here it is the address of rank 0 that says it. */
TEST(Env, RanksElsewhereThanRank0AreToldAtOnce)
{
    Vars vars = torch_vars(3, 4, "x", "1");
    vars.push_back({"LOCAL_WORLD_SIZE", ""});
    vars.push_back({"MASTER_ADDR", "192.0.2.1"});
    refused(vars, TWILL_ERR_UNSUPPORTED,
            "rank 0 is on host 192.0.2.1, rank 3 on host " + host_name());
    refused(twill_vars(1, 2, "job@192.0.2.1"), TWILL_ERR_UNSUPPORTED,
            "rank 0 is on host 192.0.2.1, rank 1 on host " + host_name());
    vars = torch_vars(0, 16, "x", "1");
    vars.push_back({"LOCAL_WORLD_SIZE", "8"});
    vars.push_back({"MASTER_ADDR", "192.0.2.1"});
    refused(vars, TWILL_ERR_UNSUPPORTED,
            "on this host, " + host_name() + "; rank 0 is on 192.0.2.1");
}

TEST(Env, RanksWhereRank0IsMeet)
{
    std::string meet = unique("here");
    expect_met(job(2, [&](int rank) { return twill_vars(rank, 2, meet + "@" + host_name()); }));
    expect_met(job(2, [&](int rank) {
        Vars vars = torch_vars(rank, 2, meet, "1");
        vars.push_back({"LOCAL_WORLD_SIZE", ""});
        return vars;
    }));
}

TEST(Env, TorchrunVariablesThatAreWrong)
{
    Vars vars = torch_vars(0, 2, "x", "1");
    vars.push_back({"RANK", "zero"});
    refused(vars, TWILL_ERR_INVALID, "RANK=\"zero\"");
    refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, TWILL_ERR_INVALID, "MASTER_ADDR");
    expect_met(job(1, [](int) { return Vars{{"RANK", "5"}}; })); /* RANK alone is anybody's */
}

TEST(Env, OpenMpi)
{
    std::string jobid = unique("ompi");
    expect_met(job(3, [&](int rank) {
        return Vars{{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                    {"OMPI_COMM_WORLD_SIZE", "3"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank)},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                    {"PMIX_NAMESPACE", jobid}};
    }));
}

TEST(Env, PmiRanksMeetByTheirParent)
{
    expect_met(job(3, [&](int rank) {
        return Vars{{"PMI_RANK", std::to_string(rank)}, {"PMI_SIZE", "3"}};
    }));
}

TEST(Env, TwillsOwnVariablesWin)
{
    std::string meet = unique("win");
    expect_met(job(2, [&](int rank) {
        Vars vars = torch_vars(1 - rank, 7, "x", "1");
        Vars own = twill_vars(rank, 2, meet);
        vars.insert(vars.end(), own.begin(), own.end());
        return vars;
    }));
}

/* ---- the launcher's variables themselves ---- */

TEST(Launcher, ReadsTextAndIntegers)
{
    set_environment({{"RANK", "12"}, {"WORLD_SIZE", "x"}, {"LOCAL_RANK", ""}});
    int value = -5;
    EXPECT_EQ(TWILL_OK, tw_launcher_int(TW_LAUNCHER_TORCH_RANK, &value));
    EXPECT_EQ(12, value);
    EXPECT_EQ(TWILL_ERR_INVALID, tw_launcher_int(TW_LAUNCHER_TORCH_SIZE, &value));
    EXPECT_EQ(TWILL_OK, tw_launcher_int(TW_LAUNCHER_TORCH_LOCAL_RANK, &value));
    EXPECT_EQ(12, value) << "an empty variable is an unset one";
    EXPECT_STREQ("12", tw_launcher_text(TW_LAUNCHER_TORCH_RANK));
    EXPECT_EQ(nullptr, tw_launcher_text(TW_LAUNCHER_TORCH_LOCAL_RANK));
    for (const char *bad : {"99999999999", "1 ", "0x1", "-99999999999"}) {
        setenv("RANK", bad, 1);
        EXPECT_EQ(TWILL_ERR_INVALID, tw_launcher_int(TW_LAUNCHER_TORCH_RANK, &value)) << bad;
        EXPECT_TRUE(contains(tw_fail_text(), bad));
    }
    set_environment({});
}
