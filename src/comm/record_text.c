/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a record is put into words. Never knows: boards, what follows from a record. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "comm/record.h"

static const char *coll_text(uint64_t what)
{
    const char *name =
        (uint8_t)what < TW_COLL_COUNT ? tw_coll_name((enum tw_coll)(what & 0xff)) : NULL;
    return name != NULL ? name : "unknown call";
}

static const char *type_text(uint64_t what)
{
    const char *name = tw_type_name((twill_type_t)(what >> 8 & 0xff));

    return name != NULL ? name : "unknown type";
}

void tw_record_text(const struct tw_record_call *call, char text[TW_RECORD_TEXT_BYTES])
{
    enum tw_coll coll = (enum tw_coll)(call->what & 0xff);
    const struct tw_coll_rule *rule = tw_coll_rule(coll);
    unsigned long long number = call->number;
    unsigned long long count = call->count;

    if (coll == TW_COLL_BARRIER) {
        (void)snprintf(text, TW_RECORD_TEXT_BYTES, "barrier #%llu", number);
        return;
    }
    int guise = (int)(call->what >> 24 & 0xff);
    static const char *const guises[] = {[TW_CALL_REGISTER] = "register",
                                         [TW_CALL_DEREGISTER] = "deregister",
                                         [TW_CALL_SPLIT] = "comm_split"};
    if (guise > TW_CALL_PLAIN && guise <= TW_CALL_SPLIT) {
        (void)snprintf(text, TW_RECORD_TEXT_BYTES, "%s #%llu", guises[guise], number);
        return;
    }
    int used;
    if (tw_record_has_pairs(call))
        used = snprintf(text, TW_RECORD_TEXT_BYTES, "%s #%llu %s", coll_text(call->what), number,
                        type_text(call->what));
    else
        used = snprintf(text, TW_RECORD_TEXT_BYTES, "%s #%llu count %llu %s", coll_text(call->what),
                        number, count, type_text(call->what));
    if (rule != NULL && rule->reduces) {
        const char *op = tw_redop_name((twill_redop_t)(call->what >> 16 & 0xff));
        used += snprintf(text + used, TW_RECORD_TEXT_BYTES - (size_t)used, " %s",
                         op != NULL ? op : "unknown operation");
    }
    if (guise == TW_CALL_FUSED)
        (void)snprintf(text + used, TW_RECORD_TEXT_BYTES - (size_t)used, " (%d calls of a group)",
                       (int)(call->what >> 32));
    if (rule != NULL && rule->rooted)
        (void)snprintf(text + used, TW_RECORD_TEXT_BYTES - (size_t)used, " root %d",
                       (int)(call->what >> 32));
}

void tw_record_toward_text(const struct tw_record_call *call, int peer,
                           char text[TW_RECORD_TEXT_BYTES])
{
    tw_record_text(call, text);
    if (!tw_record_has_pairs(call))
        return;
    size_t used = strlen(text);
    (void)snprintf(text + used, TW_RECORD_TEXT_BYTES - used,
                   " with %llu elements to rank %d and %llu from it", (unsigned long long)call->to,
                   peer, (unsigned long long)call->from);
}

void tw_record_pair_text(const struct tw_record_call *call, int peer, bool is_send,
                         char text[TW_RECORD_TEXT_BYTES])
{
    (void)snprintf(text, TW_RECORD_TEXT_BYTES, "%s #%llu %s rank %d count %llu %s",
                   is_send ? "send" : "recv", (unsigned long long)call->number,
                   is_send ? "to" : "from", peer, (unsigned long long)call->count,
                   type_text(call->what));
}
