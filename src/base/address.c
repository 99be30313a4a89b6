/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: whether an address is one of this host's. Never knows: who listens there. */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/host.h"

#define NAME_BYTES 256 /* of a host, RFC 1035 */

/* Names are equal up to the first dot, where one of them has no more. */
static bool names_equal(const char *a, const char *b)
{
    size_t bytes = strcspn(a, ".");

    if (strcasecmp(a, b) == 0)
        return true;
    return bytes > 0 && bytes == strcspn(b, ".") && strncasecmp(a, b, bytes) == 0 &&
           (a[bytes] == '\0' || b[bytes] == '\0');
}

/* The kernel lets nobody bind to an address that is not this host's. No port is taken that anybody
 * listens at. */
static enum tw_here address_here(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return TW_HERE_UNKNOWN;
    int error = bind(fd, address->ai_addr, address->ai_addrlen) != 0 ? errno : 0;
    (void)close(fd);
    if (error == 0)
        return TW_HERE_YES;
    return error == EADDRNOTAVAIL ? TW_HERE_NO : TW_HERE_UNKNOWN;
}

enum tw_here tw_host_here(const char *address)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *list = NULL;
    char own[NAME_BYTES] = "";
    enum tw_here here = TW_HERE_NO;

    if (gethostname(own, sizeof(own) - 1) == 0 && names_equal(address, own))
        return TW_HERE_YES;
    if (getaddrinfo(address, NULL, &hints, &list) != 0)
        return TW_HERE_UNKNOWN;
    for (const struct addrinfo *at = list; at != NULL && here != TW_HERE_YES; at = at->ai_next) {
        enum tw_here one = address_here(at);
        here = one != TW_HERE_NO ? one : here;
    }
    freeaddrinfo(list);
    return here;
}
