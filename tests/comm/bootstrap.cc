/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap.h"

#include <string.h>

extern "C" {
#include "base/time.h"
}

struct tw_id open_up(const twill_unique_id &id)
{
    struct tw_id inside;
    memcpy(&inside, &id, sizeof(inside));
    return inside;
}

Ending try_connect(const struct tw_comm_args &args)
{
    uint64_t start = now_ms();
    Comm comm(args);
    enum twill_status status = comm.connect();
    return Ending{status, comm.failure(), now_ms() - start};
}

void late_comer(int rank, int size, const twill_unique_id &id, const char *cause)
{
    Ending end = try_connect(args_of(rank, size, id));
    EXPECT_NE(TWILL_OK, end.status);
    EXPECT_TRUE(contains(end.text, cause)) << end.text;
}

int knock(const char *name)
{
    int fd = -1;
    struct tw_sock_wait wait = {tw_deadline_ns(5 * TW_NS_S), -1};
    EXPECT_EQ(TWILL_OK, tw_sock_connect(&fd, name, &wait));
    return fd;
}

void prepare(struct twill_comm **comms, int count, int size, const twill_unique_id &id)
{
    for (int rank = 0; rank < count; rank++) {
        struct tw_comm_args args = args_of(rank, size, id);
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
    }
}

static bool meets(struct twill_comm *comm)
{
    tw_loop_lock(comm->ctl->loop);
    bool up = tw_link_up(&comm->ctl->meet);
    tw_loop_unlock(comm->ctl->loop);
    return up;
}

void await_meeting(struct twill_comm *comm)
{
    wait_for([&] { return meets(comm); });
}
