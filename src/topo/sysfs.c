/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where the kernel writes how fast a device's links are. Never knows: the graph. */
#include "config.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/discover.h"

bool tw_topo_line_read(char *line, size_t line_bytes, const char *root, const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;
    if (!root)
        return false;
    int used = snprintf(path, sizeof(path), "%s/", root);
    if (used < 0 || (size_t)used >= sizeof(path))
        return false;
    va_start(args, format);
    int more = vsnprintf(path + used, sizeof(path) - (size_t)used, format, args);
    va_end(args);
    if (more < 0 || (size_t)more >= sizeof(path) - (size_t)used)
        return false;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool got = fgets(line, (int)line_bytes, file) != NULL;
    (void)fclose(file);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

/* "32.0 GT/s PCIe" in units of 0.1 GT/s; "16" as it is; 0 for what is no such number */
static uint64_t tenths(const char *text)
{
    char *rest;
    unsigned long whole = strtoul(text, &rest, 10);
    if (rest == text || whole > 10000)
        return 0;
    uint64_t value = whole * 10;
    if (*rest == '.' && rest[1] >= '0' && rest[1] <= '9')
        value += (uint64_t)(rest[1] - '0');
    return value;
}

static uint64_t pci_number(const char *sysfs, const char *address, const char *name)
{
    char line[64];
    return tw_topo_line_read(line, sizeof(line), sysfs, "bus/pci/devices/%s/%s", address, name)
               ? tenths(line)
               : 0;
}

/* Speed is the most that the link can do, since links of idle devices are slowed down; the width is
 * that in use, since slots may have fewer lanes than the device. */
uint64_t tw_topo_pci_rate(const char *sysfs, const char *address)
{
    uint64_t speed = pci_number(sysfs, address, "max_link_speed");
    uint64_t width = pci_number(sysfs, address, "current_link_width") / 10;
    if (width == 0)
        width = pci_number(sysfs, address, "max_link_width") / 10;
    if (speed == 0 || width == 0 || width > 64)
        return 0;
    /* 8b/10b up to 5 GT/s, then 128b/130b; 85 % of that is payload */
    uint64_t lane_bits = speed * 100000000ull;
    uint64_t bits = speed <= 50 ? lane_bits / 10 * 8 : lane_bits / 130 * 128;
    return bits / 8 * width / 100 * 85;
}

uint64_t tw_topo_net_rate(const char *sysfs, const char *name)
{
    char line[64];
    if (!tw_topo_line_read(line, sizeof(line), sysfs, "class/net/%s/speed", name))
        return 0;
    long long megabits = strtoll(line, NULL, 10); /* -1: the driver does not know */
    return megabits > 0 && megabits < 100000000 ? (uint64_t)megabits * 125000 : 0;
}

uint64_t tw_topo_verbs_rate(const char *sysfs, const char *name)
{
    char line[64]; /* "400 Gb/sec (4X NDR)" */
    if (!tw_topo_line_read(line, sizeof(line), sysfs, "class/infiniband/%s/ports/1/rate", name))
        return 0;
    uint64_t gigabits_tenths = strstr(line, "Gb/sec") ? tenths(line) : 0;
    return gigabits_tenths * 12500000;
}
