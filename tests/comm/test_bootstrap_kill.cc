/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <thread>

#include "bootstrap.h"

extern "C" {
#include "base/time.h"
}

/* ---- kills ---- */

/* Two ranks of three; the third one's process ends while it proves the key, or before it is heard
 * at all. */
TEST_F(Bootstrap, KilledBeforeItHasProvenTheKey)
{
    for (bool early : {false, true}) {
        Child ranks([](const Wire &wire) {
            twill_unique_id id = share_id(wire, true);
            struct twill_comm *comms[2];
            prepare(comms, 2, 3, id);
            EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(comms, 2, false));
            for (struct twill_comm *comm : comms)
                await_meeting(comm);
            wire.put(1);
            for (struct twill_comm *comm : comms) {
                EXPECT_TRUE(fails_within(comm, 20000));
                wire.put(outcome_of(comm));
                tw_comm_free(comm);
            }
            return 0;
        });
        Child victim([&](const Wire &wire) {
            struct tw_id inside = open_up(share_id(wire, false));
            const struct tw_sock_wait wait = {tw_deadline_ns(5 * TW_NS_S), -1};
            char own[TW_SOCK_NAME_BYTES];
            int fd = -1;
            tw_meet_caller_name(2, own);
            EXPECT_EQ(TWILL_OK, tw_sock_connect_as(&fd, own, inside.meet, &wait));
            if (early)
                raise(SIGKILL);
            char nonce[32];
            EXPECT_EQ(TWILL_OK, tw_sock_recv(fd, nonce, sizeof(nonce), &wait));
            wire.put(1);
            pause();
            return 0;
        });
        int byte = 0;
        twill_unique_id id = {};
        ASSERT_TRUE(ranks.wire.get(&id));
        ASSERT_TRUE(ranks.wire.get(&byte));
        victim.wire.put(id);
        if (!early) {
            ASSERT_TRUE(victim.wire.get(&byte));
            victim.kill(SIGKILL);
        }
        pid_t pid = victim.pid();
        uint64_t killed_at = now_ms();
        EXPECT_EQ(128 + SIGKILL, victim.wait());
        for (int rank = 0; rank < 2; rank++) {
            Outcome outcome;
            ASSERT_TRUE(ranks.wire.get(&outcome));
            EXPECT_EQ(TWILL_ERR_PEER, outcome.status);
            EXPECT_TRUE(
                contains(outcome.text, "rank 2 (process " + std::to_string(pid) + ") is gone"))
                << outcome.text;
            EXPECT_LT((int64_t)(outcome.at_ms - killed_at), 1000);
        }
        EXPECT_EQ(0, ranks.wait());
    }
}

/* Four processes; one is killed at some moment around init. The others know within a second, in
 * init or after it; but a rank that dies before it has said which one it is is only missed. */
TEST_F(Bootstrap, KilledAtAnyMoment)
{
    std::mt19937 random(3);
    for (int round = 0; round < 8; round++) {
        const int size = 4;
        int victim = (int)(random() % size);
        unsigned pause_us = random() % 12000;
        std::vector<std::unique_ptr<Child>> children;
        std::vector<Child *> all;
        for (int rank = 0; rank < size; rank++) {
            children.push_back(std::make_unique<Child>([=](const Wire &wire) {
                set_params({{"INIT_TIMEOUT", "500ms"}});
                twill_unique_id id = share_id(wire, rank == 0);
                Comm comm(args_of(rank, size, id));
                (void)comm.connect();
                if (!fails_within(comm.get(), 20000))
                    return 1;
                wire.put(outcome_of(comm.get()));
                return 0;
            }));
            all.push_back(children.back().get());
        }
        pass_id(all);
        /* Where in init or after it the kill comes is left to the seed and to chance; the exact
         * places are those of the puppets. */
        std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
        children[victim]->kill(SIGKILL);
        uint64_t killed_at = now_ms();
        EXPECT_EQ(128 + SIGKILL, children[victim]->wait());
        for (int rank = 0; rank < size; rank++) {
            Outcome outcome;
            if (rank == victim)
                continue;
            EXPECT_TRUE(all[rank]->wire.get(&outcome)) << "round " << round << " rank " << rank;
            if (outcome.status == TWILL_ERR_TIMEOUT) {
                EXPECT_TRUE(contains(outcome.text, "missing: " + std::to_string(victim)))
                    << outcome.text;
            } else {
                EXPECT_EQ(TWILL_ERR_PEER, outcome.status) << outcome.text;
                EXPECT_LT((int64_t)(outcome.at_ms - killed_at), 1000) << outcome.text;
            }
            EXPECT_EQ(0, children[rank]->wait());
        }
    }
}
