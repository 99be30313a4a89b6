/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a file that a user named is read. Never knows: what it says. */
#ifndef TW_BASE_FILE_H
#define TW_BASE_FILE_H

#include <stddef.h>

/**
 * Open for reading, without waiting for a writer: a named pipe that nobody writes to is empty.
 *
 * @return a descriptor; -1: errno says why
 */
int tw_file_open(const char *path);

/**
 * Read all of a file, opened as above. Ends at `most` bytes whatever the file is: a device may
 * have no end.
 *
 * @param most   the longest that is accepted
 * @param text   out: owned, never NULL; free()
 * @param bytes  out
 *
 * @return 0, or the number of the error: EFBIG when there is more, ENOMEM. Outputs are untouched
 */
int tw_file_read(const char *path, size_t most, char **text, size_t *bytes);

#endif
