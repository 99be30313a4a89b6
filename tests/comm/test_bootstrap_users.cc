/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap.h"
#include "inject.h"

extern "C" {
#include "base/time.h"
}

/* ---- other users ---- */

TEST(BootstrapUsers, AnotherUserIsTurnedAwayAndTheRanksMeet)
{
    in_child([] {
        std::string path = "/tmp/twill-users-" + std::to_string(getpid());
        set_params({{"LOG_FILE", path}});
        twill_unique_id id = new_id();
        struct tw_id inside = open_up(id);
        inject::foreign_peers(2);
        for (int i = 0; i < 2; i++) {
            char byte = 0;
            int fd = knock(inside.meet);
            const std::string proof(64, 'x');
            (void)!send(fd, proof.data(), proof.size(), MSG_NOSIGNAL);
            struct pollfd polled = {fd, POLLIN, 0};
            EXPECT_EQ(1, poll(&polled, 1, 5000));
            EXPECT_LE(recv(fd, &byte, 1, 0), 0) << "not even a nonce is said to it";
            close(fd);
        }
        EXPECT_EQ(0, inject::foreign_left());
        on_threads(2, [&](int rank) {
            Ending end = try_connect(args_of(rank, 2, id));
            EXPECT_EQ(TWILL_OK, end.status) << end.text;
        });
        std::string text = file_text(path);
        EXPECT_TRUE(contains(text, "process " + std::to_string(getpid()) + " of user " +
                                       std::to_string(geteuid() + 1) + " was turned away"))
            << text;
        EXPECT_TRUE(contains(text, "this job is user " + std::to_string(geteuid()) + "'s")) << text;
        unlink(path.c_str());
    });
}

/* A rank of another user holds even the key: it is told nothing, and is missed by its name. */
TEST(BootstrapUsers, ARankOfAnotherUserIsMissed)
{
    in_child([] {
        set_params({{"INIT_TIMEOUT", "300ms"}});
        twill_unique_id id = new_id();
        struct twill_comm *first = nullptr;
        prepare(&first, 1, 2, id);
        EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(&first, 1, false));
        await_meeting(first);
        inject::foreign_peers(1);
        Ending foreign = try_connect(args_of(1, 2, id));
        EXPECT_EQ(TWILL_ERR_PEER, foreign.status) << foreign.text;
        EXPECT_TRUE(fails_within(first, 5000));
        EXPECT_TRUE(contains(outcome_of(first).text, "missing: 1")) << outcome_of(first).text;
        tw_comm_free(first);
    });
}

/* Without a key a rank looks at who has opened the meeting point before it says anything. */
TEST(BootstrapUsers, AMeetingPointOfAnotherUserIsRefused)
{
    in_child([] {
        int listener = -1;
        char actual[TW_SOCK_NAME_BYTES];
        const struct tw_sock_wait wait = {tw_deadline_ns(5 * TW_NS_S), -1};
        struct tw_proc *proc = nullptr;
        const uint8_t key[TW_KEY_BYTES] = {};
        struct tw_comm_args args = args_of(1, 2, {});
        ASSERT_EQ(TWILL_OK, tw_sock_listen(&listener, "", actual));
        ASSERT_EQ(TWILL_OK, tw_proc_get(&proc));
        ASSERT_EQ(TWILL_OK, tw_id_fill(&proc->host, key, actual, &args.id));
        args.keyless = args.from_env = true;
        inject::foreign_peers(1);
        Ending end = try_connect(args);
        EXPECT_EQ(TWILL_ERR_AUTH, end.status) << end.text;
        EXPECT_TRUE(contains(end.text, "belongs to user " + std::to_string(geteuid() + 1)))
            << end.text;
        EXPECT_TRUE(contains(end.text, "this job's user " + std::to_string(geteuid()))) << end.text;
        int fd = -1;
        char byte = 0;
        ASSERT_EQ(TWILL_OK, tw_sock_accept(&fd, listener, &wait));
        EXPECT_EQ(0, recv(fd, &byte, 1, 0)) << "it was told nothing";
        close(fd);
        close(listener);
        tw_proc_put();
    });
}
