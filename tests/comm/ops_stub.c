/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that tests of the room's lower half run no operations. Never knows: operations. */
#include "comm/comm.h"

enum twill_status tw_ops_create(struct twill_comm *comm)
{
    (void)comm;
    return TWILL_OK;
}
void tw_ops_destroy(struct twill_comm *comm) { (void)comm; }
enum twill_status tw_ops_drain(struct twill_comm *comm)
{
    (void)comm;
    return TWILL_OK;
}
void tw_ops_wake(struct twill_comm *comm) { (void)comm; }
