/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: processes by parent. Never knows: which of them are ranks. */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

uint64_t run_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct stat_line {
    char state;
    long parent;
    unsigned long flags;
};

/* From /proc/PID/stat; the name in it may hold spaces and parentheses. */
static bool read_stat(const char *pid, struct stat_line *line)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t bytes = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[bytes] = 0;
    char *rest = strrchr(text, ')');
    return rest && sscanf(rest + 1, " %c %ld %*d %*d %*d %*d %lu", &line->state, &line->parent,
                          &line->flags) == 3;
}

bool run_family_exiting(pid_t pid)
{
    char name[24];
    struct stat_line line;
    snprintf(name, sizeof(name), "%d", (int)pid);
    return read_stat(name, &line) && (line.flags & 0x4); /* the kernel's PF_EXITING */
}

/* One sweep over the direct children. */
static int kill_children(void)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return 0;
    int killed = 0;
    struct dirent *entry;
    while ((entry = readdir(proc))) {
        struct stat_line line;
        if (!isdigit((unsigned char)entry->d_name[0]) || !read_stat(entry->d_name, &line) ||
            line.parent != getpid() || line.state == 'Z')
            continue;
        if (kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL) == 0)
            killed++;
    }
    closedir(proc);
    return killed;
}

int run_family_kill(void)
{
    /* the children of a killed child become ours: sweep until there is none */
    uint64_t deadline_ns = run_now_ns() + 5000000000u;
    int killed = 0;
    while (run_now_ns() < deadline_ns) {
        int sweep = kill_children();
        killed += sweep;
        if (sweep == 0) {
            pid_t pid = waitpid(-1, NULL, WNOHANG);
            if (pid < 0 && errno == ECHILD)
                break;
            if (pid == 0)
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            continue;
        }
        for (int i = 0; i < sweep; i++)
            waitpid(-1, NULL, 0);
    }
    return killed;
}

void run_family_list(const bool *member, int count, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (int first = 0; first < count; first++) {
        if (!member[first])
            continue;
        int last = first;
        while (last + 1 < count && member[last + 1])
            last++;
        const char *comma = used ? ", " : "";
        int n = last > first ? snprintf(text + used, bytes - used, "%s%d-%d", comma, first, last)
                             : snprintf(text + used, bytes - used, "%s%d", comma, first);
        if (n < 0 || (size_t)n >= bytes - used)
            return;
        used += (size_t)n;
        first = last;
    }
}
