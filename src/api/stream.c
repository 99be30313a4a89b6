/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments of the stream calls. Never knows: what streams run. */
#include "config.h"

#include "api/api.h"

enum twill_status twill_stream_create(twill_stream_t *stream)
{
    if (!stream)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "stream_create: the output is NULL"));
    *stream = NULL;
    struct tw_stream *made;
    enum twill_status status = tw_stream_create(&made);
    if (tw_failed(status))
        return tw_api_error(status);
    *stream = made;
    return TWILL_OK;
}

enum twill_status twill_stream_destroy(twill_stream_t stream)
{
    if (!stream)
        return TWILL_OK;
    enum twill_status status = tw_api_stream(stream, "stream_destroy");
    if (!tw_failed(status) && tw_group_uses_stream(stream))
        status = tw_fail(TWILL_ERR_USAGE, "stream_destroy: calls of the open group use the stream");
    return tw_failed(status) ? tw_api_error(status) : tw_stream_destroy(stream);
}

enum twill_status twill_stream_synchronize(twill_stream_t stream)
{
    if (!stream)
        return TWILL_OK;
    enum twill_status status = tw_api_stream(stream, "stream_synchronize");
    return tw_failed(status) ? tw_api_error(status) : tw_stream_synchronize(stream);
}

enum twill_status twill_stream_query(twill_stream_t stream)
{
    if (!stream)
        return TWILL_OK;
    enum twill_status status = tw_api_stream(stream, "stream_query");
    return tw_failed(status) ? tw_api_error(status) : tw_stream_query(stream);
}
