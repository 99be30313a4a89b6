/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a program of twill complains, reads numbers and treats its standard streams.
 * Never knows: which options it has. */
#include "config.h"

#include "cli.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/value.h"
#include "twill.h"

int cli_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", cli_program);
    vfprintf(stderr, format, args);
    fprintf(stderr, " (%s --help)\n", cli_program);
    va_end(args);
    return CLI_EXIT_USAGE;
}

int cli_help(const char *text)
{
    fputs(text, stdout);
    return 0;
}

int cli_version(void)
{
    printf("%s %d.%d.%d\n", cli_program, TWILL_VERSION_MAJOR, TWILL_VERSION_MINOR,
           TWILL_VERSION_PATCH);
    return 0;
}

int cli_number(const char *option, const char *text, int64_t least, int64_t most, int64_t *value)
{
    int64_t number;
    if (!tw_value_int(text, &number) || number < least || number > most)
        return cli_usage("%s takes a number from %" PRId64 " to %" PRId64 ", not '%s'", option,
                         least, most, text);
    *value = number;
    return CLI_GO_ON;
}

int cli_int(const char *option, const char *text, int least, int most, int *value)
{
    int64_t number = *value;
    int status = cli_number(option, text, least, most, &number);
    *value = (int)number;
    return status;
}

/* Whole units, as people write them: 4T. */
struct amount {
    uint64_t number;
    char unit[2]; /* "" for bytes */
};

static struct amount amount_of(uint64_t bytes)
{
    static const char units[] = "KMGT";
    struct amount amount = {.number = bytes};
    for (int i = 0; units[i] && amount.number && amount.number % 1024 == 0; i++) {
        amount.number /= 1024;
        amount.unit[0] = units[i];
    }
    return amount;
}

/* Parameters write units large; sweeps have always taken "64k" too. */
static bool bytes_read(const char *text, uint64_t *value)
{
    char copy[64];
    size_t unit = strspn(text, "0123456789.");
    if (strlen(text) >= sizeof(copy))
        return false;
    memcpy(copy, text, strlen(text) + 1);
    copy[unit] = (char)toupper((unsigned char)copy[unit]);
    return tw_value_bytes(copy, value);
}

int cli_bytes(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    uint64_t bytes;
    if (!bytes_read(text, &bytes) || bytes < least || bytes > most) {
        struct amount low = amount_of(least), high = amount_of(most);
        return cli_usage("%s takes bytes (8, 64K, 1.5M) from %" PRIu64 "%s to %" PRIu64
                         "%s, not '%s'",
                         option, low.number, low.unit, high.number, high.unit, text);
    }
    *value = bytes;
    return CLI_GO_ON;
}

void cli_streams_hold(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

int cli_output_close(int status, int lost)
{
    bool failed = ferror(stdout) != 0; /* by an earlier flush */
    failed |= fclose(stdout) != 0;
    if (!failed || status >= CLI_EXIT_USAGE || status >= lost)
        return status;
    fprintf(stderr, "%s: standard output could not be written\n", cli_program);
    return lost;
}
