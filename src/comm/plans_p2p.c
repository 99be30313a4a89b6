/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the one-step plan of a send or a receive. Never knows: who keeps and runs it. */
#include "config.h"

#include "comm/plans.h"

enum twill_status tw_plans_p2p(const struct twill_comm *comm, int peer, bool is_send,
                               struct tw_plan **plan)
{
    struct tw_build build;
    tw_build_init(&build, is_send ? "send" : "recv", TW_COLL_P2P, comm->size, 0, comm->rank);
    if (build.plan) {
        build.plan->depth = 2;
        build.plan->slices = 2;
    }
    uint8_t part = tw_build_part(&build, TW_PART_EQUAL, 1, 1);
    uint16_t lane = tw_build_lane(&build, comm->rank, 0);
    struct tw_plan_step step = {
        .op = is_send ? TW_OP_SEND : TW_OP_RECV,
        .dep_lane = TW_NO_LANE,
        .from = is_send ? TW_NO_RANK : peer,
        .to = is_send ? peer : TW_NO_RANK,
    };
    if (is_send)
        step.src = tw_span_one(TW_BUF_IN, part, 0);
    else
        step.dst = tw_span_one(TW_BUF_OUT, part, 0);
    tw_build_step(&build, comm->rank, lane, &step);
    return tw_build_finish(&build, plan);
}
