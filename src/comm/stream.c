/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a host stream's life. Never knows: what runs on it. */
#include "config.h"

#include <stdlib.h>

#include "comm/ops.h"

enum twill_status tw_stream_create(struct tw_stream **stream)
{
    struct tw_stream *s = tw_alloc(sizeof *s);
    if (!s)
        return TWILL_ERR_NOMEM;
    s->magic = TW_STREAM_MAGIC;
    *stream = s;
    return TWILL_OK;
}

bool tw_stream_alive(const struct tw_stream *stream) { return stream->magic == TW_STREAM_MAGIC; }

enum twill_status tw_stream_attach(struct tw_stream *stream)
{
    return stream->proc ? TWILL_OK : tw_proc_get(&stream->proc);
}

enum twill_status tw_stream_synchronize(struct tw_stream *stream)
{
    if (!stream->proc)
        return TWILL_OK;
    return tw_progress_stream(stream->proc->progress, stream, true);
}

enum twill_status tw_stream_query(struct tw_stream *stream)
{
    if (!stream->proc)
        return TWILL_OK;
    return tw_progress_stream(stream->proc->progress, stream, false);
}

enum twill_status tw_stream_await(struct tw_stream *stream, const struct twill_comm *comm)
{
    if (!stream->proc)
        return TWILL_OK;
    return tw_progress_await(stream->proc->progress, stream, comm);
}

enum twill_status tw_stream_destroy(struct tw_stream *stream)
{
    enum twill_status status = tw_stream_synchronize(stream);
    __atomic_store_n(&stream->magic, 0, __ATOMIC_RELEASE);
    if (stream->proc)
        tw_proc_put();
    free(stream);
    return status;
}
