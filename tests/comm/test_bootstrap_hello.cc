/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "bootstrap.h"

TEST(BootstrapHello, VersionsAndHostsAreNamed)
{
    struct tw_hello a = {};
    a.head.magic = TW_HELLO_MAGIC;
    a.head.protocol = TW_PROTOCOL;
    a.head.version = TWILL_VERSION;
    a.size = 4;
    strcpy(a.host_name, "left");
    strcpy(a.options, "x=1\ny=2\n");
    struct tw_hello b = a;
    struct tw_hello parsed;
    char text[TW_ERROR_TEXT_BYTES] = "";
    b.head.rank = 2;
    EXPECT_EQ(TWILL_OK, tw_hello_fits(&a, &b, text));
    EXPECT_EQ(TWILL_OK, tw_hello_parse((const uint8_t *)&b, sizeof(b), &parsed, text));
    b.head.version = 12345;
    EXPECT_EQ(TWILL_ERR_VERSION, tw_hello_fits(&a, &b, text));
    EXPECT_TRUE(contains(text, "rank 2 has 12345")) << text;
    b = a;
    b.head.rank = 2;
    b.proc.host[0] = 1;
    strcpy(b.host_name, "right");
    EXPECT_EQ(TWILL_ERR_UNSUPPORTED, tw_hello_fits(&a, &b, text));
    EXPECT_TRUE(contains(text, "rank 0 is on host left, rank 2 on host right")) << text;
    b = a;
    strcpy(b.options, "x=1\n");
    EXPECT_EQ(TWILL_ERR_VERSION, tw_hello_fits(&a, &b, text));
    b.head.protocol = 99;
    EXPECT_EQ(TWILL_ERR_VERSION, tw_hello_parse((const uint8_t *)&b, 200, &parsed, text));
    EXPECT_TRUE(contains(text, "protocol 99")) << text;
    b = a;
    b.head.rank = 4;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hello_parse((const uint8_t *)&b, sizeof(b), &parsed, text));
    EXPECT_EQ(TWILL_ERR_PEER, tw_hello_parse((const uint8_t *)"hello", 5, &parsed, text));
    memset(&b, 0xff, sizeof(b));
    EXPECT_EQ(TWILL_ERR_PEER, tw_hello_parse((const uint8_t *)&b, sizeof(b), &parsed, text));
}

TEST(BootstrapHello, OptionsThatDifferAreNamedWithBothValues)
{
    struct tw_params params[2] = {};
    struct tw_comm_args args[2] = {};
    char path[2][64];
    for (int i = 0; i < 2; i++) {
        params[i].shm = true;
        snprintf(path[i], sizeof(path[i]), "plan-%d-%d", (int)getpid(), i);
        FILE *file = fopen(path[i], "w");
        ASSERT_NE(nullptr, file);
        fprintf(file, "plan %d\n", i);
        fclose(file);
    }
    const struct {
        std::function<void()> set;
        const char *left, *right;
    } cases[] = {
        {[&] { args[1].channels = 3; }, "rank 0 has channels=0", "rank 1 has channels=3"},
        {[&] { args[0].deterministic = 1; }, "has deterministic=1", "has deterministic=0"},
        {[&] { strcpy(params[1].algo, "ring"); }, "has TWILL_ALGO=\"\"", "TWILL_ALGO=\"ring\""},
        {[&] { strcpy(params[0].proto, "simple"); }, "TWILL_PROTO=\"simple\"", "TWILL_PROTO=\"\""},
        {[&] { params[1].shm = false; }, "TWILL_SHM=1", "TWILL_SHM=0"},
        {[&] { strcpy(params[0].plan_file, path[0]); }, "with content ", "TWILL_PLAN_FILE=\"\""},
    };
    struct tw_hello hello[2] = {};
    char text[TW_ERROR_TEXT_BYTES] = "";
    const auto fits = [&] {
        for (int i = 0; i < 2; i++) {
            hello[i].head.rank = i;
            tw_hello_options(&args[i], &params[i], hello[i].options);
        }
        return tw_hello_fits(&hello[0], &hello[1], text);
    };
    for (const auto &c : cases) {
        const struct tw_params params_before[2] = {params[0], params[1]};
        const struct tw_comm_args args_before[2] = {args[0], args[1]};
        EXPECT_EQ(TWILL_OK, fits());
        c.set();
        EXPECT_EQ(TWILL_ERR_VERSION, fits());
        EXPECT_TRUE(contains(text, c.left)) << text;
        EXPECT_TRUE(contains(text, c.right)) << text;
        for (int i = 0; i < 2; i++) {
            params[i] = params_before[i];
            args[i] = args_before[i];
        }
    }
    /* the config has settled what counts */
    params[0].channels = 2;
    params[1].deterministic = true;
    EXPECT_EQ(TWILL_OK, fits());
    /* one name, another content */
    strcpy(params[0].plan_file, path[0]);
    strcpy(params[1].plan_file, path[0]);
    tw_hello_options(&args[0], &params[0], hello[0].options);
    ASSERT_EQ(0, rename(path[1], path[0]));
    tw_hello_options(&args[1], &params[1], hello[1].options);
    EXPECT_EQ(TWILL_ERR_VERSION, tw_hello_fits(&hello[0], &hello[1], text));
    EXPECT_TRUE(contains(text, "with content ")) << text;
    EXPECT_EQ(TWILL_OK, fits());
    unlink(path[0]);
}

/* What is no plan is said by whoever loads it; the hello has no content of it, and no wait. */
TEST(BootstrapHello, AFileWithoutEndOrBeginningHasNoContent)
{
    char fifo[] = "/tmp/twill-hello-XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(fifo));
    const std::string pipe = std::string(fifo) + "/pipe";
    ASSERT_EQ(0, mkfifo(pipe.c_str(), 0600));
    struct tw_params params;
    struct tw_comm_args args = {};
    char options[TW_OPTIONS_BYTES];
    memset(&params, 0, sizeof(params));
    for (const char *path : {"/dev/zero", (const char *)fifo, "/nowhere"}) {
        strcpy(params.plan_file, path);
        tw_hello_options(&args, &params, options);
        EXPECT_FALSE(contains(options, "with content")) << options;
    }
    strcpy(params.plan_file, pipe.c_str());
    tw_hello_options(&args, &params, options);
    EXPECT_TRUE(contains(options, "with content")) << options; /* that of an empty file */
    unlink(pipe.c_str());
    rmdir(fifo);
}

TEST(BootstrapHello, TheNameOfACallersSocketSaysItsRank)
{
    char name[TW_SOCK_NAME_BYTES], again[TW_SOCK_NAME_BYTES];
    for (int rank : {0, 7, 65535}) {
        tw_meet_caller_name(rank, name);
        tw_meet_caller_name(rank, again);
        EXPECT_STRNE(name, again);
        EXPECT_EQ(rank, tw_meet_caller_rank(name)) << name;
    }
    for (const char *none : {"", "twill-rank-", "twill-rank-3", "twill-rank--3-1", "twill-rank-x-1",
                             "twill-rank-65536-1", "twill-rank-99999999999999999999-1", "rank-3-1"})
        EXPECT_EQ(-1, tw_meet_caller_rank(none)) << none;
}
