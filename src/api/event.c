/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments of the event calls. Never knows: what streams run. */
#include "config.h"

#include "api/api.h"

static struct tw_event *inside(twill_event_t event) { return (struct tw_event *)(void *)event; }

static enum twill_status check(twill_event_t event, const char *call)
{
    if (!event)
        return tw_fail(TWILL_ERR_INVALID, "%s: the event is NULL", call);
    if (!tw_event_alive(inside(event)))
        return tw_fail(TWILL_ERR_INVALID, "%s: %p is no event, or one that was destroyed", call,
                       (void *)event);
    return tw_api_own(call);
}

/* An open group's calls are on no stream yet: where a point in it is cannot be said. */
static enum twill_status check_both(twill_event_t event, twill_stream_t stream, const char *call)
{
    enum twill_status status = check(event, call);
    if (!tw_failed(status))
        status = tw_api_stream(stream, call);
    if (!tw_failed(status) && stream && tw_group_uses_stream(stream))
        status = tw_fail(TWILL_ERR_USAGE, "%s: calls of the open group use the stream", call);
    return status;
}

enum twill_status twill_event_create(twill_event_t *event)
{
    if (!event)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "event_create: the output is NULL"));
    *event = NULL;
    struct tw_event *made;
    enum twill_status status = tw_event_create(&made);
    if (tw_failed(status))
        return tw_api_error(status);
    *event = (twill_event_t)(void *)made;
    return TWILL_OK;
}

enum twill_status twill_event_destroy(twill_event_t event)
{
    if (!event)
        return TWILL_OK;
    enum twill_status status = check(event, "event_destroy");
    if (tw_failed(status))
        return tw_api_error(status);
    tw_event_destroy(inside(event));
    return TWILL_OK;
}

enum twill_status twill_event_record(twill_event_t event, twill_stream_t stream)
{
    enum twill_status status = check_both(event, stream, "event_record");
    if (!tw_failed(status))
        status = tw_event_record(inside(event), stream);
    return tw_failed(status) ? tw_api_error(status) : status;
}

enum twill_status twill_event_wait(twill_stream_t stream, twill_event_t event)
{
    enum twill_status status = check_both(event, stream, "event_wait");
    if (!tw_failed(status))
        status = tw_event_wait(stream, inside(event));
    return tw_failed(status) ? tw_api_error(status) : status;
}

enum twill_status twill_event_query(twill_event_t event)
{
    enum twill_status status = check(event, "event_query");
    if (tw_failed(status))
        return tw_api_error(status);
    return tw_event_reached(inside(event)) ? TWILL_OK : TWILL_INPROGRESS;
}

enum twill_status twill_event_synchronize(twill_event_t event)
{
    enum twill_status status = check(event, "event_synchronize");
    if (tw_failed(status))
        return tw_api_error(status);
    tw_event_synchronize(inside(event));
    return TWILL_OK;
}
