/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: levels, subsystems, where lines go. Never knows: who logs. */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/param.h"
#include "base/status.h"

#define LINE_BYTES 1024

#define LEVEL_WARN_EACH(name, text) TW_LOG_WARN,
int tw_log_levels[TW_SUB_COUNT] = {TW_LOG_SUBSYS_LIST(LEVEL_WARN_EACH)};
#undef LEVEL_WARN_EACH

static const char *const subsys_names[TW_SUB_COUNT] = {
#define SUBSYS_NAME(name, text) text,
    TW_LOG_SUBSYS_LIST(SUBSYS_NAME)
#undef SUBSYS_NAME
};

static const char *const level_names[] = {"none", "error", "warn", "info", "debug", "trace"};

static pthread_mutex_t configure_lock = PTHREAD_MUTEX_INITIALIZER;
static int file_fd = -1; /* under configure_lock; once open its number stays, dup3 replaces it */
static int line_fd = STDERR_FILENO; /* atomic */

static int name_index(const char *const *names, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return i;
    }
    return -1;
}

static enum twill_status level_parse(const char *word, size_t length, int *level)
{
    int count = (int)(sizeof(level_names) / sizeof(level_names[0]));
    int found = name_index(level_names, count, word, length);

    if (found < 0)
        return tw_fail(TWILL_ERR_INVALID,
                       "log level \"%.*s\" is none of none error warn info debug trace",
                       (int)(length < 64 ? length : 64), word);
    *level = found;
    return TWILL_OK;
}

/* One comma-separated word: "level" or "subsystem=level". */
static enum twill_status word_parse(const char *word, size_t length, int levels[TW_SUB_COUNT])
{
    const char *equals = memchr(word, '=', length);
    int level = TW_LOG_WARN;

    if (equals == NULL) {
        enum twill_status status = level_parse(word, length, &level);
        for (int i = 0; status == TWILL_OK && i < TW_SUB_COUNT; i++)
            levels[i] = level;
        return status;
    }
    size_t name_length = (size_t)(equals - word);
    int subsys = name_index(subsys_names, TW_SUB_COUNT, word, name_length);
    if (subsys < 0)
        return tw_fail(
            TWILL_ERR_INVALID,
            "log subsystem \"%.*s\" is none of base topo plan algo net chan exec comm api",
            (int)(name_length < 64 ? name_length : 64), word);
    enum twill_status status = level_parse(equals + 1, length - name_length - 1, &level);
    if (status == TWILL_OK)
        levels[subsys] = level;
    return status;
}

static enum twill_status levels_parse(const char *text, int levels[TW_SUB_COUNT])
{
    for (int i = 0; i < TW_SUB_COUNT; i++)
        levels[i] = TW_LOG_WARN;
    if (text == NULL || text[0] == '\0')
        return TWILL_OK;
    for (;;) {
        size_t length = strcspn(text, ",");
        enum twill_status status = word_parse(text, length, levels);
        if (status != TWILL_OK || text[length] == '\0')
            return status;
        text += length + 1;
    }
}

/* What stands for one letter behind '%'; NULL: no such letter. */
static const char *letter_text(char letter, char buffer[64])
{
    buffer[0] = '\0';
    switch (letter) {
    case 'h':
        if (gethostname(buffer, 64) != 0)
            (void)snprintf(buffer, 64, "host");
        buffer[63] = '\0';
        return buffer;
    case 'p':
        (void)snprintf(buffer, 64, "%ld", (long)getpid());
        return buffer;
    case 'r':
        (void)snprintf(buffer, 64, "%s", tw_param_env_rank());
        return buffer;
    case '%':
        return "%";
    default:
        return NULL;
    }
}

static enum twill_status file_name_expand(const char *pattern, char path[PATH_MAX])
{
    size_t used = 0;

    for (const char *p = pattern; *p != '\0'; p++) {
        char buffer[64];
        char plain[2] = {*p, '\0'};
        const char *piece = plain;
        if (*p == '%') {
            piece = letter_text(p[1], buffer);
            if (piece == NULL)
                return tw_fail(TWILL_ERR_INVALID,
                               "log file \"%s\": '%%' must be followed by h, p, r or %%", pattern);
            p++;
        }
        size_t length = strlen(piece);
        if (used + length >= PATH_MAX)
            return tw_fail(TWILL_ERR_INVALID, "log file \"%.80s...\": name is too long", pattern);
        memcpy(path + used, piece, length);
        used += length;
    }
    path[used] = '\0';
    return TWILL_OK;
}

/* Opens the file at the number that an earlier one had, so that a writer in another thread never
 * writes to a closed descriptor. */
static enum twill_status file_open(const char *pattern)
{
    char path[PATH_MAX];
    enum twill_status status = file_name_expand(pattern, path);

    if (status != TWILL_OK)
        return status;
    /* a pipe without a reader is an error, and one that is full loses lines: nobody waits */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
    if (fd < 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "log file \"%s\" does not open", path);
    if (file_fd < 0) {
        file_fd = fd;
        return TWILL_OK;
    }
    int moved = dup3(fd, file_fd, O_CLOEXEC);
    int error = errno;
    (void)close(fd);
    if (moved < 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, error, "log file \"%s\": dup3 failed", path);
    return TWILL_OK;
}

enum twill_status tw_log_configure(const char *levels, const char *file)
{
    int parsed[TW_SUB_COUNT];
    enum twill_status status = levels_parse(levels, parsed);
    bool to_file = file != NULL && file[0] != '\0';

    if (status != TWILL_OK)
        return status;
    (void)pthread_mutex_lock(&configure_lock);
    if (to_file)
        status = file_open(file);
    if (status == TWILL_OK) {
        __atomic_store_n(&line_fd, to_file ? file_fd : STDERR_FILENO, __ATOMIC_RELAXED);
        for (int i = 0; i < TW_SUB_COUNT; i++)
            __atomic_store_n(&tw_log_levels[i], parsed[i], __ATOMIC_RELAXED);
    }
    (void)pthread_mutex_unlock(&configure_lock);
    return status;
}

void tw_log_write(enum tw_log_subsys subsys, enum tw_log_level level, const char *format, ...)
{
    int saved_errno = errno;
    char line[LINE_BYTES];
    va_list args;
    int used = snprintf(line, sizeof(line), "twill[%ld] %s %s: ", (long)getpid(),
                        level_names[level], subsys_names[subsys]);

    va_start(args, format);
    int more = vsnprintf(line + used, sizeof(line) - (size_t)used, format, args);
    va_end(args);
    size_t length = strnlen(line, sizeof(line) - 1);
    if (more < 0)
        length = (size_t)used;
    /* one line, whatever the text holds: it may quote what a user or a peer sent */
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    }
    line[length] = '\n';
    ssize_t written = write(__atomic_load_n(&line_fd, __ATOMIC_RELAXED), line, length + 1);
    (void)written; /* there is nowhere to say that the log cannot be written */
    errno = saved_errno;
}
