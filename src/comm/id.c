/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a unique id holds. Never knows: what happens at its meeting point. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/host.h"
#include "comm/meeting.h"

_Static_assert(sizeof(struct tw_id) == TWILL_UNIQUE_ID_BYTES, "an id has no room to spare");

enum twill_status tw_id_fill(const struct tw_host *host, const uint8_t key[TW_KEY_BYTES],
                             const char *meet, twill_unique_id *out)
{
    struct tw_id id = {.magic = TW_ID_MAGIC, .version = TW_ID_VERSION};

    if (strlen(meet) >= sizeof(id.meet))
        return tw_fail(TWILL_ERR_INTERNAL, "meeting point \"@%s\" does not fit into an id", meet);
    tw_random(id.nonce, sizeof(id.nonce));
    memcpy(id.key, key, sizeof(id.key));
    memcpy(id.host, host->id, sizeof(id.host));
    (void)snprintf(id.host_name, sizeof(id.host_name), "%.*s", TW_ID_HOST_BYTES - 1, host->name);
    memcpy(id.meet, meet, strlen(meet));
    memcpy(out, &id, sizeof(id));
    return TWILL_OK;
}

enum twill_status tw_id_create(twill_unique_id *out)
{
    struct tw_proc *proc = NULL;
    uint8_t key[TW_KEY_BYTES];
    char meet[TW_SOCK_NAME_BYTES] = "";
    enum twill_status status = tw_proc_get(&proc);

    if (status != TWILL_OK)
        return status;
    tw_random(key, sizeof(key));
    status = tw_meeting_open("", key, false, proc->params->id_timeout_ns, meet);
    if (status == TWILL_OK)
        status = tw_id_fill(&proc->host, key, meet, out);
    tw_proc_put();
    return status;
}

void tw_id_give_up(const twill_unique_id *id, enum twill_status status, const char *text)
{
    struct tw_proc *proc = NULL;

    if (tw_proc_get(&proc) != TWILL_OK)
        return;
    tw_meeting_give_up(id, status, text);
    tw_proc_put();
}

static enum twill_status host_check(const struct tw_id *id)
{
    struct tw_proc *proc = NULL;
    enum twill_status status = tw_proc_get(&proc);

    if (status != TWILL_OK)
        return status;
    if (memcmp(id->host, proc->host.id, sizeof(id->host)) != 0)
        status = tw_fail(TWILL_ERR_UNSUPPORTED,
                         "unique id was made on host %.*s, this rank is on host %s: this build "
                         "connects ranks of one host",
                         TW_ID_HOST_BYTES, id->host_name, proc->host.name);
    tw_proc_put();
    return status;
}

enum twill_status tw_id_check(const twill_unique_id *in)
{
    struct tw_id id;

    memcpy(&id, in, sizeof(id));
    if (id.magic != TW_ID_MAGIC)
        return tw_fail(TWILL_ERR_INVALID,
                       "unique id is none: its first bytes are not those of twill_get_unique_id");
    if (id.version != TW_ID_VERSION)
        return tw_fail(TWILL_ERR_VERSION,
                       "unique id has version %u, this twill (%d) knows version %u", id.version,
                       TWILL_VERSION, TW_ID_VERSION);
    if (memchr(id.meet, '\0', sizeof(id.meet)) == NULL || id.meet[0] == '\0')
        return tw_fail(TWILL_ERR_INVALID, "unique id is damaged: it names no meeting point");
    return host_check(&id);
}
