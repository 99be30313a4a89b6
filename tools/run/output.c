/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: lines, their tags, two outputs that may be slow. Never knows: why anything is said.
 *
 * A slow reader of our output stops the reading of the ranks' pipes (they then wait as they would
 * without twill-run), so memory is bounded and nothing here blocks. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

#define READ_BYTES 16384
#define LINE_MAX_BYTES (1u << 20) /* a longer line is cut into lines of this length */
#define PENDING_MAX_BYTES (256u << 10)

struct buffer {
    char *data; /* owned */
    size_t used, room;
};

/* what one rank writes to one stream */
struct source {
    int fd; /* owned; -1 once at its end */
    int rank, stream;
    struct buffer line; /* its unfinished line */
};

struct run_output {
    struct source *sources; /* owned */
    int count, room;
    struct buffer pending[2]; /* for stdout and stderr: whole lines, less what has gone out */
    size_t sent[2];           /* of pending */
    int busy;                 /* index of the stream that is in the middle of a line; -1 */
    bool broken[2];           /* nobody reads it any more */
    int error;                /* why what was written is lost; 0: it is not, or nobody wants it */
};

struct run_output *run_output_create(int ranks, bool tag)
{
    struct run_output *output = calloc(1, sizeof(*output));
    if (!output)
        return NULL;
    output->busy = -1;
    output->room = tag ? 2 * ranks : 0;
    output->sources = calloc((size_t)output->room + 1, sizeof(*output->sources));
    if (!output->sources) {
        free(output);
        return NULL;
    }
    return output;
}

static void source_close(struct source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
    free(source->line.data);
    source->line = (struct buffer){0};
}

void run_output_destroy(struct run_output *output)
{
    if (!output)
        return;
    for (int i = 0; i < output->count; i++)
        source_close(&output->sources[i]);
    free(output->sources);
    free(output->pending[0].data);
    free(output->pending[1].data);
    free(output);
}

void run_output_add(struct run_output *output, int rank, int stream, int fd)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    output->sources[output->count++] = (struct source){.fd = fd, .rank = rank, .stream = stream};
}

/* Out of memory drops the text: better than to lose the ranks. */
static void append(struct buffer *buffer, const char *text, size_t bytes)
{
    if (bytes == 0)
        return;
    if (buffer->used + bytes > buffer->room) {
        size_t room = buffer->room ? buffer->room : 4096;
        while (room < buffer->used + bytes)
            room *= 2;
        char *data = realloc(buffer->data, room);
        if (!data)
            return;
        buffer->data = data;
        buffer->room = room;
    }
    memcpy(buffer->data + buffer->used, text, bytes);
    buffer->used += bytes;
}

static void emit_line(struct run_output *output, struct source *source, const char *text,
                      size_t bytes)
{
    char tag[24];
    int n = snprintf(tag, sizeof(tag), "[%d] ", source->rank);
    struct buffer *pending = &output->pending[source->stream - 1];
    append(pending, tag, (size_t)n);
    append(pending, source->line.data, source->line.used);
    append(pending, text, bytes);
    append(pending, "\n", 1);
    source->line.used = 0;
}

static void feed(struct run_output *output, struct source *source, const char *text, size_t bytes)
{
    const char *newline;
    while ((newline = memchr(text, '\n', bytes))) {
        size_t length = (size_t)(newline - text);
        emit_line(output, source, text, length);
        text += length + 1;
        bytes -= length + 1;
    }
    append(&source->line, text, bytes);
    if (source->line.used >= LINE_MAX_BYTES)
        emit_line(output, source, "", 0);
}

void run_output_say(struct run_output *output, const char *format, ...)
{
    char text[1024] = "twill-run: ";
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof(text) - used, format, args);
    va_end(args);
    append(&output->pending[1], text, strlen(text));
    append(&output->pending[1], "\n", 1);
}

static bool stream_full(const struct run_output *output, int index)
{
    return output->pending[index].used - output->sent[index] >= PENDING_MAX_BYTES;
}

static bool stream_may_write(const struct run_output *output, int index)
{
    return output->pending[index].used > output->sent[index] &&
           (output->busy < 0 || output->busy == index);
}

int run_output_poll_max(const struct run_output *output) { return output->count + 2; }

int run_output_poll_set(struct run_output *output, struct pollfd *set)
{
    int n = 0;
    for (int i = 0; i < 2; i++)
        if (stream_may_write(output, i))
            set[n++] = (struct pollfd){.fd = i + 1, .events = POLLOUT};
    for (int i = 0; i < output->count; i++) {
        const struct source *source = &output->sources[i];
        if (source->fd >= 0 && !stream_full(output, source->stream - 1))
            set[n++] = (struct pollfd){.fd = source->fd, .events = POLLIN};
    }
    return n;
}

/* Nobody reads this stream: the ranks are to see that as they would without us. */
static void stream_break(struct run_output *output, int index)
{
    output->broken[index] = true;
    output->pending[index].used = output->sent[index] = 0;
    if (output->busy == index)
        output->busy = -1;
    for (int i = 0; i < output->count; i++)
        if (output->sources[i].stream == index + 1)
            source_close(&output->sources[i]);
}

/* Whole lines as far as PIPE_BUF bytes hold them: a write of that size to a ready pipe cannot
 * block. A longer line goes in pieces and keeps the other stream out meanwhile. */
static bool stream_write(struct run_output *output, int index)
{
    struct buffer *pending = &output->pending[index];
    if (output->broken[index])
        pending->used = output->sent[index] = 0;
    struct pollfd ready = {.fd = index + 1, .events = POLLOUT};
    if (!stream_may_write(output, index) || poll(&ready, 1, 0) <= 0)
        return false;
    const char *text = pending->data + output->sent[index];
    size_t bytes = pending->used - output->sent[index];
    if (bytes > PIPE_BUF) {
        const char *end = memrchr(text, '\n', PIPE_BUF);
        bytes = end ? (size_t)(end - text) + 1 : PIPE_BUF;
    }
    ssize_t sent = write(index + 1, text, bytes);
    if (sent < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return false;
        output->error = errno == EPIPE ? output->error : errno;
        stream_break(output, index);
        return false;
    }
    output->busy = text[sent - 1] == '\n' ? -1 : index;
    output->sent[index] += (size_t)sent;
    if (output->sent[index] == pending->used)
        pending->used = output->sent[index] = 0;
    return true;
}

/* Drop what was sent, so that a pending buffer that never runs empty does not grow. */
static void stream_compact(struct run_output *output, int index)
{
    struct buffer *pending = &output->pending[index];
    if (output->sent[index] < PENDING_MAX_BYTES)
        return;
    pending->used -= output->sent[index];
    memmove(pending->data, pending->data + output->sent[index], pending->used);
    output->sent[index] = 0;
}

static bool source_read(struct run_output *output, struct source *source)
{
    char text[READ_BYTES];
    if (source->fd < 0 || stream_full(output, source->stream - 1))
        return false;
    ssize_t bytes = read(source->fd, text, sizeof(text));
    if (bytes > 0) {
        feed(output, source, text, (size_t)bytes);
        return true;
    }
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (source->line.used)
        emit_line(output, source, "", 0);
    source_close(source);
    return true;
}

bool run_output_progress(struct run_output *output)
{
    bool moved = false;
    for (int i = 0; i < output->count; i++)
        moved |= source_read(output, &output->sources[i]);
    for (int i = 0; i < 2; i++) {
        moved |= stream_write(output, i);
        stream_compact(output, i);
    }
    return moved;
}

int run_output_error(const struct run_output *output) { return output->error; }

bool run_output_flushed(const struct run_output *output)
{
    return output->pending[0].used == 0 && output->pending[1].used == 0;
}

bool run_output_close(struct run_output *output)
{
    bool closed = true;
    for (int i = 0; i < output->count; i++) {
        struct source *source = &output->sources[i];
        while (source->fd >= 0 && !stream_full(output, source->stream - 1) &&
               source_read(output, source))
            ;
        if (source->fd >= 0 && stream_full(output, source->stream - 1)) {
            closed = false;
            continue;
        }
        if (source->line.used) /* a pipe that somebody else still holds open */
            emit_line(output, source, "", 0);
        source_close(source);
    }
    return closed;
}
