/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a file that a user named is read. Never knows: what it says. */
#include "config.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOM_LEAST ((size_t)16384)

int tw_file_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    /* who has a pipe open for writing is waited for, as anywhere */
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

/* One byte more than `most` is room enough to see that there is too much. */
static bool room_make(char **text, size_t *room, size_t used, size_t most)
{
    if (used < *room)
        return true;
    size_t wanted = *room ? 2 * *room : ROOM_LEAST;
    if (wanted > most + 1)
        wanted = most + 1;
    char *grown = realloc(*text, wanted);
    if (grown == NULL)
        return false;
    *text = grown;
    *room = wanted;
    return true;
}

static int fd_read(int fd, size_t most, char **text, size_t *bytes)
{
    size_t room = 0, used = 0;

    while (used <= most) {
        if (!room_make(text, &room, used, most))
            return ENOMEM;
        ssize_t got = read(fd, *text + used, room - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0) {
            *bytes = used;
            return 0;
        }
        used += (size_t)got;
    }
    return EFBIG;
}

int tw_file_read(const char *path, size_t most, char **text, size_t *bytes)
{
    char *all = NULL;
    int fd = tw_file_open(path);

    if (fd < 0)
        return errno;
    int error = fd_read(fd, most, &all, bytes);
    (void)close(fd);
    if (error != 0)
        free(all);
    else
        *text = all;
    return error;
}
