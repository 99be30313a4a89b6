/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: whether what ranks say at a meeting point makes sense and fits together.
 * Never knows: where they say it, who is told. */
#include "config.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "comm/meeting.h"
#include "comm/plans.h"

#define SIZE_MAX_RANKS 65536

#define CALLER_NAME "twill-rank-"

void tw_meet_caller_name(int rank, char name[TW_SOCK_NAME_BYTES])
{
    uint64_t nonce = 0;

    tw_random(&nonce, sizeof(nonce));
    (void)snprintf(name, TW_SOCK_NAME_BYTES, CALLER_NAME "%d-%016" PRIx64, rank, nonce);
}

int tw_meet_caller_rank(const char *name)
{
    int rank = -1;
    char end = '\0';

    if (strncmp(name, CALLER_NAME, strlen(CALLER_NAME)) != 0 ||
        sscanf(name + strlen(CALLER_NAME), "%9d%c", &rank, &end) != 2 || end != '-')
        return -1;
    return rank >= 0 && rank < SIZE_MAX_RANKS ? rank : -1;
}

enum twill_status tw_hello_parse(const uint8_t *data, uint32_t bytes, struct tw_hello *hello,
                                 char text[TW_ERROR_TEXT_BYTES])
{
    const struct tw_hello_head *head = &hello->head;

    memset(hello, 0, sizeof(*hello));
    memcpy(hello, data, bytes < sizeof(*hello) ? bytes : sizeof(*hello));
    hello->host_name[sizeof(hello->host_name) - 1] = '\0';
    hello->door[sizeof(hello->door) - 1] = '\0';
    hello->options[sizeof(hello->options) - 1] = '\0';
    if (bytes == 0) {
        (void)snprintf(text, TW_ERROR_TEXT_BYTES,
                       "init: a process that holds the key is gone before it said which rank it "
                       "is");
        return TWILL_ERR_PEER;
    }
    if (bytes < sizeof(*head) || head->magic != TW_HELLO_MAGIC) {
        (void)snprintf(text, TW_ERROR_TEXT_BYTES,
                       "init: a process that holds the key is no rank: it sent %u bytes that make "
                       "no sense",
                       bytes);
        return TWILL_ERR_PEER;
    }
    if (head->protocol != TW_PROTOCOL || bytes != sizeof(*hello)) {
        (void)snprintf(text, TW_ERROR_TEXT_BYTES,
                       "init: rank %d runs twill %d with protocol %u, the meeting point twill %d "
                       "with protocol %u",
                       head->rank, head->version, head->protocol, TWILL_VERSION, TW_PROTOCOL);
        return TWILL_ERR_VERSION;
    }
    if (hello->size < 1 || hello->size > SIZE_MAX_RANKS || head->rank < 0 ||
        head->rank >= hello->size) {
        (void)snprintf(text, TW_ERROR_TEXT_BYTES, "init: rank %d of %d ranks does not exist",
                       head->rank, hello->size);
        return TWILL_ERR_INVALID;
    }
    return TWILL_OK;
}

/* One name may mean different files to ranks in different folders. A file that cannot be read is
 * found out by whoever needs it, and so is the content of several: their list is the name of
 * none. */
static void content_text(const char *path, char *text, size_t bytes)
{
    char *content = NULL;
    size_t length = 0;
    uint8_t out[crypto_generichash_BYTES_MIN];
    uint64_t hash = 0;

    text[0] = '\0';
    if (path[0] == '\0' || tw_file_read(path, TW_PLANS_FILE_BYTES_MOST, &content, &length) != 0)
        return;
    (void)crypto_generichash(out, sizeof(out), (const uint8_t *)content, length, NULL, 0);
    free(content);
    memcpy(&hash, out, sizeof(hash));
    (void)snprintf(text, bytes, " with content %016" PRIx64, hash);
}

void tw_hello_options(const struct tw_comm_args *args, const struct tw_params *params,
                      char options[TW_OPTIONS_BYTES])
{
    char content[40];

    content_text(params->plan_file, content, sizeof(content));
    (void)snprintf(
        options, TW_OPTIONS_BYTES,
        "buffers=%s\nchannels=%d\ndeterministic=%d\nTWILL_ALGO=\"%s\"\nTWILL_PROTO=\"%s\"\n"
        "TWILL_PLAN_FILE=\"%s\"%s\nTWILL_SHM=%d\n",
        args->device == TWILL_DEVICE_HOST ? "host" : "device", args->channels, args->deterministic,
        params->algo, params->proto, params->plan_file, content, params->shm);
}

/* First line in which two lists of options differ. @return false: equal */
static bool options_differ(const struct tw_hello *x, const struct tw_hello *y,
                           char text[TW_ERROR_TEXT_BYTES])
{
    const char *a = x->options;
    const char *b = y->options;

    while (*a != '\0' || *b != '\0') {
        size_t na = strcspn(a, "\n");
        size_t nb = strcspn(b, "\n");
        if (na != nb || memcmp(a, b, na) != 0) {
            (void)snprintf(text, TW_ERROR_TEXT_BYTES,
                           "init: options differ: rank %d has %.*s, rank %d has %.*s", x->head.rank,
                           (int)(na < 160 ? na : 160), a, y->head.rank, (int)(nb < 160 ? nb : 160),
                           b);
            return true;
        }
        a += na + (a[na] != '\0');
        b += nb + (b[nb] != '\0');
    }
    return false;
}

enum twill_status tw_hello_fits(const struct tw_hello *first, const struct tw_hello *hello,
                                char text[TW_ERROR_TEXT_BYTES])
{
    int a = first->head.rank;
    int b = hello->head.rank;

    if (first->size != hello->size) {
        (void)snprintf(text, TW_ERROR_TEXT_BYTES,
                       "init: ranks disagree on the number of ranks: rank %d says %d, rank %d says "
                       "%d",
                       a, first->size, b, hello->size);
        return TWILL_ERR_MISMATCH;
    }
    if (first->head.version != hello->head.version) {
        (void)snprintf(text, TW_ERROR_TEXT_BYTES,
                       "init: versions of twill differ: rank %d has %d, rank %d has %d", a,
                       first->head.version, b, hello->head.version);
        return TWILL_ERR_VERSION;
    }
    if (memcmp(first->proc.host, hello->proc.host, sizeof(first->proc.host)) != 0) {
        (void)snprintf(text, TW_ERROR_TEXT_BYTES,
                       "init: rank %d is on host %s, rank %d on host %s: this build connects ranks "
                       "of one host",
                       a, first->host_name, b, hello->host_name);
        return TWILL_ERR_UNSUPPORTED;
    }
    return options_differ(first, hello, text) ? TWILL_ERR_VERSION : TWILL_OK;
}
