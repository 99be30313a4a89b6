/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill's programs share at the command line: complaints, numbers, standard streams.
 * Never knows: which options a program has.
 *
 * Stands on twill.h and base/value.h alone, so that twill-perf, which links nothing of the
 * library's inside, can have it too. */
#ifndef TW_TOOLS_COMMON_CLI_H
#define TW_TOOLS_COMMON_CLI_H

#include <stdint.h>

/* What readers of options answer: go on, or the status to exit with (everything has been said). */
#define CLI_GO_ON (-1)
#define CLI_EXIT_USAGE 2

/* "twill-sim": each program defines its own. */
extern const char cli_program[];

/** Say on standard error what is wrong with the command line. @return CLI_EXIT_USAGE */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** --help and --version, on standard output. @return 0 */
int cli_help(const char *text);
int cli_version(void);

/* An option's value. All but CLI_GO_ON leave *value alone. */
int cli_number(const char *option, const char *text, int64_t least, int64_t most, int64_t *value);
int cli_int(const char *option, const char *text, int least, int most, int *value);
/** 8, 64K, 64k, 1.5M: a whole number of bytes */
int cli_bytes(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value);

/** First of all: a standard stream that was closed would become one of the sockets or files opened
 * later. It is held by a descriptor that can only be read, so that writing to it still fails, and
 * is noticed. */
void cli_streams_hold(void);

/** Last of all: close standard output. Where what was written there is lost that is said, and the
 * status is lost instead of a smaller one. @return the status to exit with; CLI_EXIT_USAGE stays */
int cli_output_close(int status, int lost);

#endif
